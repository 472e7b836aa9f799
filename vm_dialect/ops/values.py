"""Constants, tuples, and arithmetic on sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast, runtime_checkable

from typing_extensions import override
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FlatSymbolRefAttrConstr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    i64,
)
from xdsl.dialects.builtin import TensorType as BuiltinTensorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Operation, SpacedOpaqueSyntaxAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParamAttrConstraint,
    VarConstraint,
    eq,
    irdl_attr_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.irdl.declarative_assembly_format import AttributeVariable, ParsingState, PrintingState, TypeDirective
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, NoMemoryEffect, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa
from xdsl.utils.str_enum import StrEnum

from vm_dialect.integers import COMPARISONS, INT_FUNCTIONS, LOGICAL
from vm_dialect.ops.base import (
    Argument,
    BuiltinOp,
    ConstantOp,
    Directive,
    DTypeRef,
    TensorRef,
    Value,
    Values,
    op_definition,
    verify_boxable,
)
from vm_dialect.types import F64, I1, I64, OBJECT, TensorType, dtype_name

if TYPE_CHECKING:
    from numpy.typing import NDArray


def number_attr(value: bool | float) -> IntegerAttr | FloatAttr:
    """The attribute of `value`: `i1` for a boolean, `i64` for an integer, `f64` for a float."""
    if isinstance(value, float):
        return FloatAttr(value, F64)
    return IntegerAttr(int(value), I1 if isinstance(value, bool) else I64)


@op_definition
class ConstOp(ConstantOp, HasFolderInterface):
    """A number: `vm.const 4 : i64`, `vm.const true`, `vm.const 0.5 : f64`.

    C1: the type is `i64`, `i1` or `f64`, and it is the result's.
    """

    name = "vm.const"

    _T: ClassVar = VarConstraint("T", eq(I64) | eq(I1) | eq(F64))  # C1

    value = prop_def(
        ParamAttrConstraint(IntegerAttr, (AnyAttr(), _T)) | ParamAttrConstraint(FloatAttr, (AnyAttr(), _T))
    )
    result = result_def(_T)

    traits = traits_def(Pure(), ConstantLike())

    assembly_format = "$value attr-dict"

    def __init__(self, value: bool | float | IntegerAttr | FloatAttr):
        attr = value if isinstance(value, IntegerAttr | FloatAttr) else number_attr(value)
        super().__init__(result_types=[attr.get_type()], properties={"value": attr})

    @property
    def python_value(self) -> bool | int | float:
        """The number as Python sees it."""
        value = self.value
        if isinstance(value, FloatAttr):
            return value.value.data
        return bool(value.value.data) if value.type == I1 else value.value.data

    def bytecode_value(self) -> Argument:
        """The immediate or constant."""
        return self.python_value

    def fold(self) -> Sequence[SSAValue | Attribute] | None:
        """The number."""
        return (self.value,)


@op_definition
class StrOp(ConstantOp):
    """A string: `vm.str "relu"`."""

    name = "vm.str"

    value = prop_def(StringAttr)
    result = result_def(OBJECT)

    traits = traits_def(Pure())

    assembly_format = "$value attr-dict"

    def __init__(self, value: str | StringAttr):
        attr = StringAttr(value) if isinstance(value, str) else value
        super().__init__(result_types=[OBJECT], properties={"value": attr})

    def bytecode_value(self) -> Argument:
        """The string."""
        return self.value.data


@op_definition
class DtypeOp(ConstantOp):
    """An element type as a value: `vm.dtype f32`.

    C1: the run time has such an element type.
    """

    name = "vm.dtype"

    value = prop_def(TypeAttribute)
    result = result_def(OBJECT)

    traits = traits_def(Pure())

    assembly_format = "$value attr-dict"

    def __init__(self, value: Attribute):
        super().__init__(result_types=[OBJECT], properties={"value": value})

    @override
    def verify_(self) -> None:
        if dtype_name(self.value) is None:
            raise VerifyException(f"'vm.dtype' op has no element type {self.value} at run time")  # C1

    def bytecode_value(self) -> Argument:
        """The element type."""
        return DTypeRef(str(self.value))


@op_definition
class NullOp(ConstantOp):
    """The value null, Python's `None`: `vm.null`."""

    name = "vm.null"

    result = result_def(OBJECT)

    traits = traits_def(Pure())

    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__(result_types=[OBJECT])

    def bytecode_value(self) -> Argument:
        """The void operand."""
        return None


@runtime_checkable
class KeptTensor(Protocol):
    """An attribute that stands for a tensor by its name, as `#tir.weight` does."""

    @property
    def weight_name(self) -> str:
        """The name under which the tensor is kept."""
        ...

    def kept_array(self) -> NDArray[Any] | None:
        """The elements, if they are in this process."""
        ...


@op_definition
class ConstantSymbolOp(IRDLOperation):
    """Declares a constant tensor of the executable.

    The elements are given here, or, for weights, from outside when the executable is made.

    ```mlir
    vm.constant @bias : tensor<2xf32> = dense<[1.0, 2.0]> : tensor<2xf32>
    vm.constant @weight : tensor<1024x1024xf32> = #tir.weight<"layer.weight">
    vm.constant @other : tensor<1024x1024xf32>
    ```

    C1: the shape is static.
    C2: the run time has the element type.
    C3: the elements have the declared type.
    C4: the value is elements, or a tensor by name.
    """

    name = "vm.constant"

    sym_name = prop_def(SymbolNameConstraint())
    tensor_type = prop_def(BuiltinTensorType)
    value = opt_prop_def(Attribute)

    traits = traits_def(NoMemoryEffect(), SymbolOpInterface())

    assembly_format = "$sym_name `:` $tensor_type (`=` $value^)? attr-dict"

    def __init__(self, name: str, tensor_type: BuiltinTensorType, value: Attribute | None = None):
        super().__init__(properties={"sym_name": StringAttr(name), "tensor_type": tensor_type, "value": value})

    @property
    def vm_type(self) -> TensorType:
        """The type that `vm.constant_tensor` gives to it."""
        return TensorType(len(self.tensor_type.get_shape()), self.tensor_type.element_type)

    @override
    def verify_(self) -> None:
        where = f"'vm.constant' op @{self.sym_name.data}"
        if not self.tensor_type.has_static_shape():
            raise VerifyException(f"{where} expected a static shape, got {self.tensor_type}")  # C1
        if dtype_name(self.tensor_type.element_type) is None:
            raise VerifyException(f"{where} has no element type {self.tensor_type.element_type} at run time")  # C2
        if isa(self.value, DenseIntOrFPElementsAttr):
            if self.value.type != self.tensor_type:
                raise VerifyException(f"{where} expected elements of {self.tensor_type}, got {self.value.type}")  # C3
        elif self.value is not None and not isinstance(self.value, KeptTensor):
            raise VerifyException(f"{where} expected elements or a tensor by name, got {self.value}")  # C4


@op_definition
class ConstantTensorOp(ConstantOp):
    """A constant tensor of the executable: `vm.constant_tensor @weight : !vm.tensor<2, f32>`.

    C1: rank and dtype are known.
    """

    name = "vm.constant_tensor"

    symbol = prop_def(FlatSymbolRefAttrConstr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    assembly_format = "$symbol attr-dict `:` type($result)"

    def __init__(self, symbol: str | SymbolRefAttr, result_type: TensorType):
        attr = SymbolRefAttr(symbol) if isinstance(symbol, str) else symbol
        super().__init__(result_types=[result_type], properties={"symbol": attr})

    @override
    def verify_(self) -> None:
        if self.result.type.rank is None or self.result.type.element is None:
            raise VerifyException(
                f"'vm.constant_tensor' op expected known rank and dtype, got {self.result.type}"
            )  # C1

    def bytecode_value(self) -> Argument:
        """The tensor's position in the constant pool, by name."""
        return TensorRef(self.symbol.root_reference.data)


@op_definition
class MakeTupleOp(BuiltinOp):
    """A tuple of values: `vm.make_tuple(%a, %b)`.

    C1: no field is a storage.
    """

    name = "vm.make_tuple"
    BUILTIN: ClassVar[str] = "make_tuple"

    fields = var_operand_def()
    result = result_def(OBJECT)

    traits = traits_def(Pure())

    custom_directives = (Values,)
    assembly_format = "custom<Values>($fields, type($fields)) attr-dict"

    def __init__(self, fields: Sequence[SSAValue | Operation]):
        super().__init__(operands=[fields], result_types=[OBJECT])

    @override
    def verify_(self) -> None:
        verify_boxable(self, self.fields)  # C1


@op_definition
class TupleGetOp(BuiltinOp):
    """A field of a tuple: `vm.tuple_get %t[1]`.

    `TypeError` if the value is no tuple, `ValueError` if it has no such field.

    C1: the index is not negative.
    """

    name = "vm.tuple_get"
    BUILTIN: ClassVar[str] = "tuple_get"

    tuple = operand_def(OBJECT)
    index = prop_def(IntegerAttr.constr(i64))
    result = result_def(OBJECT)

    traits = traits_def(NoMemoryEffect())

    custom_directives = (Value,)
    assembly_format = "$tuple `[` $index `]` attr-dict"

    def __init__(self, value: SSAValue | Operation, index: int):
        super().__init__(operands=[value], result_types=[OBJECT], properties={"index": IntegerAttr(index, i64)})

    @override
    def verify_(self) -> None:
        if self.index.value.data < 0:
            raise VerifyException(f"'vm.tuple_get' op expected an index >= 0, got {self.index.value.data}")  # C1

    def bytecode_args(self) -> Sequence[Argument]:
        """The tuple and the index."""
        return (self.tuple, self.index.value.data)


_INTEGER = eq(I64) | eq(I1)


class IntKind(StrEnum):
    """What `vm.int` computes."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    ADD_SAT = "add_sat"
    MUL_SAT = "mul_sat"
    FLOORDIV = "floordiv"
    MOD = "mod"
    MIN = "min"
    MAX = "max"
    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"
    AND = "and"
    OR = "or"
    BROADCAST = "broadcast"

    @property
    def operand_type(self) -> Attribute:
        """`i1` for `and` and `or`, else `i64`."""
        return I1 if self.value in LOGICAL else I64

    @property
    def result_type(self) -> Attribute:
        """`i1` for comparisons, `and` and `or`, else `i64`."""
        return I1 if self.value in LOGICAL or self.value in COMPARISONS else I64


@irdl_attr_definition
class IntKindAttr(EnumAttribute[IntKind], SpacedOpaqueSyntaxAttribute):
    """`#vm<int_kind add>`."""

    name = "vm.int_kind"


class Kind(Directive):
    """The kind, which says the types of operands and result: `add`."""

    kind: AttributeVariable
    lhs: TypeDirective
    rhs: TypeDirective
    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `add`."""
        kind = parser.parse_str_enum(IntKind)
        self.kind.set(state, IntKindAttr(kind))
        self.lhs.set(state, (kind.operand_type,))
        self.rhs.set(state, (kind.operand_type,))
        self.result.set(state, (kind.result_type,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `add`."""
        state.print_whitespace(printer)
        printer.print_string(cast("IntKindAttr", self.kind.get(op)).data.value)


@op_definition
class IntOp(BuiltinOp, HasFolderInterface):
    """A function of two integers, or of two booleans for `and` and `or`.

    `ValueError` if 64 bits do not hold the result, for which `add_sat` and `mul_sat` give the nearest number that they
    do. `floordiv` and `mod` round towards minus infinity and raise `ValueError` on division by zero; `broadcast` is
    the second operand if the first is 1, else the first.

    ```mlir
    %bytes = vm.int mul %n, %four
    %same = vm.int eq %n, %m
    ```

    C1: operands and result have the types of the kind.
    """

    name = "vm.int"

    kind = prop_def(IntKindAttr)
    lhs = operand_def(_INTEGER)
    rhs = operand_def(_INTEGER)
    result = result_def(_INTEGER)

    traits = traits_def(NoMemoryEffect())

    custom_directives = (Kind,)
    assembly_format = "custom<Kind>($kind, type($lhs), type($rhs), type($result)) $lhs `,` $rhs attr-dict"

    def __init__(self, kind: str | IntKind, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        kind = IntKind(kind)
        super().__init__(operands=[lhs, rhs], result_types=[kind.result_type], properties={"kind": IntKindAttr(kind)})

    @property
    def builtin_name(self) -> str:
        """`int_add`, `int_eq`, ..."""
        return f"int_{self.kind.data.value}"

    @override
    def verify_(self) -> None:
        kind = self.kind.data
        got = (self.lhs.type, self.rhs.type, self.result.type)
        expected = (kind.operand_type, kind.operand_type, kind.result_type)
        if got != expected:
            shown = "({}, {}) -> {}"
            raise VerifyException(
                f"'vm.int' op {kind.value} expected {shown.format(*expected)}, got {shown.format(*got)}"
            )  # C1

    def fold(self) -> Sequence[SSAValue | Attribute] | None:
        """The number, if both operands are constants and the operation is defined on them."""
        lhs, rhs = self.lhs.owner, self.rhs.owner
        if not (isinstance(lhs, ConstOp) and isinstance(rhs, ConstOp)):
            return None
        try:
            value = INT_FUNCTIONS[self.kind.data.value](int(lhs.python_value), int(rhs.python_value))
        except ValueError:
            return None
        return (number_attr(bool(value) if self.kind.data.result_type == I1 else value),)

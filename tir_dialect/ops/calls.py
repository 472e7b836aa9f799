"""Calls of prim_funcs, C functions and packed functions, whose arguments are passed in registers or boxed."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import (
    FlatSymbolRefAttrConstr,
    IndexType,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from tir_dialect.dtypes import is_dtype, scalar_type
from tir_dialect.fast_ops import as_value, fill_op
from tir_dialect.ops.assembly_format import Number, ResultType, Symbol, Text, op_definition
from tir_dialect.ops.effects import VERIFIERS, UnknownEffects
from tir_dialect.ops.memory import i32_array
from tir_dialect.types import BufferType

ROUTINE = "relax.routine."
"""How the names of functions begin that schedules have made: one name stands for one function in every module."""


def _is_scalar(type: Attribute) -> bool:
    return is_dtype(type) and scalar_type(type) == type


class ForeignCallOp(IRDLOperation, ABC):
    """A call of a function outside the module, by name."""

    function = prop_def(StringAttr)
    pure = opt_prop_def(UnitAttr)
    arguments = var_operand_def()
    result = opt_result_def()

    assembly_format = (
        "(`pure` $pure^)? custom<Text>($function) `(` $arguments `)` attr-dict "
        "(`:` custom<ResultType>(type($result))^)?"
    )
    custom_directives = (Text, ResultType)

    def __init__(
        self,
        function: str,
        arguments: Sequence[SSAValue | Operation] = (),
        result_type: Attribute | None = None,
        *,
        pure: bool = False,
    ):
        super().__init__(
            operands=[arguments],
            properties={"function": StringAttr(function), "pure": UnitAttr() if pure else None},
            result_types=[result_type],
        )

    def verify_(self) -> None:
        for index, argument in enumerate(self.arguments):
            if not _is_scalar(argument.type) and not isinstance(argument.type, BufferType | IndexType):
                raise VerifyException(
                    f"'{self.name}' op argument #{index} expected a buffer or a scalar, got {argument.type}"
                )  # C1
        if self.result is not None and not _is_scalar(self.result.type):
            raise VerifyException(f"'{self.name}' op expected a scalar result, got {self.result.type}")  # C2


@op_definition
class CallExternOp(ForeignCallOp):
    """Calls a C function, which is resolved when the code is linked.

    ```mlir
    %r = tir.call_extern pure "erff"(%x) : f32
    tir.call_extern "my_kernel"(%A, %n)
    ```

    A buffer is passed as the address of its first element, an `index` as a 64-bit integer. A `pure` call has no side
    effects.

    C1: an argument is a buffer or a scalar.
    C2: the result is a scalar.
    """

    name = "tir.call_extern"

    traits = traits_def(UnknownEffects())


@op_definition
class CallPackedOp(ForeignCallOp):
    """Calls a function of the tvm-ffi registry, which is looked up when the executable is loaded.

    ```mlir
    tir.call_packed "my_sort"(%A, %k)
    ```

    A buffer is passed as a tensor with shape and strides, an integer as a 64-bit integer, a float as a double. A `pure`
    call has no side effects.

    C1: an argument is a buffer or a scalar.
    C2: the result is a scalar.
    """

    name = "tir.call_packed"

    traits = traits_def(UnknownEffects())


class _VerifiesCallee(SymbolUserOpInterface):
    """Checks a `tir.call` against the function that it names."""

    def verify(self, op: Operation) -> None:
        if isinstance(op, CallOp) and op.get_toplevel_object() is not op:
            VERIFIERS.of("tir.call")(op)


@op_definition
class CallOp(IRDLOperation):
    """Calls another prim_func of the module, with the values of its symbols in brackets.

    ```mlir
    tir.call @matmul[%m, %n, %k](%A, %B, %C)
    ```

    C1: the callee is a `tir.prim_func`.
    C2: there is one `index` per symbol, and one argument per parameter.
    C3: the arguments have the types of the parameters, with the symbols replaced by what is passed for them.
    C4: the callee of an `unchecked` call is a routine, a function made by a schedule (`relax.routine.` and its kind).

    What cannot be proved of C3 is checked at each call, and that memory which the callee writes is part of no other
    argument, unless it says `may_alias`. An error of the callee is propagated to the caller. An `unchecked` call omits
    these checks: its caller guarantees that they would pass and that the callee cannot fail.
    """

    name = "tir.call"

    callee = prop_def(FlatSymbolRefAttrConstr)
    unchecked = opt_prop_def(UnitAttr)
    sizes = var_operand_def(IndexType)
    arguments = var_operand_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    traits = traits_def(UnknownEffects(), _VerifiesCallee())

    assembly_format = (
        "(`unchecked` $unchecked^)? custom<Symbol>($callee) (`[` $sizes^ `]` ``)? `(` $arguments `)` attr-dict"
    )
    custom_directives = (Symbol,)

    def __init__(
        self,
        callee: str | SymbolRefAttr,
        sizes: Sequence[SSAValue | Operation],
        arguments: Sequence[SSAValue | Operation],
        *,
        unchecked: bool = False,
    ):
        symbol = SymbolRefAttr(callee) if isinstance(callee, str) else callee
        properties: dict[str, Attribute] = {
            "callee": symbol,
            "operandSegmentSizes": i32_array(len(sizes), len(arguments)),
        }
        if unchecked:
            properties["unchecked"] = UnitAttr()
        fill_op(self, tuple(map(as_value, (*sizes, *arguments))), properties=properties)


@op_definition
class CallBoxedOp(IRDLOperation):
    """Calls a function of the tvm-ffi registry with an array of boxed values.

    ```mlir
    tir.call_boxed "my_sort"(%values, 2)
    ```

    `%values` is the address of an array of that many `TVMFFIAny` (16 bytes each), followed by space for one more: the
    result. If the result is an object, the program owns it. For the address of a `DLTensor` the function receives a
    tensor object, which it must not retain. An error of the function is propagated.

    C1: the number of values is not negative.
    """

    name = "tir.call_boxed"

    function = prop_def(StringAttr)
    values = operand_def(i64)
    count_attr = prop_def(IntegerAttr, prop_name="count")

    traits = traits_def(UnknownEffects())

    assembly_format = "custom<Text>($function) `(` $values `,` custom<Number>($count) `)` attr-dict"
    custom_directives = (Text, Number)

    def __init__(self, function: str, values: SSAValue | Operation, count: int):
        properties = {"function": StringAttr(function), "count": IntegerAttr(count, i64)}
        super().__init__(operands=[values], properties=properties)

    @property
    def count(self) -> int:
        """How many values there are."""
        return self.count_attr.value.data

    def verify_(self) -> None:
        if self.count < 0:
            raise VerifyException(f"'tir.call_boxed' op expected a number of values, got {self.count}")  # C1

"""Calls: of functions of the machine, kernels, packed functions and closures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override
from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure, SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from vm_dialect.ops.base import (
    Argument,
    BuiltinOp,
    CallsUnknownCode,
    FunctionRef,
    Value,
    Values,
    op_definition,
    verify_arguments,
    verify_boxable,
)
from vm_dialect.ops.structure import FuncOp
from vm_dialect.types import F64, I1, I64, OBJECT, TensorType


def _symbol(name: str | SymbolRefAttr) -> SymbolRefAttr:
    return SymbolRefAttr(name) if isinstance(name, str) else name


def _string(text: str | StringAttr) -> StringAttr:
    return StringAttr(text) if isinstance(text, str) else text


def _callee(op: Operation, symbol: SymbolRefAttr) -> FuncOp:
    """The `vm.func` that `symbol` names; `VerifyException` if there is none."""
    found = SymbolTable.lookup_symbol(op, symbol)
    if not isinstance(found, FuncOp):
        raise VerifyException(f"'{op.name}' op {symbol} is not a 'vm.func'")
    return found


class VerifiesCallee(SymbolUserOpInterface):
    """Checks a `vm.call` against the function that it names."""

    def verify(self, op: Operation) -> None:
        """Raises `VerifyException` if callee, arguments or result do not fit."""
        if not isinstance(op, CallOp) or op.get_toplevel_object() is op:
            return
        func = _callee(op, op.callee)  # C1
        verify_arguments(op, func.sym_name.data, op.arguments, func.function_type.inputs.data)  # C2
        got = None if op.result is None else op.result.type
        if got != func.result_type:
            raise VerifyException(
                f"'vm.call' op {op.callee} expected result type {func.result_type or 'none'}, got {got or 'none'}"
            )  # C3


@op_definition
class CallOp(IRDLOperation):
    """Calls another function of the machine: `%r = vm.call @f(%a, %b) : !vm.object`.

    C1: the callee is a `vm.func`.
    C2: the arguments have the types of its parameters, or subtypes.
    C3: the result has its result type.
    """

    name = "vm.call"

    callee = prop_def(FlatSymbolRefAttrConstr)
    arguments = var_operand_def()
    result = opt_result_def()

    traits = traits_def(CallsUnknownCode(), VerifiesCallee())

    custom_directives = (Values,)
    assembly_format = "$callee custom<Values>($arguments, type($arguments)) attr-dict (`:` type($result)^)?"

    def __init__(
        self,
        callee: str | SymbolRefAttr,
        arguments: Sequence[SSAValue | Operation] = (),
        result_type: Attribute | None = None,
    ):
        super().__init__(operands=[arguments], result_types=[result_type], properties={"callee": _symbol(callee)})


@op_definition
class CallKernelOp(IRDLOperation):
    """Runs a kernel, a `tir.prim_func`, on tensors that it reads and writes.

    The brackets hold the sizes, the values of the prim_func's symbols; then come tensors and scalars.

    ```mlir
    vm.call_kernel @exp[%n](%x, %y)
    ```

    C1: the arguments are tensors of known rank and dtype, `i64`, `i1` or `f64`.
    """

    name = "vm.call_kernel"

    callee = prop_def(FlatSymbolRefAttrConstr)
    sizes = var_operand_def(I64)
    arguments = var_operand_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    traits = traits_def(CallsUnknownCode())

    custom_directives = (Values,)
    assembly_format = "$callee (`[` $sizes^ `]`)? custom<Values>($arguments, type($arguments)) attr-dict"

    def __init__(
        self,
        callee: str | SymbolRefAttr,
        sizes: Sequence[SSAValue | Operation],
        arguments: Sequence[SSAValue | Operation],
    ):
        super().__init__(operands=[sizes, arguments], properties={"callee": _symbol(callee)})

    @override
    def verify_(self) -> None:
        for index, argument in enumerate(self.arguments):
            kind = argument.type
            known = isinstance(kind, TensorType) and kind.rank is not None and kind.element is not None
            if not known and kind not in (I64, I1, F64):
                raise VerifyException(
                    f"'vm.call_kernel' op argument #{index} expected a tensor of known rank and dtype, or a number, "
                    f"got {kind}"
                )  # C1


@op_definition
class CallPackedOp(IRDLOperation):
    """Calls a function of the tvm-ffi registry, found when the executable is loaded.

    ```mlir
    %r = vm.call_packed "custom_add"(%a, %b) : !vm.object
    ```

    C1: no argument is a storage.
    C2: the result, if there is one, is `!vm.object`.
    """

    name = "vm.call_packed"

    function = prop_def(StringAttr)
    arguments = var_operand_def()
    result = opt_result_def(OBJECT)  # C2

    traits = traits_def(CallsUnknownCode())

    custom_directives = (Values,)
    assembly_format = "$function custom<Values>($arguments, type($arguments)) attr-dict (`:` type($result)^)?"

    def __init__(
        self,
        function: str | StringAttr,
        arguments: Sequence[SSAValue | Operation] = (),
        result_type: Attribute | None = None,
    ):
        super().__init__(operands=[arguments], result_types=[result_type], properties={"function": _string(function)})

    @override
    def verify_(self) -> None:
        verify_boxable(self, self.arguments)  # C1


class VerifiesClosure(SymbolUserOpInterface):
    """Checks a `vm.make_closure` against the function that it names."""

    def verify(self, op: Operation) -> None:
        """Raises `VerifyException` if callee or captured values do not fit."""
        if not isinstance(op, MakeClosureOp) or op.get_toplevel_object() is op:
            return
        func = _callee(op, op.callee)  # C1
        inputs, count = func.function_type.inputs.data, len(op.captured)
        if count > len(inputs):
            raise VerifyException(
                f"'vm.make_closure' op {op.callee} takes {len(inputs)} arguments, captured {count}"
            )  # C2
        verify_arguments(op, func.sym_name.data, op.captured, inputs[:count])  # C2
        if any(parameter != OBJECT for parameter in inputs[count:]):
            raise VerifyException(f"'vm.make_closure' op {op.callee} parameters after #{count} must be {OBJECT}")  # C3


@op_definition
class MakeClosureOp(BuiltinOp):
    """A function value: `vm.make_closure @f(%captured)`; the captured values come first among `@f`'s arguments.

    C1: the callee is a `vm.func`.
    C2: the captured values have the types of its first parameters, or subtypes, and none is a storage.
    C3: its other parameters are `!vm.object`.
    """

    name = "vm.make_closure"
    BUILTIN: ClassVar[str] = "make_closure"

    callee = prop_def(FlatSymbolRefAttrConstr)
    captured = var_operand_def()
    result = result_def(OBJECT)

    traits = traits_def(Pure(), VerifiesClosure())

    custom_directives = (Values,)
    assembly_format = "$callee custom<Values>($captured, type($captured)) attr-dict"

    def __init__(self, callee: str | SymbolRefAttr, captured: Sequence[SSAValue | Operation] = ()):
        super().__init__(operands=[captured], result_types=[OBJECT], properties={"callee": _symbol(callee)})

    @override
    def verify_(self) -> None:
        verify_boxable(self, self.captured)  # C2

    def bytecode_args(self) -> Sequence[Argument]:
        """The function and the captured values."""
        return (FunctionRef(self.callee.root_reference.data), *self.captured)


@op_definition
class CallClosureOp(BuiltinOp):
    """Calls a function value: `%r = vm.call_closure %c(%a) : !vm.object`; `TypeError` if it is no function.

    C1: no argument is a storage.
    C2: the result, if there is one, is `!vm.object`.
    """

    name = "vm.call_closure"
    BUILTIN: ClassVar[str] = "invoke_closure"

    closure = operand_def(OBJECT)
    arguments = var_operand_def()
    result = opt_result_def(OBJECT)  # C2

    traits = traits_def(CallsUnknownCode())

    custom_directives = (Value, Values)
    assembly_format = "$closure custom<Values>($arguments, type($arguments)) attr-dict (`:` type($result)^)?"

    def __init__(
        self,
        closure: SSAValue | Operation,
        arguments: Sequence[SSAValue | Operation] = (),
        result_type: Attribute | None = None,
    ):
        super().__init__(operands=[closure, arguments], result_types=[result_type])

    @override
    def verify_(self) -> None:
        verify_boxable(self, self.arguments)  # C1

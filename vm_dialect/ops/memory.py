"""Memory: storages, tensors in them, tensors of their own, views, and the end of a value's life."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from typing_extensions import override
from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, result_def, traits_def, var_operand_def
from xdsl.irdl.declarative_assembly_format import (
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryFreeEffect, MemoryReadEffect, NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from vm_dialect.ops.base import Argument, BuiltinOp, Directive, DTypeRef, FreshMemory, Value, op_definition
from vm_dialect.types import I1, I64, STORAGE, TensorType


class NewTensor(Directive):
    """Dimensions and dtype of a tensor that is made: `[%n, %m] f32`."""

    dims: VariadicOperandVariable
    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `[%n, %m] f32`."""
        dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
        unknown = parser.parse_optional_keyword("_") is not None
        dtype = NoneAttr() if unknown else parser.parse_type()
        self.dims.set(state, dims)
        self.type.set(state, (TensorType(len(dims), dtype),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `[%n, %m] f32`."""
        state.print_whitespace(printer)
        with printer.in_square_brackets():
            printer.print_list(self.dims.get(op), printer.print_ssa_value)
        (tensor,) = self.type.get(op)
        if isinstance(tensor, TensorType):
            printer.print_string(" _" if isinstance(tensor.dtype, NoneAttr) else f" {tensor.dtype}")


def _verify_rank(op: Operation, dims: Sequence[SSAValue], result: TensorType) -> None:
    if result.rank != len(dims):
        raise VerifyException(f"'{op.name}' op expected a result of rank {len(dims)}, got {result}")


def _verify_dtype(op: Operation, result: TensorType) -> None:
    if result.element is None:
        raise VerifyException(f"'{op.name}' op expected a known dtype, got {result}")


@op_definition
class AllocStorageOp(BuiltinOp):
    """Memory of the current call, aligned to 64 bytes: `vm.alloc_storage %bytes`.

    A negative size raises `ValueError`.
    """

    name = "vm.alloc_storage"
    BUILTIN: ClassVar[str] = "alloc_storage"

    size = operand_def(I64)
    result = result_def(STORAGE)

    traits = traits_def(FreshMemory())

    assembly_format = "$size attr-dict"

    def __init__(self, size: SSAValue | Operation):
        super().__init__(operands=[size], result_types=[STORAGE])


@op_definition
class AllocTensorOp(BuiltinOp):
    """A tensor inside a storage, `offset` bytes from its start; it must not outlive the call.

    A tensor that does not fit into the storage raises `ValueError`.

    ```mlir
    %t = vm.alloc_tensor %storage at %offset [%n, %m] f32
    ```

    C1: the result's rank is the number of dimensions.
    C2: the dtype is known.
    """

    name = "vm.alloc_tensor"
    BUILTIN: ClassVar[str] = "alloc_tensor"

    storage = operand_def(STORAGE)
    offset = operand_def(I64)
    dims = var_operand_def(I64)
    result = result_def(TensorType)

    traits = traits_def(FreshMemory())

    custom_directives = (NewTensor,)
    assembly_format = "$storage `at` $offset custom<NewTensor>($dims, type($result)) attr-dict"

    def __init__(
        self,
        storage: SSAValue | Operation,
        offset: SSAValue | Operation,
        dims: Sequence[SSAValue | Operation],
        dtype: Attribute,
    ):
        super().__init__(operands=[storage, offset, dims], result_types=[TensorType(len(dims), dtype)])

    @override
    def verify_(self) -> None:
        _verify_rank(self, self.dims, self.result.type)  # C1
        _verify_dtype(self, self.result.type)  # C2

    def bytecode_args(self) -> Sequence[Argument]:
        """The storage, the offset, the dtype and the dimensions."""
        return (self.storage, self.offset, DTypeRef(str(self.result.type.dtype)), *self.dims)


@op_definition
class NewTensorOp(BuiltinOp):
    """A tensor with memory of its own, which may leave the call: `vm.new_tensor [%n, %m] f32`.

    A negative dimension raises `ValueError`.

    C1: the result's rank is the number of dimensions.
    C2: the dtype is known.
    """

    name = "vm.new_tensor"
    BUILTIN: ClassVar[str] = "new_tensor"

    dims = var_operand_def(I64)
    result = result_def(TensorType)

    traits = traits_def(FreshMemory())

    custom_directives = (NewTensor,)
    assembly_format = "custom<NewTensor>($dims, type($result)) attr-dict"

    def __init__(self, dims: Sequence[SSAValue | Operation], dtype: Attribute):
        super().__init__(operands=[dims], result_types=[TensorType(len(dims), dtype)])

    @override
    def verify_(self) -> None:
        _verify_rank(self, self.dims, self.result.type)  # C1
        _verify_dtype(self, self.result.type)  # C2

    def bytecode_args(self) -> Sequence[Argument]:
        """The dtype and the dimensions."""
        return (DTypeRef(str(self.result.type.dtype)), *self.dims)


@op_definition
class ViewOp(BuiltinOp):
    """The same memory with another shape: `vm.view %t [%n] f32`; `ValueError` if the number of elements differs.

    C1: the result's rank is the number of dimensions.
    C2: the result has the tensor's dtype.
    """

    name = "vm.view"
    BUILTIN: ClassVar[str] = "view"

    tensor = operand_def(TensorType)
    dims = var_operand_def(I64)
    result = result_def(TensorType)

    traits = traits_def(NoMemoryEffect())

    custom_directives = (Value, NewTensor)
    assembly_format = "custom<Value>($tensor, type($tensor)) custom<NewTensor>($dims, type($result)) attr-dict"

    def __init__(self, tensor: SSAValue | Operation, dims: Sequence[SSAValue | Operation]):
        tensor_type = SSAValue.get(tensor).type
        dtype = tensor_type.dtype if isinstance(tensor_type, TensorType) else None
        super().__init__(operands=[tensor, dims], result_types=[TensorType(len(dims), dtype)])

    @override
    def verify_(self) -> None:
        _verify_rank(self, self.dims, self.result.type)  # C1
        tensor, result = cast("TensorType", self.tensor.type), self.result.type
        if tensor.dtype != result.dtype:
            raise VerifyException(f"'vm.view' op expected the dtype of {tensor}, got {result}")  # C2


@op_definition
class ReadCondOp(BuiltinOp):
    """The condition held by a tensor of rank 0: `vm.read_cond %t`.

    C1: the tensor has rank 0 and dtype `i1`.
    """

    name = "vm.read_cond"
    BUILTIN: ClassVar[str] = "read_cond"

    tensor = operand_def(TensorType)
    result = result_def(I1)

    traits = traits_def(MemoryReadEffect())

    custom_directives = (Value,)
    assembly_format = "custom<Value>($tensor, type($tensor)) attr-dict"

    def __init__(self, tensor: SSAValue | Operation):
        super().__init__(operands=[tensor], result_types=[I1])

    @override
    def verify_(self) -> None:
        if self.tensor.type != TensorType(0, I1):
            raise VerifyException(f"'vm.read_cond' op expected {TensorType(0, I1)}, got {self.tensor.type}")  # C1


@op_definition
class KillOp(BuiltinOp):
    """The value is not used any more: `vm.kill %t`; in bytecode its register becomes null."""

    name = "vm.kill"
    BUILTIN: ClassVar[str] = "kill"

    value = operand_def()

    traits = traits_def(MemoryFreeEffect())

    custom_directives = (Value,)
    assembly_format = "custom<Value>($value, type($value)) attr-dict"

    def __init__(self, value: SSAValue | Operation):
        super().__init__(operands=[value])

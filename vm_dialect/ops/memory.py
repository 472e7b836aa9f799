"""Memory: storages, tensors in them, tensors of their own, views, and the end of a value's life; shapes and dimensions:
what a tensor or a shape has, and shapes made of numbers.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar, cast

from typing_extensions import override
from xdsl.dialects.builtin import IntegerAttr, NoneAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.irdl.declarative_assembly_format import (
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryFreeEffect, MemoryReadEffect, NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from vm_dialect.ops.base import Argument, BuiltinOp, Directive, DTypeRef, FreshMemory, Value, op_definition
from vm_dialect.types import I1, I64, STORAGE, ShapeType, TensorType


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


class DimOp(BuiltinOp, ABC):
    """One dimension of a tensor or shape.

    An axis out of range of a value whose rank the type does not tell raises `ValueError`.
    """

    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def(I64)

    traits = traits_def(NoMemoryEffect())

    custom_directives = (Value,)

    def __init__(self, value: SSAValue | Operation, axis: int):
        super().__init__(operands=[value], result_types=[I64], properties={"axis": IntegerAttr(axis, i64)})

    def verify_axis(self, value_type: Attribute) -> None:
        """Raises `VerifyException` if the axis is out of range of the type's rank."""
        axis = self.axis.value.data
        rank = value_type.rank if isinstance(value_type, TensorType | ShapeType) else None
        if axis < 0 or (rank is not None and axis >= rank):
            raise VerifyException(f"'{self.name}' op axis {axis} is out of range for type {value_type}")

    def bytecode_args(self) -> Sequence[Argument]:
        """The value and the axis."""
        return (*self.operands, self.axis.value.data)


@op_definition
class TensorDimOp(DimOp):
    """A dimension of a tensor: `vm.tensor_dim %t[0]`.

    C1: the axis is in range.
    """

    name = "vm.tensor_dim"
    BUILTIN: ClassVar[str] = "tensor_dim"

    tensor = operand_def(TensorType)

    assembly_format = "custom<Value>($tensor, type($tensor)) `[` $axis `]` attr-dict"

    @override
    def verify_(self) -> None:
        self.verify_axis(self.tensor.type)  # C1


@op_definition
class ReadIntOp(BuiltinOp):
    """An element of a vector of integers: `vm.read_int %t[0]`.

    An index past the end raises `ValueError` when the op runs.

    C1: the tensor has rank 1 and dtype `i64`.
    C2: the index is not negative.
    """

    name = "vm.read_int"
    BUILTIN: ClassVar[str] = "read_int"

    index = prop_def(IntegerAttr.constr(i64))
    tensor = operand_def(TensorType)
    result = result_def(I64)

    traits = traits_def(MemoryReadEffect())

    custom_directives = (Value,)
    assembly_format = "custom<Value>($tensor, type($tensor)) `[` $index `]` attr-dict"

    def __init__(self, tensor: SSAValue | Operation, index: int):
        super().__init__(operands=[tensor], result_types=[I64], properties={"index": IntegerAttr(index, i64)})

    @override
    def verify_(self) -> None:
        if self.tensor.type != TensorType(1, I64):
            raise VerifyException(f"'vm.read_int' op expected {TensorType(1, I64)}, got {self.tensor.type}")  # C1
        if self.index.value.data < 0:
            raise VerifyException(f"'vm.read_int' op expected an index of 0 or more, got {self.index.value.data}")  # C2

    def bytecode_args(self) -> Sequence[Argument]:
        """The tensor and the index."""
        return (*self.operands, self.index.value.data)


@op_definition
class ShapeDimOp(DimOp):
    """A dimension of a shape: `vm.shape_dim %s[0]`.

    C1: the axis is in range.
    """

    name = "vm.shape_dim"
    BUILTIN: ClassVar[str] = "shape_dim"

    shape = operand_def(ShapeType)

    assembly_format = "custom<Value>($shape, type($shape)) `[` $axis `]` attr-dict"

    @override
    def verify_(self) -> None:
        self.verify_axis(self.shape.type)  # C1


@op_definition
class ShapeOfOp(BuiltinOp):
    """The shape of a tensor: `vm.shape_of %t`.

    C1: the result has the tensor's rank.
    """

    name = "vm.shape_of"
    BUILTIN: ClassVar[str] = "shape_of"

    tensor = operand_def(TensorType)
    result = result_def(ShapeType)

    traits = traits_def(Pure())

    custom_directives = (Value,)
    assembly_format = "custom<Value>($tensor, type($tensor)) attr-dict `:` type($result)"

    def __init__(self, tensor: SSAValue | Operation):
        tensor_type = SSAValue.get(tensor).type
        rank = tensor_type.rank if isinstance(tensor_type, TensorType) else None
        super().__init__(operands=[tensor], result_types=[ShapeType(rank)])

    @override
    def verify_(self) -> None:
        tensor, shape = cast("TensorType", self.tensor.type), self.result.type
        if tensor.rank != shape.rank:
            raise VerifyException(f"'vm.shape_of' op expected {ShapeType(tensor.rank)}, got {shape}")  # C1


@op_definition
class MakeShapeOp(BuiltinOp):
    """A shape from integers: `vm.make_shape(%n, %m)`.

    C1: the result's rank is the number of integers.
    """

    name = "vm.make_shape"
    BUILTIN: ClassVar[str] = "make_shape"

    dims = var_operand_def(I64)
    result = result_def(ShapeType)

    traits = traits_def(Pure())

    assembly_format = "`(` $dims `)` attr-dict `:` type($result)"

    def __init__(self, dims: Sequence[SSAValue | Operation]):
        super().__init__(operands=[dims], result_types=[ShapeType(len(dims))])

    @override
    def verify_(self) -> None:
        if self.result.type.rank != len(self.dims):
            raise VerifyException(
                f"'vm.make_shape' op expected {ShapeType(len(self.dims))}, got {self.result.type}"
            )  # C1

"""Shapes and dimensions: `vm.tensor_dim`, `vm.shape_dim`, `vm.read_int`, `vm.shape_of`, `vm.make_shape`."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar, cast

from typing_extensions import override
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from vm_dialect.ops.base import Argument, BuiltinOp, Value, op_definition
from vm_dialect.types import I64, ShapeType, TensorType


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

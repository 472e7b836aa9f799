"""Shapes and dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Operation, SSAValue

from lowering.native.abi import I64, PAYLOAD, PTR, SHAPE, SHAPE_DATA
from lowering.native.function import FunctionLowering
from lowering.native.values import Boxed, Number, Unboxed
from vm_dialect.ops.shapes import MakeShapeOp, ShapeDimOp, ShapeOfOp, TensorDimOp
from vm_dialect.types import ShapeType, TensorType


def lower_tensor_dim(lowering: FunctionLowering, op: TensorDimOp) -> None:
    """A register of an unboxed tensor; a load, checked unless the type tells the rank, of any other."""
    emit, axis, found = lowering.emit, op.axis.value.data, lowering.tensor(op.tensor)
    if isinstance(found, Unboxed):
        lowering.values[op.result] = Number(found.sizes[axis])
    elif isinstance(op.tensor.type, TensorType) and op.tensor.type.rank is not None and found.tensor is not None:
        sizes = emit.load(found.tensor, PTR, SHAPE)
        lowering.values[op.result] = Number(emit.load(sizes, I64, 8 * axis))
    else:
        lowering.values[op.result] = Number(_checked_dim(lowering, "vmrt_tensor_dim", found.address, axis))


def lower_shape_dim(lowering: FunctionLowering, op: ShapeDimOp) -> None:
    """A load, checked unless the type tells the rank."""
    emit, axis, address = lowering.emit, op.axis.value.data, lowering.any_at(op.shape, 0)
    if isinstance(op.shape.type, ShapeType) and op.shape.type.rank is not None:
        sizes = emit.load(emit.load(address, PTR, PAYLOAD), PTR, SHAPE_DATA)
        lowering.values[op.result] = Number(emit.load(sizes, I64, 8 * axis))
    else:
        lowering.values[op.result] = Number(_checked_dim(lowering, "vmrt_shape_dim", address, axis))


def _checked_dim(lowering: FunctionLowering, name: str, address: SSAValue, axis: int) -> SSAValue:
    out = lowering.words.at_least(1)
    lowering.call(name, [out, address, lowering.emit.integer(axis)])
    return lowering.emit.load(out, I64)


def lower_shape_of(lowering: FunctionLowering, op: ShapeOfOp) -> None:
    """A new shape object."""
    found = lowering.tensor(op.tensor)
    if isinstance(found, Unboxed):
        _make_shape(lowering, op.result, found.sizes)
        return
    slot = lowering.result_slot(op.result)
    lowering.call("vmrt_shape_of", [slot, found.address])
    lowering.values[op.result] = Boxed(slot, owned=True)


def lower_make_shape(lowering: FunctionLowering, op: MakeShapeOp) -> None:
    """A new shape object."""
    _make_shape(lowering, op.result, lowering.numbers(op.dims))


def _make_shape(lowering: FunctionLowering, result: SSAValue, sizes: Sequence[SSAValue]) -> None:
    slot = lowering.result_slot(result)
    lowering.call("vmrt_make_shape", [slot, lowering.word_array(sizes), lowering.emit.integer(len(sizes))])
    lowering.values[result] = Boxed(slot, owned=True)


LOWERINGS: dict[type[Operation], Callable[[FunctionLowering, Any], None]] = {
    TensorDimOp: lower_tensor_dim,
    ShapeDimOp: lower_shape_dim,
    ShapeOfOp: lower_shape_of,
    MakeShapeOp: lower_make_shape,
}
"""Of the ops on shapes."""

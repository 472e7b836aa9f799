"""Operators that give a tensor's memory another shape."""

from __future__ import annotations

from lowering.diagnostics import fail
from lowering.relax_to_vm.converter import Converter, converts
from relax_dialect.ops.manipulation import ExpandDimsOp, FlattenOp, ReshapeOp, SqueezeOp
from vm_dialect.ops.memory import ViewOp
from vm_dialect.ops.shapes import ShapeDimOp
from vm_dialect.types import ShapeType


@converts(FlattenOp)
def flatten(converter: Converter, op: FlattenOp) -> None:
    """All elements in one dimension."""
    _view(converter, op)


@converts(ExpandDimsOp)
def expand_dims(converter: Converter, op: ExpandDimsOp) -> None:
    """More dimensions of 1."""
    _view(converter, op)


@converts(SqueezeOp)
def squeeze(converter: Converter, op: SqueezeOp) -> None:
    """Fewer dimensions of 1."""
    _view(converter, op)


@converts(ReshapeOp)
def reshape(converter: Converter, op: ReshapeOp) -> None:
    """The dimensions of the type if it has them, else those of the shape."""
    if op.result.type.known_dims is not None:
        _view(converter, op)
        return
    shape = converter.get(op.shape)
    if not isinstance(shape.type, ShapeType) or shape.type.rank is None:
        fail(op, f"expected a shape of known rank, got {op.shape.type}", "refine it with 'relax.match_cast'")
    dims = [converter.result(ShapeDimOp(shape, axis)) for axis in range(shape.type.rank)]
    converter.set(op.result, converter.result(ViewOp(converter.get(op.x), dims)))


def _view(converter: Converter, op: FlattenOp | ExpandDimsOp | SqueezeOp | ReshapeOp) -> None:
    dims = op.result.type.known_dims
    if dims is None:
        fail(op, f"expected known dimensions, got {op.result.type}", "run 'bind-unknown-dims' first")
    converter.set(op.result, converter.result(ViewOp(converter.get(op.x), converter.sizes.values(dims))))

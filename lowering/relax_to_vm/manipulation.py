"""Operators that give a tensor's memory another shape."""

from __future__ import annotations

from xdsl.pattern_rewriter import RewritePattern

from lowering.diagnostics import fail
from lowering.relax_to_vm.converter import Converter
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.ops.manipulation import ExpandDimsOp, FlattenOp, ReshapeOp, SqueezeOp
from vm_dialect.ops.memory import ViewOp
from vm_dialect.ops.shapes import ShapeDimOp
from vm_dialect.types import ShapeType


class ConvertView(RewritePattern):
    """All elements in one dimension, or with more or fewer dimensions of 1."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: FlattenOp | ExpandDimsOp | SqueezeOp, converter: Converter) -> None:
        _view(converter, op)


class ConvertReshape(RewritePattern):
    """The dimensions of the type if it has them, else those of the shape."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ReshapeOp, converter: Converter) -> None:
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

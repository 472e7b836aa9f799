"""Neural-network layers that are neither activations nor sums of products."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from lowering.relax_to_tir.context import legalizes, rewrites
from lowering.relax_to_tir.kernel import Kernel
from relax_dialect.ops.layers import BatchFlattenOp, DropoutOp, PixelShuffleOp
from relax_dialect.ops.manipulation import ReshapeOp
from relax_dialect.ops.shapes import ShapeOp
from tir_dialect import te


@rewrites(DropoutOp)
def dropout(op: DropoutOp, rewriter: PatternRewriter) -> Sequence[SSAValue]:
    """The tensor itself."""
    return (op.x,)


@rewrites(BatchFlattenOp)
def batch_flatten(op: BatchFlattenOp, rewriter: PatternRewriter) -> Sequence[SSAValue] | None:
    """A reshape, which is a view; one of unknown dimensions is left alone."""
    dims = op.result.type.known_dims
    if dims is None:
        return None
    shape = ShapeOp(dims)
    reshape = ReshapeOp(op.x, shape)
    rewriter.insert([shape, reshape])
    return (reshape.result,)


@legalizes(PixelShuffleOp)
def pixel_shuffle(kernel: Kernel, op: PixelShuffleOp) -> te.Tensor:
    """Every `factor`th row and column from another channel."""
    x, factor = kernel.tensor(op.x), op.upscale_factor.value.data

    def element(*i: te.Expr) -> te.Expr:
        *outer, channel, row, column = i
        position = channel * factor * factor + (row % factor) * factor + column % factor
        return x[(*outer, position, row // factor, column // factor)]

    return te.compute(kernel.shape(op.result), element, name="pixel_shuffle")

"""Operators that move elements and change shapes. Views (`reshape` and its kin) stay: they need no kernel."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from lowering.relax_to_tir.indices import axes_of, axis_of, broadcast_load
from lowering.relax_to_tir.kernel import Kernel, legalizes, rewrites
from relax_dialect.ops.manipulation import (
    BatchFlattenOp,
    BroadcastToOp,
    DropoutOp,
    FlipOp,
    PermuteDimsOp,
    PixelShuffleOp,
    ReshapeOp,
)
from relax_dialect.ops.shapes import ShapeOp
from tir_dialect import te


@legalizes(PermuteDimsOp)
def permute_dims(kernel: Kernel, op: PermuteDimsOp) -> te.Tensor:
    """The dimensions in another order."""
    x = kernel.tensor(op.x)
    axes = tuple(reversed(range(x.ndim))) if op.axes is None else axes_of(op.axes, x.ndim)
    indices = [axes.index(axis) for axis in range(x.ndim)]
    shape = tuple(x.shape[axis] for axis in axes)
    return te.compute(shape, lambda *i: x[tuple(i[index] for index in indices)], name="transpose")


@legalizes(BroadcastToOp)
def broadcast_to(kernel: Kernel, op: BroadcastToOp) -> te.Tensor:
    """Repeated along dimensions of 1."""
    x, shape = kernel.tensor(op.x), kernel.shape(op.result)
    return te.compute(shape, lambda *i: broadcast_load(x, shape, i), name="broadcast_to")


@legalizes(FlipOp)
def flip(kernel: Kernel, op: FlipOp) -> te.Tensor:
    """In reverse order along the axis."""
    x = kernel.tensor(op.x)
    axis = axis_of(op.axis, x.ndim)
    last = x.shape[axis] - 1
    return te.compute(x.shape, lambda *i: x[(*i[:axis], last - i[axis], *i[axis + 1 :])], name="flip")


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

"""Neural-network layers that are neither activations nor sums of products."""

from __future__ import annotations

from math import prod

from relax_dialect.interpreter.frame import Frame, runs
from relax_dialect.interpreter.operators import computes, make_checks
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.layers import BatchFlattenOp, DropoutOp, PixelShuffleOp


@runs(DropoutOp)
def dropout(frame: Frame, op: DropoutOp) -> None:
    """The tensor itself."""
    frame.set_checked(op.result, frame.get(op.x), "result of 'relax.nn.dropout'")


@runs(BatchFlattenOp)
def batch_flatten(frame: Frame, op: BatchFlattenOp) -> None:
    """The same elements in two dimensions."""
    make_checks(frame, op)
    x: Array = frame.get(op.x)
    frame.set_checked(op.result, x.reshape(x.shape[0], prod(x.shape[1:])), "result of 'relax.nn.batch_flatten'")


@computes(PixelShuffleOp)
def pixel_shuffle(op: PixelShuffleOp, x: Array) -> Array:
    """Channels taken apart into channels, rows and columns, which are interleaved with those of the image."""
    *outer, channels, height, width = x.shape
    factor, count = op.upscale_factor.value.data, len(outer)
    parts = x.reshape((*outer, channels // factor**2, factor, factor, height, width))
    order = [*range(count), *(count + at for at in (0, 3, 1, 4, 2))]
    return parts.transpose(order).reshape((*outer, channels // factor**2, height * factor, width * factor))

"""Operators that move elements and change shapes."""

from __future__ import annotations

from math import prod

import numpy as np

from relax_dialect.interpreter.frame import Frame, runs
from relax_dialect.interpreter.operators import computes, integers, make_checks
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.manipulation import (
    BatchFlattenOp,
    BroadcastToOp,
    DropoutOp,
    ExpandDimsOp,
    FlattenOp,
    FlipOp,
    PermuteDimsOp,
    PixelShuffleOp,
    ReshapeOp,
    SqueezeOp,
)


@computes(ReshapeOp)
def reshape(op: ReshapeOp, x: Array, shape: Shape) -> Array:
    """The same elements under another shape."""
    return x.reshape(shape)


@computes(FlattenOp)
def flatten(op: FlattenOp, x: Array) -> Array:
    """The same elements in one dimension."""
    return x.reshape(-1)


@computes(PermuteDimsOp)
def permute_dims(op: PermuteDimsOp, x: Array) -> Array:
    """The dimensions in another order."""
    return np.transpose(x, integers(op.axes))


@computes(ExpandDimsOp)
def expand_dims(op: ExpandDimsOp, x: Array) -> Array:
    """More dimensions of 1."""
    return np.expand_dims(x, integers(op.axes) or ())


@computes(SqueezeOp)
def squeeze(op: SqueezeOp, x: Array) -> Array:
    """Fewer dimensions of 1."""
    return np.squeeze(x, integers(op.axes))


@computes(BroadcastToOp)
def broadcast_to(op: BroadcastToOp, x: Array, shape: Shape) -> Array:
    """Repeated along dimensions of 1."""
    return np.broadcast_to(x, shape)


@computes(FlipOp)
def flip(op: FlipOp, x: Array) -> Array:
    """In reverse order."""
    return np.flip(x, op.axis.value.data)


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

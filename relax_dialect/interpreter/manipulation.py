"""Operators that move elements and change shapes."""

from __future__ import annotations

import numpy as np

from relax_dialect.interpreter.operators import computes
from relax_dialect.interpreter.properties import integers
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.manipulation import (
    BroadcastToOp,
    ExpandDimsOp,
    FlattenOp,
    FlipOp,
    PermuteDimsOp,
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

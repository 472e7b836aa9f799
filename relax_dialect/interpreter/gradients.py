"""Gradients of pooling; 16-bit floats are summed in `f32`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relax_dialect.interpreter.convolution import arranged
from relax_dialect.interpreter.operators import DimValues, computes_in, wide
from relax_dialect.interpreter.pooling import elements_counted, spatial_lengths, window_positions, within
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.gradients import AvgPool2dBackwardOp, MaxPool2dBackwardOp, PoolGradientOp
from relax_dialect.ops.layouts import Layout

_LETTERS = "NCHW"


def _gathered(
    op: PoolGradientOp, x: Array, gradient: Array, positions: Sequence[Sequence[Array]], share: Callable[..., Array]
) -> Array:
    """The sum of what `share` gives of each window's gradient to its elements, of which the positions are given."""
    data = wide(arranged(x, op.layouts[0], _LETTERS))
    given = wide(arranged(gradient, op.layouts[1], _LETTERS))
    result = np.zeros(data.shape, data.dtype)
    for window in np.ndindex(*given.shape[2:]):
        own: list[Array] = [positions[axis][at] for axis, at in enumerate(window)]
        at = (slice(None), slice(None), *np.ix_(*own))
        if all(map(len, own)):
            result[at] += share(data[at], given[(..., *window)][..., None, None], window)
    return arranged(result.astype(x.dtype), Layout(_LETTERS), op.layouts[0].text)


@computes_in(MaxPool2dBackwardOp)
def max_pool_backward(dims: DimValues, op: MaxPool2dBackwardOp, x: Array, gradient: Array) -> Sequence[Array]:
    """Each window's gradient at its first greatest element."""
    lengths = spatial_lengths(op, x)
    positions = within(window_positions(op, [dims(size) for size in op.pool_size], lengths)[1], lengths)

    def share(part: Array, given: Array, window: Sequence[int]) -> Array:
        flat = part.reshape(*part.shape[:2], part.shape[2] * part.shape[3])
        first = np.zeros(flat.shape, bool)
        np.put_along_axis(first, np.argmax(flat, axis=2)[..., None], True, axis=2)
        return np.where(first.reshape(part.shape), given, 0)

    return (_gathered(op, x, gradient, positions, share),)


@computes_in(AvgPool2dBackwardOp)
def avg_pool_backward(dims: DimValues, op: AvgPool2dBackwardOp, x: Array, gradient: Array) -> Sequence[Array]:
    """Each window's gradient by how many its mean was divided by, at all its elements."""
    lengths = spatial_lengths(op, x)
    _, positions = window_positions(op, [dims(size) for size in op.pool_size], lengths)
    counted = elements_counted(op, positions, lengths)

    def share(part: Array, given: Array, window: Sequence[int]) -> Array:
        return np.broadcast_to(given / given.dtype.type(max(counted(window), 1)), part.shape)

    return (_gathered(op, x, gradient, within(positions, lengths), share),)

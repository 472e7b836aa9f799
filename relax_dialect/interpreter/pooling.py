"""Pooling; 16-bit floats are summed in `f32`, integers in `i64`. The mean of a window without elements is 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relax_dialect.interpreter.convolution import arranged
from relax_dialect.interpreter.operators import DimValues, computes_in, wide
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.layouts import Layout, spatial_letters
from relax_dialect.ops.pooling import (
    AdaptiveAvgPool1dOp,
    AdaptiveAvgPool2dOp,
    AdaptiveAvgPool3dOp,
    AdaptiveAvgPoolOp,
    AvgPool1dOp,
    AvgPool2dBackwardOp,
    AvgPool2dOp,
    AvgPool3dOp,
    AvgPoolOp,
    MaxPool1dOp,
    MaxPool2dBackwardOp,
    MaxPool2dOp,
    MaxPool3dOp,
    MaxPoolOp,
    PoolBase,
    PoolGradientOp,
    WindowPoolOp,
)
from tir_dialect.dims import constant


def _pooled(
    op: PoolBase, x: Array, counts: Sequence[int], positions: Sequence[Sequence[Array]], combine: Callable[..., Array]
) -> Array:
    """`combine` of the elements of each window, whose positions along each axis are given."""
    letters = "NC" + spatial_letters(op.RANK)
    data = arranged(x, op.layouts[0], letters)
    result = np.empty((*data.shape[:2], *counts), x.dtype)
    for window in np.ndindex(*counts):
        own: list[Array] = [positions[axis][at] for axis, at in enumerate(window)]
        result[(..., *window)] = combine(data[(slice(None), slice(None), *np.ix_(*own))], window)
    return arranged(result, Layout(letters), op.layouts[1].text)


def window_positions(
    op: WindowPoolOp, sizes: Sequence[int], lengths: Sequence[int]
) -> tuple[list[int], list[list[Array]]]:
    """How many windows of these sizes there are along each axis, and the positions of each, also outside of the
    data.
    """
    windows = op.windows
    counts: list[int] = []
    positions: list[list[Array]] = []
    for axis, length in enumerate(lengths):
        found = windows.count(axis, constant(length), constant(sizes[axis]), op.ceil_mode is not None)
        counts.append(0 if found is None else found.constant_term)
        first = [at * windows.strides[axis] - windows.padding[axis] for at in range(counts[-1])]
        positions.append([start + windows.dilation[axis] * np.arange(sizes[axis]) for start in first])
    return counts, positions


def spatial_lengths(op: PoolBase, x: Array) -> list[int]:
    """The spatial dimensions of the data."""
    return [x.shape[op.layouts[0].index(letter)] for letter in spatial_letters(op.RANK)]


def within(positions: Sequence[Sequence[Array]], lengths: Sequence[int]) -> list[list[Array]]:
    """The positions within the data."""
    pairs = zip(positions, lengths, strict=True)
    return [[each[(each >= 0) & (each < length)] for each in axis] for axis, length in pairs]


@computes_in(MaxPool1dOp, MaxPool2dOp, MaxPool3dOp)
def max_pool(dims: DimValues, op: MaxPoolOp, x: Array) -> Sequence[Array]:
    """The greatest element of each window; the least number there is for a window in the padding."""
    lengths = spatial_lengths(op, x)
    counts, positions = window_positions(op, [dims(size) for size in op.pool_size], lengths)
    least = -np.inf if np.issubdtype(wide(x).dtype, np.floating) else np.iinfo(x.dtype.type).min

    def combine(part: Array, window: Sequence[int]) -> Array:
        return np.max(wide(part), axis=tuple(range(2, 2 + op.RANK)), initial=least)

    return (_pooled(op, x, counts, within(positions, lengths), combine),)


def _mean(total: Array, count: int) -> Array:
    if np.issubdtype(total.dtype, np.floating):
        return total / total.dtype.type(max(count, 1))
    return np.trunc(total / max(count, 1))


def _sum(part: Array, rank: int) -> Array:
    w = wide(part)
    dtype = w.dtype if np.issubdtype(w.dtype, np.floating) else np.int64
    return np.sum(w, axis=tuple(range(2, 2 + rank)), dtype=dtype)


@computes_in(AvgPool1dOp, AvgPool2dOp, AvgPool3dOp)
def avg_pool(dims: DimValues, op: AvgPoolOp, x: Array) -> Sequence[Array]:
    """The mean of each window."""
    lengths = spatial_lengths(op, x)
    counts, positions = window_positions(op, [dims(size) for size in op.pool_size], lengths)
    counted = elements_counted(op, positions, lengths)

    def combine(part: Array, window: Sequence[int]) -> Array:
        return _mean(_sum(part, op.RANK), counted(window))

    return (_pooled(op, x, counts, within(positions, lengths), combine),)


def elements_counted(
    op: WindowPoolOp, positions: Sequence[Sequence[Array]], lengths: Sequence[int]
) -> Callable[[Sequence[int]], int]:
    """How many elements a window's sum is divided by: those in the data, or in the padding too."""
    counted = within(positions, lengths)
    if op.count_include_pad is not None:
        ends = [length + after for length, after in zip(lengths, op.windows.padding[op.RANK :], strict=True)]
        counted = [[each[each < end] for each in axis] for axis, end in zip(positions, ends, strict=True)]
    sizes = [[each.size for each in axis] for axis in counted]
    return lambda window: int(np.prod([sizes[axis][at] for axis, at in enumerate(window)], dtype=np.int64))


@computes_in(AdaptiveAvgPool1dOp, AdaptiveAvgPool2dOp, AdaptiveAvgPool3dOp)
def adaptive_avg_pool(dims: DimValues, op: AdaptiveAvgPoolOp, x: Array) -> Sequence[Array]:
    """The mean of each of the windows into which the data is cut."""
    counts = [dims(size) for size in op.output_size]
    positions = [
        [np.arange(at * length // count, -(-(at + 1) * length // count)) for at in range(count)]
        for length, count in zip(spatial_lengths(op, x), counts, strict=True)
    ]

    def combine(part: Array, window: Sequence[int]) -> Array:
        return _mean(_sum(part, op.RANK), int(np.prod(part.shape[2:], dtype=np.int64)))

    return (_pooled(op, x, counts, positions, combine),)


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

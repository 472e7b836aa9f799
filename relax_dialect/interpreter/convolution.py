"""Convolutions, their transposes and deformable ones, columns folded into images; and pooling.

16-bit floats are summed in `f32`, integers of pooling in `i64`. The mean of a window without elements is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from relax_dialect.interpreter.manipulation import relaid
from relax_dialect.interpreter.operators import DimValues, computes, computes_in, einsum, result_dtype, wide
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.convolution import (
    Col2ImOp,
    Conv1dOp,
    Conv1dTransposeOp,
    Conv2dOp,
    Conv2dTransposeOp,
    Conv3dOp,
    Conv3dTransposeOp,
    ConvolutionOp,
    DeformConv2dOp,
    ForwardConvolutionOp,
    TransposedConvolutionOp,
)
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


def arranged(x: Array, source: Layout, target: str) -> Array:
    """A tensor in another layout."""
    return relaid(x, source.dims, Layout(target).dims)


def _operands(op: ConvolutionOp, x: Array, w: Array) -> tuple[Array, Array, np.dtype[Any]]:
    """Data and kernel with leading dimensions batch, group, channel and group, out, in; and the dtype of the result."""
    spatial, groups, dtype = spatial_letters(op.RANK), op.groups.value.data, result_dtype(op, x)
    data_layout, kernel_layout, _ = op.layouts
    data = arranged(wide(x.astype(dtype, copy=False)), data_layout, "NC" + spatial)
    data = data.reshape((data.shape[0], groups, data.shape[1] // groups, *data.shape[2:]))
    kernel = arranged(wide(w.astype(dtype, copy=False)), kernel_layout, "OI" + spatial)
    return data, kernel, dtype


def _result(op: ConvolutionOp, summed: Array, dtype: np.dtype[Any]) -> Array:
    """The sums, with leading dimensions batch, group and channel, in the layout of the result."""
    joined = summed.reshape((summed.shape[0], summed.shape[1] * summed.shape[2], *summed.shape[3:]))
    return arranged(joined, Layout("NC" + spatial_letters(op.RANK)), op.layouts[2].text).astype(dtype)


@computes(Conv1dOp, Conv2dOp, Conv3dOp)
def convolution(op: ForwardConvolutionOp, x: Array, w: Array) -> Array:
    """The sum over all positions of the window of products summed over the channels."""
    data, kernel, dtype = _operands(op, x, w)
    windows, groups = op.windows, op.groups.value.data
    kernel = kernel.reshape((groups, kernel.shape[0] // groups, *kernel.shape[1:]))
    sizes = kernel.shape[3:]
    padding = zip(windows.padding[: op.RANK], windows.padding[op.RANK :], strict=True)
    data = padded(data, [(0, 0)] * 3 + list(padding))
    counts = [
        (length - dilation * (size - 1) - 1) // stride + 1
        for length, size, stride, dilation in zip(data.shape[3:], sizes, windows.strides, windows.dilation, strict=True)
    ]
    summed = np.zeros((data.shape[0], groups, kernel.shape[1], *counts), data.dtype)
    for position in np.ndindex(*sizes):
        starts = [at * dilation for at, dilation in zip(position, windows.dilation, strict=True)]
        part = data[(..., *map(steps, starts, windows.strides, counts))]
        summed += einsum("ngc...,goc->ngo...", part, kernel[(..., *position)])
    return _result(op, summed, dtype)


def padded(x: Array, widths: Sequence[tuple[int, int]]) -> Array:
    """Zeros added, or with negative widths elements taken away."""
    cut = [slice(max(-low, 0), length - max(-high, 0)) for (low, high), length in zip(widths, x.shape, strict=True)]
    return np.pad(x[tuple(cut)], [(max(low, 0), max(high, 0)) for low, high in widths])


def steps(start: int, stride: int, count: int) -> slice:
    """`count` positions from `start` on."""
    return slice(start, start + stride * (count - 1) + 1 if count > 0 else start, stride)


@computes(Conv1dTransposeOp, Conv2dTransposeOp, Conv3dTransposeOp)
def transposed_convolution(op: TransposedConvolutionOp, x: Array, w: Array) -> Array:
    """Every element spread over a window, scaled by the kernel."""
    data, kernel, dtype = _operands(op, x, w)
    windows, groups = op.windows, op.groups.value.data
    kernel = kernel.reshape((kernel.shape[0], groups, kernel.shape[1] // groups, *kernel.shape[2:]))
    lengths, sizes = data.shape[3:], kernel.shape[3:]
    full = [
        max((length - 1) * stride + dilation * (size - 1) + 1, 0) + extra
        for length, size, stride, dilation, extra in zip(
            lengths, sizes, windows.strides, windows.dilation, op.output_paddings, strict=True
        )
    ]
    summed = np.zeros((data.shape[0], groups, kernel.shape[0], *full), data.dtype)
    for position in np.ndindex(*sizes):
        starts = [at * dilation for at, dilation in zip(position, windows.dilation, strict=True)]
        target = (..., *map(steps, starts, windows.strides, lengths))
        summed[target] += einsum("ngc...,ogc->ngo...", data, kernel[(..., *position)])
    cut = zip(windows.padding[: op.RANK], windows.padding[op.RANK :], strict=True)
    return _result(op, padded(summed, [(0, 0)] * 3 + [(-low, -high) for low, high in cut]), dtype)


@computes(DeformConv2dOp)
def deform_conv2d(op: DeformConv2dOp, x: Array, w: Array, offsets: Array, mask: Array) -> Array:
    """The elements at the moved positions of windows, weighed by mask and kernel."""
    data, kernel, moves, factors = (wide(each) for each in (x, w, offsets, mask))
    groups, parts, (height, width) = op.groups.value.data, op.offset_groups.value.data, w.shape[2:]
    batch, _, rows, columns = mask.shape
    taken = np.zeros((batch, x.shape[1], height, width, rows, columns), data.dtype)
    size = x.shape[1] // parts
    for part, ky, kx in product(range(parts), range(height), range(width)):
        position = (part * height + ky) * width + kx
        y = _start(op, 0, ky, rows)[:, None] + moves[:, 2 * position]
        across = _start(op, 1, kx, columns) + moves[:, 2 * position + 1]
        own = slice(part * size, (part + 1) * size)
        taken[:, own, ky, kx] = _between(data[:, own], y, across) * factors[:, position, None]
    inner = w.shape[1] * height * width
    taken = taken.reshape((batch, groups, inner, rows * columns))
    flat = kernel.reshape((groups, w.shape[0] // groups, inner))
    return einsum("ngkp,gok->ngop", taken, flat).reshape((batch, w.shape[0], rows, columns)).astype(x.dtype)


def _start(op: DeformConv2dOp, axis: int, tap: int, count: int) -> Array:
    windows = op.windows
    return np.arange(count) * windows.strides[axis] + tap * windows.dilation[axis] - windows.padding[axis]


def _between(data: Array, y: Array, x: Array) -> Array:
    """Images at positions between their elements, zeros outside; by batch, channel and position."""
    top, left = np.floor(y), np.floor(x)
    total = np.zeros((*data.shape[:2], *y.shape[1:]), data.dtype)
    for below, right in product((0, 1), (0, 1)):
        row, column = top + below, left + right
        inside = (row >= 0) & (row < data.shape[2]) & (column >= 0) & (column < data.shape[3])
        weight = np.where(below, y - top, 1 - y + top) * np.where(right, x - left, 1 - x + left)
        rows, columns = (np.where(inside, each, 0).astype(np.int64) for each in (row, column))
        for number, image in enumerate(data if data.shape[2] and data.shape[3] else []):
            value = image[:, rows[number], columns[number]] * weight[number]
            total[number] += np.where(inside[number], value, 0).astype(data.dtype)
    return total


@computes(Col2ImOp)
def col2im(op: Col2ImOp, x: Array, size: Shape) -> Array:
    """Every column added to the positions of its window."""
    window, windows, rank = tuple(op.window.get_values()), op.windows, len(op.window)
    found = [windows.count(axis, constant(size[axis]), constant(window[axis])) for axis in range(rank)]
    counts = [0 if count is None else count.constant_term for count in found]
    columns = wide(x).reshape((x.shape[0], x.shape[1] // int(np.prod(window)), *window, *counts))
    result = np.zeros((*columns.shape[:2], *size), columns.dtype)
    for at in np.ndindex(*window, *counts):
        pairs = zip(at[rank:], at[:rank], windows.strides, windows.dilation, windows.padding, strict=False)
        position = [window * stride + tap * dilation - low for window, tap, stride, dilation, low in pairs]
        if all(0 <= each < length for each, length in zip(position, size, strict=True)):
            result[(..., *position)] += columns[(..., *at)]
    return result.astype(x.dtype)


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

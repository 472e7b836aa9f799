"""Convolutions, their transposes and deformable ones, and columns folded into images; 16-bit floats are summed in
`f32`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from relax_dialect.interpreter.operators import computes, einsum, result_dtype, wide
from relax_dialect.interpreter.rearranging import relaid
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

"""Convolution over moved windows, and columns folded into images; 16-bit floats are summed in `f32`."""

from __future__ import annotations

from itertools import product

import numpy as np

from relax_dialect.interpreter.contraction import einsum
from relax_dialect.interpreter.operators import computes, wide
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.deformable import Col2ImOp, DeformConv2dOp
from tir_dialect.dims import constant


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

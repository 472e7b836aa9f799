"""Convolutions and their transposes; 16-bit floats are summed in `f32`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_dialect.interpreter.contraction import einsum
from relax_dialect.interpreter.operators import computes, result_dtype, wide
from relax_dialect.interpreter.rearranging import relaid
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.convolution import (
    Conv1dOp,
    Conv1dTransposeOp,
    Conv2dOp,
    Conv2dTransposeOp,
    Conv3dOp,
    Conv3dTransposeOp,
    ConvolutionOp,
    ForwardConvolutionOp,
    TransposedConvolutionOp,
)
from relax_dialect.ops.layouts import Layout
from relax_dialect.ops.windows import spatial_letters


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

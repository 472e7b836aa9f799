"""Convolutions and their transposes; 16-bit floats are summed in `f32`."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.legalize.context import legalizes
from lowering.legalize.kernel import Kernel
from lowering.legalize.scalars import widen
from lowering.legalize.windows import Laid, laid_out, within
from relax_dialect.ops.convolution import (
    Conv1dOp,
    Conv1dTransposeOp,
    Conv2dOp,
    Conv2dTransposeOp,
    Conv3dOp,
    Conv3dTransposeOp,
    ForwardConvolutionOp,
    TransposedConvolutionOp,
)
from relax_dialect.ops.windows import spatial_letters
from tir_dialect import te


def convolution(kernel: Kernel, op: ForwardConvolutionOp) -> te.Tensor:
    """Sums over the channels of a group and the window, of products with the padded data."""
    spatial, windows = spatial_letters(op.RANK), op.windows
    data_layout, kernel_layout, out_layout = op.layouts
    dtype = str(kernel.dtype(op.result))
    w = Laid(kernel.tensor(op.w), kernel_layout)
    x = Laid(kernel.tensor(op.x), data_layout)
    if any(windows.padding):
        x = Laid(_padded(x, windows.padding, spatial), data_layout)
    filters, channels, *sizes = w.extents("OI" + spatial)
    groups = op.groups.value.data
    axes = [te.reduce_axis(channels, "c"), *(te.reduce_axis(size, f"k{at}") for at, size in enumerate(sizes))]
    steps = list(zip(windows.strides, windows.dilation, strict=True))

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        batch, out, *places = i
        channel = axes[0] if groups == 1 else out // (filters // groups) * channels + axes[0]
        sources = [at * stride + k * d for at, k, (stride, d) in zip(places, axes[1:], steps, strict=True)]
        left = x.at("NC" + spatial, (batch, channel, *sources))
        right = w.at("OI" + spatial, (out, *axes))
        return te.cast(te.sum(widen(te.cast(left, dtype)) * widen(te.cast(right, dtype)), axes), dtype)

    return laid_out(kernel.shape(op.result), out_layout, "NC" + spatial, element, f"conv{op.RANK}d")


def _padded(x: Laid, padding: Sequence[int], spatial: str) -> te.Tensor:
    """The data with zeros around it."""
    rank, tensor = len(spatial), x.tensor
    letters = x.layout.letters
    before = [padding[spatial.index(letter)] if letter in spatial else 0 for letter in letters]
    after = [padding[spatial.index(letter) + rank] if letter in spatial else 0 for letter in letters]
    shape = [length + low + high for length, low, high in zip(tensor.shape, before, after, strict=True)]
    moved = [axis for axis in range(tensor.ndim) if before[axis] or after[axis]]

    def element(*i: te.Expr) -> te.Expr:
        places = [each - low for each, low in zip(i, before, strict=True)]
        inside = within([places[axis] for axis in moved], [tensor.shape[axis] for axis in moved])
        return te.if_then_else(inside, tensor[tuple(places)], te.const(0, tensor.dtype))

    return te.compute(shape, element, name="padded")


for _op in (Conv1dOp, Conv2dOp, Conv3dOp):
    legalizes(_op)(convolution)


def transposed_convolution(kernel: Kernel, op: TransposedConvolutionOp) -> te.Tensor:
    """Sums over the elements of the data whose windows reach a place."""
    spatial, windows = spatial_letters(op.RANK), op.windows
    data_layout, kernel_layout, out_layout = op.layouts
    dtype = str(kernel.dtype(op.result))
    x, w = Laid(kernel.tensor(op.x), data_layout), Laid(kernel.tensor(op.w), kernel_layout)
    filters, channels, *sizes = w.extents("OI" + spatial)
    groups, lengths = op.groups.value.data, x.extents(spatial)
    inner = channels if groups == 1 else channels // groups
    axes = [te.reduce_axis(inner, "c"), *(te.reduce_axis(size, f"k{at}") for at, size in enumerate(sizes))]
    steps = list(zip(windows.strides, windows.dilation, windows.padding[: op.RANK], strict=True))

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        batch, out, *places = i
        channel = axes[0] if groups == 1 else out // filters * inner + axes[0]
        filter = out if groups == 1 else out % filters
        # The place before the stride spread it; only multiples of the stride come from an element.
        spread = [at + low - k * d for at, k, (_, d, low) in zip(places, axes[1:], steps, strict=True)]
        sources = [each // stride for each, (stride, _, _) in zip(spread, steps, strict=True)]
        whole = [each % stride == 0 for each, (stride, _, _) in zip(spread, steps, strict=True) if stride > 1]
        left = x.at("NC" + spatial, (batch, channel, *sources))
        right = w.at("OI" + spatial, (filter, channel, *axes[1:]))
        product = widen(te.cast(left, dtype)) * widen(te.cast(right, dtype))
        return te.cast(te.sum(product, axes, where=te.logical_and(within(sources, lengths), *whole)), dtype)

    return laid_out(kernel.shape(op.result), out_layout, "NC" + spatial, element, f"conv{op.RANK}d_transpose")


for _op in (Conv1dTransposeOp, Conv2dTransposeOp, Conv3dTransposeOp):
    legalizes(_op)(transposed_convolution)

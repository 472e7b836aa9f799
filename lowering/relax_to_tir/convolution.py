"""Convolutions and their transposes; 16-bit floats are summed in `f32`."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.scalars import widen
from lowering.relax_to_tir.windows import Channel, Laid, laid_out, taken_apart, within
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
from relax_dialect.ops.layouts import Layout
from relax_dialect.ops.windows import spatial_letters
from tir_dialect import te
from tir_dialect.dims import Dim


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
    seen = _Group(filters, channels, op.groups.value.data, data_layout.blocks.get("C"))
    axes = [te.reduce_axis(size, f"k{at}") for at, size in enumerate(sizes)]
    steps = list(zip(windows.strides, windows.dilation, strict=True))

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        batch, out, positions = taken_apart(i, out_layout)
        sources = [at * stride + k * d for at, k, (stride, d) in zip(positions, axes, steps, strict=True)]
        left = x.at("NC" + spatial, (batch, seen.channel(out), *sources))
        right = w.at("OI" + spatial, (out, seen.member, *axes))
        products = widen(te.cast(left, dtype)) * widen(te.cast(right, dtype))
        return te.cast(te.sum(products, [*seen.axes, *axes]), dtype)

    return laid_out(kernel.shape(op.result), out_layout, _letters(out_layout, spatial), element, f"conv{op.RANK}d")


def _letters(layout: Layout, spatial: str) -> str:
    return "N" + layout.parts("C") + spatial


class _Group:
    """The channels that a filter sees: `member` is one of those of its group, which the sum runs over along `axes`."""

    def __init__(self, filters: Dim, channels: Dim, groups: int, block: int | None):
        """`filters` is how many filters there are, `channels` how many channels a group sees, of data in blocks."""
        self.groups, self.channels, self.block = groups, channels, block
        self.filters = filters // groups
        if block is not None and (channels % block).constant_value == 0:
            self.axes = [te.reduce_axis(channels // block, "c"), te.reduce_axis(block, "b")]
            self.member = Channel(self.axes[0], self.axes[1], block)
        else:
            self.axes = [te.reduce_axis(channels, "c")]
            self.member = Channel(self.axes[0])

    def _are_within_blocks(self, size: int) -> bool:
        """Whether blocks of filters hold whole groups, whose channels are in the same block of the data."""
        members = self.filters.constant_value or 0
        return self.block == size > members > 0 and self.filters is self.channels and size % members == 0

    def channel(self, out: Channel) -> Channel:
        """The member as a channel of the data, for a filter."""
        member = self.member
        if self.groups == 1:
            return member
        if self.filters.constant_value == 1 and self.channels.constant_value == 1:
            return out
        if out.inner is not None and self._are_within_blocks(out.size):
            return Channel(out.outer, out.inner // self.filters * self.filters + member.outer, out.size)
        if out.inner is not None and (self.filters % out.size).constant_value == 0:
            group = out.outer // (self.filters // out.size)
        else:
            group = out.whole // self.filters
        count = self.channels // member.size
        return Channel(group * count + member.outer, member.inner, member.size)


def _padded(x: Laid, padding: Sequence[int], spatial: str) -> te.Tensor:
    """The data with zeros around it."""
    rank, tensor = len(spatial), x.tensor
    letters = x.layout.letters
    before = [padding[spatial.index(letter)] if letter in spatial else 0 for letter in letters]
    after = [padding[spatial.index(letter) + rank] if letter in spatial else 0 for letter in letters]
    shape = [length + low + high for length, low, high in zip(tensor.shape, before, after, strict=True)]
    moved = [axis for axis in range(tensor.ndim) if before[axis] or after[axis]]

    def element(*i: te.Expr) -> te.Expr:
        positions = [each - low for each, low in zip(i, before, strict=True)]
        inside = within([positions[axis] for axis in moved], [tensor.shape[axis] for axis in moved])
        return te.if_then_else(inside, tensor[tuple(positions)], te.const(0, tensor.dtype))

    return te.compute(shape, element, name="padded")


for _op in (Conv1dOp, Conv2dOp, Conv3dOp):
    legalizes(_op)(convolution)


def transposed_convolution(kernel: Kernel, op: TransposedConvolutionOp) -> te.Tensor:
    """Sums over the elements of the data whose windows reach a position."""
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
        batch, made, positions = taken_apart(i, out_layout)
        out = made.whole
        channel = axes[0] if groups == 1 else out // filters * inner + axes[0]
        filter = out if groups == 1 else out % filters
        # The position before the stride spread it; only multiples of the stride come from an element.
        spread = [at + low - k * d for at, k, (_, d, low) in zip(positions, axes[1:], steps, strict=True)]
        sources = [each // stride for each, (stride, _, _) in zip(spread, steps, strict=True)]
        whole = [each % stride == 0 for each, (stride, _, _) in zip(spread, steps, strict=True) if stride > 1]
        left = x.at("NC" + spatial, (batch, Channel(channel), *sources))
        right = w.at("OI" + spatial, (Channel(filter), Channel(channel), *axes[1:]))
        product = widen(te.cast(left, dtype)) * widen(te.cast(right, dtype))
        return te.cast(te.sum(product, axes, where=te.logical_and(within(sources, lengths), *whole)), dtype)

    letters = _letters(out_layout, spatial)
    return laid_out(kernel.shape(op.result), out_layout, letters, element, f"conv{op.RANK}d_transpose")


for _op in (Conv1dTransposeOp, Conv2dTransposeOp, Conv3dTransposeOp):
    legalizes(_op)(transposed_convolution)

"""Convolutions, their transposes and deformable ones, and columns folded into images; 16-bit floats are summed in
`f32`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from lowering.relax_to_tir.elementwise import widen
from lowering.relax_to_tir.indices import ravel
from lowering.relax_to_tir.kernel import Kernel, legalizes
from lowering.relax_to_tir.windows import Channel, Laid, laid_out, taken_apart, within
from relax_dialect.ops.convolution import (
    Col2ImOp,
    Conv1dOp,
    Conv1dTransposeOp,
    Conv2dOp,
    Conv2dTransposeOp,
    Conv3dOp,
    Conv3dTransposeOp,
    DeformConv2dOp,
    ForwardConvolutionOp,
    TransposedConvolutionOp,
)
from relax_dialect.ops.layouts import Layout, spatial_letters
from tir_dialect import te
from tir_dialect.dims import Dim, constant, floordiv


@legalizes(Conv1dOp, Conv2dOp, Conv3dOp)
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


@legalizes(Conv1dTransposeOp, Conv2dTransposeOp, Conv3dTransposeOp)
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


@legalizes(DeformConv2dOp)
def deform_conv2d(kernel: Kernel, op: DeformConv2dOp) -> te.Tensor:
    """The elements at the moved positions of windows, then sums over channels and window."""
    x, w, mask = kernel.tensor(op.x), kernel.tensor(op.w), kernel.tensor(op.mask)
    shape, groups = kernel.shape(op.result), op.groups.value.data
    filters, channels, height, width = w.shape
    taken = _taken(kernel, op, (x.shape[0], x.shape[1], height, width, mask.shape[2], mask.shape[3]))
    axes = [te.reduce_axis(extent, name) for extent, name in zip((channels, height, width), "cyx", strict=True)]

    def element(*i: te.Expr) -> te.Expr:
        batch, out, row, column = i
        c, ky, kx = axes
        channel = c if groups == 1 else out // (filters // groups) * channels + c
        return te.cast(te.sum(taken[batch, channel, ky, kx, row, column] * widen(w[out, c, ky, kx]), axes), x.dtype)

    return te.compute(shape, element, name="deform_conv2d")


def _taken(kernel: Kernel, op: DeformConv2dOp, shape: tuple[Dim, ...]) -> te.Tensor:
    """The elements that the positions of all windows see; by batch, channel, position in the window and window."""
    x, offsets, mask = (kernel.tensor(each) for each in (op.x, op.offsets, op.mask))
    windows, parts = op.windows, op.offset_groups.value.data
    size = floordiv(x.shape[1], parts)

    def element(*i: te.Expr) -> te.Expr:
        batch, channel, ky, kx, row, column = i
        part = channel // size if parts > 1 else te.cast(constant(0), "index")
        position = ravel((part, ky, kx), (constant(parts), shape[2], shape[3]))
        moved: list[te.Expr] = []
        for axis, (tap, at) in enumerate(((ky, row), (kx, column))):
            offset = widen(offsets[batch, position * 2 + axis, row, column])
            start = at * windows.strides[axis] + tap * windows.dilation[axis] - windows.padding[axis]
            moved.append(te.cast(start, offset.dtype) + offset)
        return _between(x, (batch, channel), moved) * widen(mask[batch, position, row, column])

    return te.compute(shape, element, name="taken")


def _between(x: te.Tensor, outer: tuple[te.Expr, te.Expr], position: list[te.Expr]) -> te.Expr:
    """An image at a position between its elements, zeros outside."""
    sides: list[list[tuple[te.Expr, te.Expr, te.Expr]]] = []
    for at, length in zip(position, x.shape[2:], strict=True):
        size = te.cast(te.cast(length, "index"), at.dtype)
        # Far outside, so that the conversion to an integer is defined.
        bounded = te.maximum(te.minimum(at, size + 1), -2)
        first = te.floor(bounded)
        low, rest = te.cast(te.cast(first, "i64"), "index"), bounded - first
        pairs = ((low, 1 - rest), (low + 1, rest))
        sides.append([(index, within([index], [length]), weight) for index, weight in pairs])
    parts: list[te.Expr] = []
    for row, in_rows, above in sides[0]:
        for column, in_columns, before in sides[1]:
            inside = te.logical_and(in_rows, in_columns)
            value = te.if_then_else(inside, x[(*outer, row, column)], te.const(0, x.dtype))
            parts.append(widen(value) * above * before)
    return reduce(lambda p, q: p + q, parts)


@legalizes(Col2ImOp)
def col2im(kernel: Kernel, op: Col2ImOp) -> te.Tensor:
    """Sums over the windows that reach a position."""
    x, shape = kernel.tensor(op.x), kernel.shape(op.result)
    window, windows = tuple(op.window.get_values()), op.windows
    found = [windows.count(axis, length, constant(window[axis])) for axis, length in enumerate(shape[2:])]
    counts = [count for count in found if count is not None]
    axes = [te.reduce_axis(constant(extent), f"k{axis}") for axis, extent in enumerate(window)]

    def element(*i: te.Expr) -> te.Expr:
        batch, channel, *position = i
        starts = [
            at + low - tap * dilation
            for at, tap, low, dilation in zip(position, axes, windows.padding, windows.dilation, strict=False)
        ]
        positions = [start // stride for start, stride in zip(starts, windows.strides, strict=True)]
        whole = [start % stride == 0 for start, stride in zip(starts, windows.strides, strict=True) if stride > 1]
        row = ravel((channel, *axes), (shape[1], *map(constant, window)))
        reached = te.logical_and(within(positions, counts), *whole)
        value = te.if_then_else(reached, x[batch, row, ravel(positions, counts)], te.const(0, x.dtype))
        total = te.sum(widen(value), axes)
        return te.cast(total, x.dtype)

    return te.compute(shape, element, name="col2im")

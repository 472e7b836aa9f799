"""Convolutions, their transposes and deformable ones, columns folded into images; and pooling.

16-bit floats are summed in `f32`, integers of pooling in `i64`. The mean of a window without elements is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from lowering.relax_to_tir.elementwise import is_float_expr, narrow, widen
from lowering.relax_to_tir.kernel import Kernel, legalizes, ravel
from lowering.relax_to_tir.sorting import FIRST_GREATEST
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
    PoolGradientOp,
    WindowPoolOp,
)
from tir_dialect import te
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, product


@dataclass(frozen=True)
class Channel:
    """A channel of data in blocks of `size`: a block and the position in it; or a channel as it is."""

    outer: te.Expr
    inner: te.Expr | None = None
    size: int = 1

    @property
    def whole(self) -> te.Expr:
        """The number of the channel."""
        return self.outer if self.inner is None else self.outer * self.size + self.inner

    def parts(self, size: int | None) -> tuple[te.Expr, ...]:
        """The block of `size` and the position in it; without a size, the channel."""
        if size is None:
            return (self.whole,)
        if self.inner is not None and size == self.size:
            return self.outer, self.inner
        return self.whole // size, self.whole % size


class Laid:
    """A tensor whose dimensions are called by letters."""

    def __init__(self, tensor: te.Tensor, layout: Layout):
        self.tensor = tensor
        self.layout = layout

    def extents(self, letters: str) -> tuple[Dim, ...]:
        """The dimensions that capitals stand for; of what is cut into blocks, that of all blocks together."""
        shape, layout = self.tensor.shape, self.layout
        return tuple(shape[layout.index(letter)] * layout.blocks.get(letter, 1) for letter in letters)

    def at(self, letters: str, index: Sequence[te.Expr | Channel]) -> te.Expr:
        """The element whose index is given in the order of `letters`, the positions in blocks included.

        A `Channel` stands for both parts of a dimension that is cut into blocks.
        """
        found: dict[str, te.Expr] = {}
        for letter, each in zip(letters, index, strict=True):
            parts = each.parts(self.layout.blocks.get(letter)) if isinstance(each, Channel) else (each,)
            found |= zip(self.layout.parts(letter), parts, strict=False)
        return self.tensor[tuple(found[letter] for letter in self.layout.letters)]


def taken_apart(index: Sequence[te.Expr], layout: Layout) -> tuple[te.Expr, Channel, Sequence[te.Expr]]:
    """Batch, channel and spatial positions of an index in the order N, C, the position in a block of C if there
    is one.
    """
    block = layout.blocks.get("C")
    if block is None:
        return index[0], Channel(index[1]), index[2:]
    return index[0], Channel(index[1], index[2], block), index[3:]


def laid_out(
    shape: Sequence[Dim], layout: Layout, letters: str, element: Callable[[tuple[te.Expr, ...]], te.Expr], name: str
) -> te.Tensor:
    """The tensor of a shape in a layout whose elements are given for indices in the order of `letters`."""
    positions = [layout.index(letter) for letter in letters]
    return te.compute(shape, lambda *i: element(tuple(i[index] for index in positions)), name=name)


def within(positions: Sequence[te.Expr], lengths: Sequence[Dim]) -> te.Expr:
    """Whether spatial positions are within the data."""
    pairs = zip(positions, lengths, strict=True)
    return te.logical_and(*(te.logical_and(position >= 0, position < length) for position, length in pairs))


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
    """Batch, channels, the position in a block of them if there is one, and positions."""
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


class Pool:
    """The data of a pooling op, and the positions of its windows."""

    def __init__(self, kernel: Kernel, op: WindowPoolOp):
        self.spatial = spatial_letters(op.RANK)
        self.x = Laid(kernel.tensor(op.x), op.layouts[0])
        self.lengths = self.x.extents(self.spatial)
        self.windows = op.windows
        self.sizes = [size.data for size in op.pool_size]
        self.axes = [te.reduce_axis(size, f"k{axis}") for axis, size in enumerate(self.sizes)]

    def first(self, window: Sequence[te.Expr]) -> list[te.Expr]:
        """Where a window starts, counted from the first element of the data."""
        steps = zip(window, self.windows.strides, self.windows.padding, strict=False)
        return [each * stride - low for each, stride, low in steps]

    def sources(self, window: Sequence[te.Expr]) -> list[te.Expr]:
        """The position of the reduction's current element."""
        steps = zip(self.first(window), self.axes, self.windows.dilation, strict=True)
        return [first + k * dilation for first, k, dilation in steps]

    def value(self, batch: te.Expr, channel: Channel, sources: Sequence[te.Expr]) -> te.Expr:
        """An element of the data."""
        return self.x.at("NC" + self.spatial, (batch, channel, *sources))

    def reaches_out(self, op: WindowPoolOp) -> bool:
        """Whether a window may have positions outside of the data."""
        return any(self.windows.padding) or op.ceil_mode is not None


@legalizes(MaxPool1dOp, MaxPool2dOp, MaxPool3dOp)
def max_pool(kernel: Kernel, op: MaxPoolOp) -> te.Tensor:
    """The greatest element of each window; the least number there is for a window in the padding."""
    pool, out = Pool(kernel, op), op.layouts[1]

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        batch, channel, window = taken_apart(i, out)
        sources = pool.sources(window)
        value = pool.value(batch, channel, sources)
        return te.max(value, pool.axes, where=within(sources, pool.lengths) if pool.reaches_out(op) else None)

    return laid_out(
        kernel.shape(op.result), out, _letters(op.layouts[1], spatial_letters(op.RANK)), element, "max_pool"
    )


@legalizes(AvgPool1dOp, AvgPool2dOp, AvgPool3dOp)
def avg_pool(kernel: Kernel, op: AvgPoolOp) -> te.Tensor:
    """The sum of each window, divided by how many elements count."""
    pool, out = Pool(kernel, op), op.layouts[1]

    def total(i: tuple[te.Expr, ...]) -> te.Expr:
        batch, channel, window = taken_apart(i, out)
        sources = pool.sources(window)
        value = wide(pool.value(batch, channel, sources))
        return te.sum(value, pool.axes, where=within(sources, pool.lengths) if pool.reaches_out(op) else None)

    shape, letters = kernel.shape(op.result), _letters(op.layouts[1], spatial_letters(op.RANK))
    sums = Laid(laid_out(shape, out, letters, total, "totals"), out)

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        _, _, window = taken_apart(i, out)
        return narrow(mean(sums.at(letters, i), counted(pool, op, window)), pool.x.tensor)

    return laid_out(shape, out, letters, element, "avg_pool")


def wide(x: te.Expr) -> te.Expr:
    """What sums are made in."""
    return widen(x) if is_float_expr(x) else te.cast(x, "i64")


def mean(total: te.Expr, count: te.Expr) -> te.Expr:
    """A sum divided by how many elements it has; of integers, rounded toward zero."""
    divisor = te.cast(te.maximum(count, 1), total.dtype)
    return total / divisor if is_float_expr(total) else te.truncdiv(total, divisor)


def counted(pool: Pool, op: WindowPoolOp, window: Sequence[te.Expr]) -> te.Expr:
    """How many positions of a window count: for all but those at the border a number that is known."""
    rank, padding, includes_padding = op.RANK, pool.windows.padding, op.count_include_pad is not None
    whole = product(pool.sizes)
    dtype = "i32" if (whole.constant_value or 1 << 31) < 1 << 31 else "i64"
    if op.ceil_mode is None and (includes_padding or not any(padding)):
        return te.cast(whole, dtype)
    counts: list[te.Expr] = []
    for axis, first in enumerate(pool.first(window)):
        dilation, size, end = pool.windows.dilation[axis], pool.sizes[axis], pool.lengths[axis]
        if includes_padding:
            end = end + padding[axis + rank]
        is_whole = first + dilation * (size - 1) < end
        count = te.minimum(te.ceildiv(end - first, dilation), size)
        if not includes_padding:
            is_whole = te.logical_and(first >= 0, is_whole)
            count = count - te.maximum(te.ceildiv(0 - first, dilation), 0)
        counts.append(te.if_then_else(is_whole, size, te.maximum(count, 0)))
    return reduce(lambda a, b: a * b, [te.cast(count, dtype) for count in counts])


@legalizes(AdaptiveAvgPool1dOp, AdaptiveAvgPool2dOp, AdaptiveAvgPool3dOp)
def adaptive_avg_pool(kernel: Kernel, op: AdaptiveAvgPoolOp) -> te.Tensor:
    """The mean of each of the windows into which the data is cut."""
    spatial = spatial_letters(op.RANK)
    counts, out = [size.data for size in op.output_size], op.layouts[1]
    x = Laid(kernel.tensor(op.x), op.layouts[0])
    lengths = x.extents(spatial)
    pieces = list(zip(lengths, counts, strict=True))
    even = [_divides(*piece) for piece in pieces]
    axes = [te.reduce_axis(_longest(*piece), f"k{axis}") for axis, piece in enumerate(pieces)]

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        batch, channel, window = taken_apart(i, out)
        starts = [at * length // count for at, (length, count) in zip(window, pieces, strict=True)]
        ends = [te.ceildiv((at + 1) * length, count) for at, (length, count) in zip(window, pieces, strict=True)]
        sizes = [end - start for start, end in zip(starts, ends, strict=True)]
        inside = [k < size for k, size, each in zip(axes, sizes, even, strict=True) if not each]
        sources = [start + k for start, k in zip(starts, axes, strict=True)]
        value = wide(x.at("NC" + spatial, (batch, channel, *sources)))
        total = te.sum(value, axes, where=te.logical_and(*inside) if inside else None)
        return narrow(mean(total, reduce(lambda a, b: a * b, sizes)), x.tensor)

    return laid_out(
        kernel.shape(op.result), out, _letters(op.layouts[1], spatial_letters(op.RANK)), element, "adaptive_avg_pool"
    )


def _longest(length: Dim, count: Dim) -> Dim:
    """The size of the longest window: one that is no even part may have an element more."""
    return floordiv(length, count) if _divides(length, count) else ceildiv(length, count) + 1


def _divides(length: Dim, count: Dim) -> bool:
    return count is constant(1) or (count.constant_value is not None and length % count is constant(0))


_Share = Callable[[te.Expr, Channel, Sequence[te.Expr]], te.Expr]
"""What the window at a position gives to the element at the reduction's current position in it."""


@legalizes(MaxPool2dBackwardOp)
def max_pool_backward(kernel: Kernel, op: MaxPool2dBackwardOp) -> Sequence[te.Tensor]:
    """First where each window has its greatest element, then which of the windows of an element have it there."""
    pool, out = Pool(kernel, op), op.layouts[1]
    gradient = Laid(kernel.tensor(op.gradient), out)
    letters = _letters(out, "HW")

    def first(i: tuple[te.Expr, ...]) -> te.Expr:
        batch, channel, window = taken_apart(i, out)
        sources = pool.sources(window)
        value = wide(pool.value(batch, channel, sources))
        where = within(sources, pool.lengths) if pool.reaches_out(op) else None
        return FIRST_GREATEST((value, _linear_index(pool)), pool.axes, where)[1]

    positions = Laid(laid_out(gradient.tensor.shape, out, letters, first, "places"), out)

    def share(batch: te.Expr, channel: Channel, window: Sequence[te.Expr]) -> te.Expr:
        index = ("NC" + pool.spatial, (batch, channel, *window))
        value = wide(gradient.at(*index))
        return te.select(positions.at(*index) == _linear_index(pool), value, te.const(0.0, value.dtype))

    return _gathered(kernel, op, pool, gradient, share)


@legalizes(AvgPool2dBackwardOp)
def avg_pool_backward(kernel: Kernel, op: AvgPool2dBackwardOp) -> Sequence[te.Tensor]:
    """The gradient of each window that has an element, by how many its mean was divided by."""
    pool = Pool(kernel, op)
    gradient = Laid(kernel.tensor(op.gradient), op.layouts[1])

    def share(batch: te.Expr, channel: Channel, window: Sequence[te.Expr]) -> te.Expr:
        value = gradient.at("NC" + pool.spatial, (batch, channel, *window))
        return mean(wide(value), counted(pool, op, window))

    return _gathered(kernel, op, pool, gradient, share)


def _gathered(kernel: Kernel, op: PoolGradientOp, pool: Pool, gradient: Laid, share: _Share) -> Sequence[te.Tensor]:
    """For each element of the data the sum over the positions that it may have in a window, of which each is in one."""
    data, counts = op.layouts[0], gradient.extents(pool.spatial)

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        batch, channel, spatial = taken_apart(i, data)
        starts = [
            at + low - k * dilation
            for at, low, k, dilation in zip(
                spatial, pool.windows.padding, pool.axes, pool.windows.dilation, strict=False
            )
        ]
        steps = list(zip(starts, pool.windows.strides, strict=True))
        window = [start // stride for start, stride in steps]
        starts_here = [start % stride == 0 for start, stride in steps if stride > 1]
        where = te.logical_and(within(window, counts), *starts_here)
        return narrow(te.sum(share(batch, channel, window), pool.axes, where=where), pool.x.tensor)

    return [laid_out(kernel.shape(op.result), data, _letters(data, "HW"), element, "gradient")]


def _linear_index(pool: Pool) -> te.Expr:
    return te.cast(ravel(pool.axes, pool.sizes), "i64")

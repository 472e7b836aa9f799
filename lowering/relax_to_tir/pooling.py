"""Pooling; 16-bit floats are summed in `f32`, integers in `i64`. The mean of a window without elements is 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from lowering.relax_to_tir.elementwise import is_float_expr, narrow, widen
from lowering.relax_to_tir.indices import ravel
from lowering.relax_to_tir.kernel import Kernel, legalizes
from lowering.relax_to_tir.sorting import FIRST_GREATEST
from lowering.relax_to_tir.windows import Channel, Laid, laid_out, taken_apart, within
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
from tir_dialect import te
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, product


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


def _letters(op: PoolBase) -> str:
    """Batch, channels, the position in a block of them if there is one, and positions."""
    return "N" + op.layouts[1].parts("C") + spatial_letters(op.RANK)


@legalizes(MaxPool1dOp, MaxPool2dOp, MaxPool3dOp)
def max_pool(kernel: Kernel, op: MaxPoolOp) -> te.Tensor:
    """The greatest element of each window; the least number there is for a window in the padding."""
    pool, out = Pool(kernel, op), op.layouts[1]

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        batch, channel, window = taken_apart(i, out)
        sources = pool.sources(window)
        value = pool.value(batch, channel, sources)
        return te.max(value, pool.axes, where=within(sources, pool.lengths) if pool.reaches_out(op) else None)

    return laid_out(kernel.shape(op.result), out, _letters(op), element, "max_pool")


@legalizes(AvgPool1dOp, AvgPool2dOp, AvgPool3dOp)
def avg_pool(kernel: Kernel, op: AvgPoolOp) -> te.Tensor:
    """The sum of each window, divided by how many elements count."""
    pool, out = Pool(kernel, op), op.layouts[1]

    def total(i: tuple[te.Expr, ...]) -> te.Expr:
        batch, channel, window = taken_apart(i, out)
        sources = pool.sources(window)
        value = wide(pool.value(batch, channel, sources))
        return te.sum(value, pool.axes, where=within(sources, pool.lengths) if pool.reaches_out(op) else None)

    shape, letters = kernel.shape(op.result), _letters(op)
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

    return laid_out(kernel.shape(op.result), out, _letters(op), element, "adaptive_avg_pool")


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
    letters = _gradient_letters(op, out)

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

    return [laid_out(kernel.shape(op.result), data, _gradient_letters(op, data), element, "gradient")]


def _gradient_letters(op: PoolGradientOp, layout: Layout) -> str:
    return "N" + layout.parts("C") + "HW"


def _linear_index(pool: Pool) -> te.Expr:
    return te.cast(ravel(pool.axes, pool.sizes), "i64")

"""Gradients of pooling: each element of the data gathers from the windows that may have it, so nothing is written
twice and the order of sums is fixed. 16-bit floats are summed in `f32`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.indices import ravel
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.pooling import Pool, counted, mean, wide
from lowering.relax_to_tir.scalars import narrow
from lowering.relax_to_tir.search import FIRST_GREATEST
from lowering.relax_to_tir.windows import Channel, Laid, laid_out, taken_apart, within
from relax_dialect.ops.gradients import AvgPool2dBackwardOp, MaxPool2dBackwardOp, PoolGradientOp
from relax_dialect.ops.layouts import Layout
from tir_dialect import te

_Share = Callable[[te.Expr, Channel, Sequence[te.Expr]], te.Expr]
"""What the window at a position gives to the element at the reduction's current position in it."""


@legalizes(MaxPool2dBackwardOp)
def max_pool_backward(kernel: Kernel, op: MaxPool2dBackwardOp) -> Sequence[te.Tensor]:
    """First where each window has its greatest element, then which of the windows of an element have it there."""
    pool, out = Pool(kernel, op), op.layouts[1]
    gradient = Laid(kernel.tensor(op.gradient), out)
    letters = _letters(op, out)

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

    return [laid_out(kernel.shape(op.result), data, _letters(op, data), element, "gradient")]


def _letters(op: PoolGradientOp, layout: Layout) -> str:
    return "N" + layout.parts("C") + "HW"


def _linear_index(pool: Pool) -> te.Expr:
    return te.cast(ravel(pool.axes, pool.sizes), "i64")

"""Convolution over moved windows, and columns folded into images; 16-bit floats are summed in `f32`."""

from __future__ import annotations

from functools import reduce

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.indices import ravel
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.scalars import widen
from lowering.relax_to_tir.windows import within
from relax_dialect.ops.deformable import Col2ImOp, DeformConv2dOp
from tir_dialect import te
from tir_dialect.dims import Dim, constant, floordiv


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

"""Convolution at places that are moved by offsets."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.frontend.onnx.windows import WindowAttributes
from tir_dialect import te
from tir_dialect.dims import Dim, constant


def deform_conv(tensors: Sequence[te.Tensor], windows: WindowAttributes, groups: int, offset_groups: int) -> te.Tensor:
    """The products of a kernel with elements between which is interpolated; operands: data, kernel, offsets, mask."""
    x, w, offsets = tensors[:3]
    mask = tensors[3] if len(tensors) > 3 else None
    rows, columns = windows.sizes
    places = constant(rows * columns)
    filters, inner = w.shape[0], w.shape[1]
    spatial = offsets.shape[2:]

    def sampled(n: te.Expr, c: te.Expr, tap: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        group = te.floordiv(c, x.shape[1] // offset_groups)
        base = group * (2 * rows * columns) + 2 * tap
        row, column = te.floordiv(tap, constant(columns)), te.floormod(tap, constant(columns))
        y = _place(i, row, windows, 0, offsets[n, base, i, j])
        z = _place(j, column, windows, 1, offsets[n, base + 1, i, j])
        value = _bilinear(x, n, c, y, z)
        return value if mask is None else value * mask[n, group * (rows * columns) + tap, i, j]

    shape = (x.shape[0], x.shape[1], places, *spatial)
    samples = te.compute(shape, sampled, name="samples")
    c, tap = te.reduce_axis(inner, "c"), te.reduce_axis(places, "tap")

    def element(n: te.Expr, o: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        channel = te.floordiv(o, filters // groups) * inner + c
        row, column = te.floordiv(tap, constant(columns)), te.floormod(tap, constant(columns))
        return te.sum(samples[n, channel, tap, i, j] * w[o, c, row, column], [c, tap])

    return te.compute((x.shape[0], filters, *spatial), element, name="deform_conv")


def _place(at: te.Expr, tap: te.Expr, windows: WindowAttributes, axis: int, offset: te.Expr) -> te.Expr:
    whole = at * windows.strides[axis] + tap * windows.dilations[axis] - windows.pads[axis]
    return te.cast(te.cast(whole, "i64"), offset.dtype) + offset


def _bilinear(x: te.Tensor, n: te.Expr, c: te.Expr, y: te.Expr, z: te.Expr) -> te.Expr:
    """The element between four places; those outside are 0."""
    total: te.Expr | None = None
    for down in (0, 1):
        for right in (0, 1):
            row, column = te.floor(y) + down, te.floor(z) + right
            share = (1 - te.abs(y - row)) * (1 - te.abs(z - column))
            part = share * _at(x, n, c, row, column)
            total = part if total is None else total + part
    assert total is not None
    return total


def _at(x: te.Tensor, n: te.Expr, c: te.Expr, row: te.Expr, column: te.Expr) -> te.Expr:
    i, j = (te.cast(te.cast(each, "i64"), "index") for each in (row, column))
    height, width = x.shape[2:]
    inside = te.logical_and(i >= 0, i < height, j >= 0, j < width)
    return te.select(inside, x[n, c, _clamped(i, height), _clamped(j, width)], te.const(0, x.dtype))


def _clamped(place: te.Expr, length: Dim) -> te.Expr:
    return te.maximum(te.minimum(place, length - 1), 0)

"""Resizing along one axis: positions and weights are tables, computed once in `f64`."""

from __future__ import annotations

import math
from functools import reduce

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.indices import axis_of, clamped
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.reduction import Element
from lowering.relax_to_tir.scalars import is_float_expr, widen
from relax_dialect.interpolation import ROUND, Axis, double, falls_off, single
from relax_dialect.ops.resizing import Resize1dOp
from tir_dialect import te
from tir_dialect.dims import Dim, ceildiv, constant, maximum


@legalizes(Resize1dOp)
def resize1d(kernel: Kernel, op: Resize1dOp) -> te.Tensor:
    """The elements near the position that each position comes from, weighed."""
    x, shape = kernel.tensor(op.x), kernel.shape(op.result)
    axis = axis_of(op.axis, x.ndim)
    length, count = x.shape[axis], shape[axis]
    times = _times(op, length, count)
    if times is not None:
        return te.compute(shape, lambda *i: x[(*i[:axis], i[axis] // times, *i[axis + 1 :])], name="resize1d")
    row = _axis(op, length, count)
    positions = te.compute((count,), lambda *i: row.source(op.coordinates.data, i[0]), name="places")
    if op.method.data == "nearest_neighbor":
        value = _nearest(op, x, axis, positions)
    else:
        value = _Weighed(op, x, axis, positions, count).element

    def element(*i: te.Expr) -> te.Expr:
        found = value(i)
        if op.coordinates.data == "tf_crop_and_resize":
            found = te.select(
                row.is_beyond(positions[i[axis]]), te.const(op.extrapolation_value.value.data, found.dtype), found
            )
        return te.cast(found, x.dtype)

    return te.compute(shape, element, name="resize1d")


MOST_TIMES = 64
"""Of a greater number of copies the rounding of positions in f32 is not known to lead to the same elements."""


def _times(op: Resize1dOp, length: Dim, count: Dim) -> int | None:
    """How often each element stands in the result, if the nearest one is the quotient of position and scale.

    From middles of elements the distance to the nearest is at most `1/2 - 1/(2 * times)`: no rounding has a choice.
    """
    middles = op.coordinates.data in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
    plain = middles if op.rounding.data.startswith("round") else op.coordinates.data == "asymmetric"
    if op.method.data != "nearest_neighbor" or not plain or op.rounding.data == "ceil":
        return None
    times = next((number for number in range(2, MOST_TIMES + 1) if count is length * number), None)
    return times if op.scale is None or op.scale.value.data == times else None


def _axis(op: Resize1dOp, length: Dim, count: Dim) -> Axis:
    size, positions = double(length), double(count)
    scale = te.const(op.scale.value.data, "f64") if op.scale is not None else positions / size
    return Axis(size, positions, scale, scale * size if op.scale is not None else positions, *op.part)


def _nearest(op: Resize1dOp, x: te.Tensor, axis: int, positions: te.Tensor) -> Element:
    """The element at a rounded position: these are a table too."""
    rounded, length = ROUND[op.rounding.data], x.shape[axis]

    def nearest(i: te.Expr) -> te.Expr:
        return te.cast(clamped(te.cast(te.cast(rounded(single(positions[i])), "i64"), "index"), length), "i64")

    table = te.compute(positions.shape, nearest, name="nearest")
    return lambda i: x[(*i[:axis], te.cast(table[i[axis]], "index"), *i[axis + 1 :])]


class _Weighed:
    """Elements with weights that fall off with their distance."""

    def __init__(self, op: Resize1dOp, x: te.Tensor, axis: int, positions: te.Tensor, count: Dim):
        self.op, self.x, self.axis, self.positions = op, x, axis, positions
        self.squeeze = self._squeeze(count)
        self.taps = self._taps(count)
        data = x[tuple(te.cast(constant(0), "index") for _ in x.shape)]
        self.dtype = str(widen(data).dtype) if is_float_expr(data) else "f32"
        weights = te.compute((count, self.taps), self._weight, name="weights")
        if op.exclude_outside is not None or op.antialias is not None:
            r = te.reduce_axis(self.taps, "t")
            totals = te.compute((count,), lambda *i: te.sum(weights[i[0], r], r), name="totals")
            raw = weights
            weights = te.compute((count, self.taps), lambda *i: raw[i] / totals[i[0]], name="shares")
        self.weights = weights

    def _squeeze(self, count: Dim) -> te.Expr | None:
        """By how much distances shrink where a result is smaller; `None` if they do not."""
        if self.op.antialias is None:
            return None
        if self.op.scale is not None:
            return te.const(min(self.op.scale.value.data, 1.0), "f64")
        return te.minimum(double(count) / double(self.x.shape[self.axis]), 1.0)

    def _taps(self, count: Dim) -> Dim:
        """How many elements an index of the result is made of."""
        reach = 1 if self.op.method.data == "linear" else 2
        if self.op.antialias is None:
            return constant(2 * reach)
        if self.op.scale is not None:
            return constant(2 * math.ceil(reach / min(self.op.scale.value.data, 1.0)))
        return 2 * maximum(ceildiv(reach * self.x.shape[self.axis], maximum(count, 1)), reach)

    def _first(self, i: te.Expr) -> te.Expr:
        half = te.cast(te.cast(self.taps // 2, "index"), "i64")
        return te.cast(te.floor(self.positions[i]), "i64") - half + 1

    def _weight(self, i: te.Expr, tap: te.Expr) -> te.Expr:
        at = self._first(i) + te.cast(tap, "i64")
        distance = te.abs(te.cast(at, "f64") - self.positions[i])
        distance = distance if self.squeeze is None else distance * self.squeeze
        weight = falls_off(self.op.method.data, self.op.cubic_alpha.value.data, distance)
        if self.op.exclude_outside is None:
            return weight
        size = te.cast(te.cast(self.x.shape[self.axis], "index"), "i64")
        return te.select(te.logical_and(at >= 0, at < size), weight, 0.0)

    def element(self, i: tuple[te.Expr, ...]) -> te.Expr:
        """The sum of elements with their weights."""
        few = self.taps.constant_value
        if few is None or few > 4:
            tap = te.reduce_axis(self.taps, "tap")
            return te.sum(self._part(i, tap), tap)
        return reduce(lambda p, q: p + q, [self._part(i, te.cast(constant(tap), "index")) for tap in range(few)])

    def _part(self, i: tuple[te.Expr, ...], tap: te.Expr) -> te.Expr:
        at = self._first(i[self.axis]) + te.cast(tap, "i64")
        position = clamped(te.cast(at, "index"), self.x.shape[self.axis])
        value = self.x[(*i[: self.axis], position, *i[self.axis + 1 :])]
        weight = te.cast(self.weights[i[self.axis], tap], self.dtype)
        return te.cast(value, self.dtype) * weight

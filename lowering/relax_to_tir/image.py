"""Images: resizing, whose positions are computed in `f64`, weights and sums in the dtype of the data; and sampling,
in the dtype of the grid, at least `f32`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product

from lowering.relax_to_tir.convolution import Laid, laid_out
from lowering.relax_to_tir.elementwise import is_float_expr, narrowed, number, widen
from lowering.relax_to_tir.kernel import Kernel, axes, axis_of, clamped, legalizes
from lowering.relax_to_tir.reduction import Element
from relax_dialect.formulas import ROUND, Axis, double, falls_off, single
from relax_dialect.ops.image import AffineGridOp, GridSampleOp, Resize1dOp, Resize2dOp
from tir_dialect import te
from tir_dialect.dims import Dim, ceildiv, constant, maximum


@legalizes(Resize2dOp)
def resize2d(kernel: Kernel, op: Resize2dOp) -> te.Tensor:
    """The elements near the position that each element comes from, weighed."""
    layout, dtype = op.data_layout, str(kernel.dtype(op.result))
    x = Laid(kernel.tensor(op.x), layout)
    shape = kernel.shape(op.result)
    sizes, counts = x.extents("HW"), [shape[layout.index(letter)] for letter in "HW"]

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        positions = [_source(op, *axis) for axis in zip((0, 1), i[2:], sizes, counts, strict=True)]
        rows, columns = (_taps(op, position, size) for position, size in zip(positions, sizes, strict=True))
        value = _weighed(
            [
                (_weighed([(x.at("NCHW", (*i[:2], row, column)), weight) for column, weight in columns]), above)
                for row, above in rows
            ]
        )
        if op.coordinates.data == "tf_crop_and_resize":
            beyond = (te.logical_or(p < 0, p > double(n - 1)) for p, n in zip(positions, sizes, strict=True))
            value = te.select(te.logical_or(*beyond), number(op.extrapolation_value.value.data, value), value)
        return te.cast(value, dtype)

    return laid_out(shape, layout, "NCHW", element, "resize2d")


def _source(op: Resize2dOp, axis: int, index: te.Expr, length: Dim, count: Dim) -> te.Expr:
    """Where an index of the result comes from, along one axis (0: height, 1: width)."""
    at, size, positions = te.cast(index, "f64"), double(length), double(count)
    several = count.constant_value is None or count.constant_value > 1
    steps = te.maximum(positions - 1, 1)
    match op.coordinates.data:
        case "align_corners":
            return at * (size - 1) / steps if several else at * 0
        case "asymmetric":
            return at * size / positions
        case "tf_half_pixel_for_nn":
            return (at + 0.5) * size / positions
        case "tf_crop_and_resize":
            roi = (0.0, 0.0, 1.0, 1.0) if op.roi is None else tuple(op.roi.get_values())
            start, end = roi[axis], roi[axis + 2]
            spread = start * (size - 1) + at * (end - start) * (size - 1) / steps
            return te.select(positions > 1, spread, at * 0 + 0.5 * (start + end) * (size - 1))
        case coordinates:
            half = (at + 0.5) * size / positions - 0.5
            return te.select(positions > 1, half, at * 0) if coordinates == "pytorch_half_pixel" else half


Tap = tuple[te.Expr, te.Expr | None]


def _taps(op: Resize2dOp, position: te.Expr, length: Dim) -> list[Tap]:
    """The neighbours of a position along an axis, and their weights; `None` weighs 1."""
    if op.method.data == "nearest_neighbor":
        return [(_nearest(ROUND[op.rounding.data](position), length), None)]
    first = te.floor(position)
    rest = position - first
    if op.method.data == "linear":
        return [(_nearest(first, length), 1 - rest), (_nearest(first + 1, length), rest)]
    weights = cubic_weights(op.cubic_alpha.value.data, rest)
    offsets = [first + offset for offset in (-1, 0, 1, 2)]
    if op.cubic_exclude is not None:
        inside = [te.logical_and(each >= 0, each < double(length)) for each in offsets]
        kept = [te.select(*pair, 0.0) for pair in zip(inside, weights, strict=True)]
        total = kept[0] + kept[1] + kept[2] + kept[3]
        weights = [weight / total for weight in kept]
    return [(_nearest(each, length), weight) for each, weight in zip(offsets, weights, strict=True)]


def _nearest(position: te.Expr, length: Dim) -> te.Expr:
    return clamped(te.cast(te.cast(position, "i64"), "index"), length)


def _weighed(taps: Sequence[Tap]) -> te.Expr:
    """The sum of values with their weights."""
    parts: list[te.Expr] = []
    for value, weight in taps:
        if weight is None:
            return value
        wide = widen(value) if is_float_expr(value) else te.cast(value, "f32")
        parts.append(wide * te.cast(weight, wide.dtype))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def cubic_weights(alpha: float, rest: te.Expr) -> list[te.Expr]:
    """The weights of four neighbours of a position that is `rest` after the second (Keys, 1981)."""

    def near(t: te.Expr) -> te.Expr:
        return ((alpha + 2) * t - (alpha + 3)) * t * t + 1

    def far(t: te.Expr) -> te.Expr:
        return ((alpha * t - 5 * alpha) * t + 8 * alpha) * t - 4 * alpha

    return [far(rest + 1), near(rest), near(1 - rest), far(2 - rest)]


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
        value = _nearest_of_axis(op, x, axis, positions)
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


def _nearest_of_axis(op: Resize1dOp, x: te.Tensor, axis: int, positions: te.Tensor) -> Element:
    """The element at a rounded position: these are a table too."""
    rounded, length = ROUND[op.rounding.data], x.shape[axis]

    def nearest(i: te.Expr) -> te.Expr:
        return te.cast(clamped(te.cast(te.cast(rounded(single(positions[i])), "i64"), "index"), length), "i64")

    table = te.compute(positions.shape, nearest, name="nearest")
    return lambda i: x[(*i[:axis], te.cast(table[i[axis]], "index"), *i[axis + 1 :])]


class _Weighed:
    """Elements with weights that fall off with their distance.

    Where they are and what they weigh is the same for all rows: tables of taps, each with all indices of the result.
    """

    def __init__(self, op: Resize1dOp, x: te.Tensor, axis: int, positions: te.Tensor, count: Dim):
        self.op, self.x, self.axis, self.positions = op, x, axis, positions
        # By how much distances shrink where a result is smaller; `None` if they do not.
        if self.op.antialias is None:
            self.squeeze = None
        elif self.op.scale is not None:
            self.squeeze = te.const(min(self.op.scale.value.data, 1.0), "f64")
        else:
            self.squeeze = te.minimum(double(count) / double(self.x.shape[self.axis]), 1.0)
        self.taps = self._taps(count)
        data = x[tuple(te.cast(constant(0), "index") for _ in x.shape)]
        self.dtype = str(widen(data).dtype) if is_float_expr(data) else "f32"
        weights = te.compute((count, self.taps), self._weight, name="weights")
        if op.exclude_outside is not None or op.antialias is not None:
            r = te.reduce_axis(self.taps, "t")
            totals = te.compute((count,), lambda *i: te.sum(weights[i[0], r], r), name="totals")
            raw = weights
            weights = te.compute((count, self.taps), lambda *i: raw[i] / totals[i[0]], name="shares")
        table = self.taps, count
        self.weights = te.compute(table, lambda *at: te.cast(weights[at[1], at[0]], self.dtype), name="tap_weights")
        self.neighbours = te.compute(table, self._neighbour, name="neighbours")

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

    def _neighbour(self, tap: te.Expr, i: te.Expr) -> te.Expr:
        at = self._first(i) + te.cast(tap, "i64")
        return te.cast(clamped(te.cast(at, "index"), self.x.shape[self.axis]), "i64")

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
        at = te.cast(self.neighbours[tap, i[self.axis]], "index")
        value = self.x[(*i[: self.axis], at, *i[self.axis + 1 :])]
        return te.cast(value, self.dtype) * self.weights[tap, i[self.axis]]


GridTap = tuple[te.Expr, te.Expr | None, te.Expr | None]
"""A neighbour along an axis: its position, whether it is in the image, its weight."""


@legalizes(GridSampleOp)
def grid_sample(kernel: Kernel, op: GridSampleOp) -> te.Tensor:
    """The weighted neighbours of each position; weights are computed once for all channels."""
    x, grid, shape = kernel.tensor(op.x), kernel.tensor(op.grid), kernel.shape(op.result)
    if op.method.data == "nearest":
        dtype = str(x.dtype)
    else:
        zero = te.const(0, x.dtype)
        dtype = str(widen(zero).dtype) if is_float_expr(zero) else "f32"

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("grid_sample", *axes((shape[0], *shape[2:]))) as (batch, *outer):
            taps: list[list[GridTap]] = []
            for axis, length in enumerate(x.shape[2:]):
                coordinate = widen(grid[(batch, *outer, x.ndim - 3 - axis)])
                taps.append(_grid_taps(b, op, b.let(coordinate, "coordinate"), length))
            with b.for_range(0, x.shape[1], "channel") as channel:
                parts = [_part(x, (batch, channel), each, dtype) for each in product(*taps)]
                b.store(outs[0], (batch, channel, *outer), reduce(lambda p, q: p + q, parts))

    (result,) = te.extern([(shape, dtype)], list(dict.fromkeys((x, grid))), body, name="grid_sample")
    return narrowed(result, x.dtype)


def _part(x: te.Tensor, outer: tuple[te.Expr, te.Expr], chosen: Sequence[GridTap], dtype: str) -> te.Expr:
    """A neighbour with its weight; 0 outside of the image."""
    value = te.cast(x[(*outer, *(position for position, _, _ in chosen))], dtype)
    weights = [te.cast(weight, dtype) for _, _, weight in chosen if weight is not None]
    if weights:
        value = value * reduce(lambda p, q: p * q, weights)
    inside = [each for _, each, _ in chosen if each is not None]
    return te.select(te.logical_and(*inside), value, te.const(0, dtype)) if inside else value


def _grid_taps(b: te.ExternBuilder, op: GridSampleOp, coordinate: te.Expr, length: Dim) -> list[GridTap]:
    """The neighbours along an axis."""
    size, corners, mode = te.cast(te.cast(length, "index"), coordinate.dtype), op.align_corners, op.padding_mode.data
    position = (coordinate + 1) / 2 * (size - 1) if corners is not None else ((coordinate + 1) * size - 1) / 2
    low, high = (number(0, position), size - 1) if corners is not None else (number(-0.5, position), size - 0.5)
    if op.method.data == "nearest":
        position = te.round(position)
    if mode == "border" and op.method.data != "cubic":
        position = te.maximum(te.minimum(position, size - 1), 0)
    elif mode == "reflection":
        position = _mirrored(b, b.let(position, "place"), low, high)
    position = b.let(position, "place")
    first = b.let(position if op.method.data == "nearest" else te.floor(position), "first")
    rest = b.let(position - first, "rest")
    weights: Sequence[te.Expr | None] = [None]
    offsets = [0]
    if op.method.data == "linear":
        offsets, weights = [0, 1], [1 - rest, rest]
    elif op.method.data == "cubic":
        offsets, weights = [-1, 0, 1, 2], [b.let(w, "weight") for w in cubic_weights(op.cubic_alpha.value.data, rest)]
    taps: list[GridTap] = []
    for offset, weight in zip(offsets, weights, strict=True):
        at = first + offset
        inside = b.let(te.logical_and(at >= 0, at <= size - 1), "inside") if mode == "zeros" else None
        at = _mirrored(b, b.let(at, "at"), low, high) if mode == "reflection" else at
        bounded = te.maximum(te.minimum(at, size - 1), 0)
        taps.append((b.let(clamped(te.cast(te.cast(bounded, "i64"), "index"), length), "tap"), inside, weight))
    return taps


def _mirrored(b: te.ExternBuilder, position: te.Expr, low: te.Expr, high: te.Expr) -> te.Expr:
    """A position mirrored at both ends until it lies between them."""
    span, zero = high - low, number(0, position)
    beyond = b.let(
        te.select(position < low, low - position, te.select(position > high, position - high, zero)), "beyond"
    )
    times = b.let(te.select(span > 0, te.trunc(beyond / te.maximum(span, number(1e-30, span))), zero), "times")
    rest = te.select(span > 0, beyond - times * span, zero)
    even = times - 2 * te.trunc(times / 2) == 0
    from_low = (position < low) == even
    return te.select(beyond > 0, te.select(from_low, low + rest, high - rest), position)


@legalizes(AffineGridOp)
def affine_grid(kernel: Kernel, op: AffineGridOp) -> te.Tensor:
    """The maps of evenly spaced positions."""
    theta, shape = kernel.tensor(op.theta), kernel.shape(op.result)
    corners, count = op.align_corners is not None, len(shape) - 2

    def even(index: te.Expr, length: Dim) -> te.Expr:
        at, size = te.cast(index, "f64"), te.cast(te.cast(length, "index"), "f64")
        if corners:
            return 2 * at / te.maximum(size - 1, 1) - 1
        return (2 * at + 1) / size - 1

    def element(*i: te.Expr) -> te.Expr:
        batch, *at, row = i
        value = widen(theta[batch, row, count])
        for axis, (index, length) in enumerate(zip(at, shape[1:-1], strict=True)):
            value = value + widen(theta[batch, row, count - 1 - axis]) * te.cast(even(index, length), value.dtype)
        return te.cast(value, theta.dtype)

    return te.compute(shape, element, name="affine_grid")

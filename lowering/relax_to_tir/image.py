"""Operators on images. Positions are computed in `f64`, weights and sums in the dtype of the data, at least `f32`."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.indices import clamped
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.scalars import is_float_expr, number, widen
from lowering.relax_to_tir.windows import Laid, laid_out
from relax_dialect.interpolation import ROUND, double
from relax_dialect.ops.image import Resize2dOp
from tir_dialect import te
from tir_dialect.dims import Dim


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

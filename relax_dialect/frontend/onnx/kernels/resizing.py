"""Resizing along an axis by a scale that is data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_dialect.frontend.onnx.manipulation import element_of
from relax_dialect.interpolation import ROUND, Axis, double, falls_off, single
from tir_dialect import te
from tir_dialect.dims import Dim, ceildiv, constant, maximum
from tir_dialect.dtypes import is_float


@dataclass(frozen=True)
class Interpolation:
    """What elements are made of: in the words of `relax.image.resize1d`."""

    method: str
    coordinates: str
    rounding: str
    cubic_alpha: float
    exclude_outside: bool
    antialias: bool
    extrapolation_value: float


def resize_parameters(
    values: te.Tensor, roi: te.Tensor, sizes: Sequence[Dim], policy: str | None
) -> Sequence[te.Tensor]:
    """The scale and part of each axis as rows of three numbers, and the lengths, from sizes with a `policy`, or
    else from scales.
    """
    count, by_size = len(sizes), policy is not None
    old = te.compute((count,), lambda *i: te.cast(element_of(sizes, i[0]), "f64"), name="old_lengths")
    ratios = te.compute(
        (count,), lambda *i: te.cast(values[i], "f64") / (old[i] if by_size else te.const(1.0, "f64")), name="ratios"
    )
    scales = ratios
    if by_size and policy != "stretch":
        r, choose = te.reduce_axis(count, "r"), te.min if policy == "not_larger" else te.max
        scales = te.compute((count,), lambda *i: choose(ratios[r], r), name="scales")

    def length(*i: te.Expr) -> te.Expr:
        if by_size and policy == "stretch":
            return te.cast(values[i], "i64")
        scaled = scales[i] * old[i]
        return te.cast(te.floor(scaled + 0.5) if by_size else te.floor(scaled), "i64")

    def parameter(axis: te.Expr, which: te.Expr) -> te.Expr:
        start, end = te.cast(roi[axis], "f64"), te.cast(roi[axis + count], "f64")
        at = te.cast(which, "i64")
        return te.select(at == 0, scales[axis], te.select(at == 1, start, end))

    return [te.compute((count, 3), parameter, name="parameters"), te.compute((count,), length, name="lengths")]


def resize_axis(
    x: te.Tensor, parameters: te.Tensor, kind: Interpolation, axis: int, row: int, length: Dim
) -> te.Tensor:
    """`x` with another length along an axis, whose scale and part are a row of the parameters."""
    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    size = x.shape[axis]
    scale, start, end = (parameters[row, at] for at in range(3))
    resized = Axis(double(size), double(length), scale, scale * double(size), start, end)
    places = te.compute((length,), lambda *i: resized.source(kind.coordinates, i[0]), name="places")
    if kind.method == "nearest_neighbor":
        element = _nearest(x, kind, axis, places)
    else:
        element = _weighed(x, kind, axis, places, te.minimum(scale, 1.0), length)

    def value(*i: te.Expr) -> te.Expr:
        found = element(i)
        if kind.coordinates == "tf_crop_and_resize":
            found = te.select(
                resized.is_beyond(places[i[axis]]), te.const(kind.extrapolation_value, found.dtype), found
            )
        return te.cast(found, x.dtype)

    return te.compute(shape, value, name="resize_axis")


def _clamped(place: te.Expr, length: Dim) -> te.Expr:
    return te.maximum(te.minimum(te.cast(place, "index"), length - 1), 0)


def _nearest(
    x: te.Tensor, kind: Interpolation, axis: int, places: te.Tensor
) -> Callable[[tuple[te.Expr, ...]], te.Expr]:
    rounded = ROUND[kind.rounding]

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        place = _clamped(te.cast(rounded(single(places[i[axis]])), "i64"), x.shape[axis])
        return x[(*i[:axis], place, *i[axis + 1 :])]

    return element


def _weighed(
    x: te.Tensor, kind: Interpolation, axis: int, places: te.Tensor, scale: te.Expr, length: Dim
) -> Callable[[tuple[te.Expr, ...]], te.Expr]:
    """Elements with weights that fall off with their distance, relative to the sum of the weights."""
    reach, size = 1 if kind.method == "linear" else 2, x.shape[axis]
    taps = constant(2 * reach)
    if kind.antialias:
        taps = 2 * maximum(ceildiv(reach * size, maximum(length, 1)), reach) + 2
    half = te.cast(te.cast(taps // 2, "index"), "i64")

    def first(i: te.Expr) -> te.Expr:
        return te.cast(te.floor(places[i]), "i64") - half + 1

    def weight(i: te.Expr, tap: te.Expr) -> te.Expr:
        at = first(i) + te.cast(tap, "i64")
        distance = te.abs(te.cast(at, "f64") - places[i])
        found = falls_off(kind.method, kind.cubic_alpha, distance * scale if kind.antialias else distance)
        if not kind.exclude_outside:
            return found
        end = te.cast(te.cast(size, "index"), "i64")
        return te.select(te.logical_and(at >= 0, at < end), found, 0.0)

    weights, r = te.compute((length, taps), weight, name="weights"), te.reduce_axis(taps, "t")
    totals = te.compute((length,), lambda *i: te.sum(weights[i[0], r], r), name="totals")
    wide = "f64" if str(x.dtype) == "f64" or not is_float(x.dtype) else "f32"
    tap = te.reduce_axis(taps, "tap")

    def element(i: tuple[te.Expr, ...]) -> te.Expr:
        place = _clamped(first(i[axis]) + te.cast(tap, "i64"), size)
        share = te.cast(weights[i[axis], tap] / totals[i[axis]], wide)
        return te.sum(te.cast(x[(*i[:axis], place, *i[axis + 1 :])], wide) * share, tap)

    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    sums = te.compute(shape, lambda *i: element(i), name="sums")
    return lambda i: sums[i]

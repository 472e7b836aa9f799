"""Fourier transforms by their definition, with tables of sines and cosines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tir_dialect import te
from tir_dialect.dims import Dim, constant, floordiv


@dataclass(frozen=True)
class Transform:
    """A transform along an axis: of how many places, in which direction, and whether one side says it all."""

    axis: int
    length: Dim
    inverse: bool
    onesided: bool


def _integer(value: te.Expr | Dim) -> te.Expr:
    return te.cast(te.cast(value, "index"), "i64")


def _angle(at: te.Expr, length: Dim) -> te.Expr:
    return te.cast(_integer(at), "f64") * (2 * math.pi) / te.cast(_integer(length), "f64")


def transform(x: te.Tensor, kind: Transform) -> te.Tensor:
    """The transform of numbers whose real and imaginary parts are the last dimension, which is 1 for real ones."""
    axis, length = kind.axis, kind.length
    whole_result = kind.inverse and kind.onesided
    bins = floordiv(length, constant(2)) + 1 if kind.onesided and not kind.inverse else length
    parts = constant(1) if whole_result else constant(2)
    cosines = te.compute((length,), lambda *i: te.cos(_angle(i[0], length)), name="cosines")
    sines = te.compute((length,), lambda *i: te.sin(_angle(i[0], length)), name="sines")
    r = te.reduce_axis(length, "r")

    def element(*i: te.Expr) -> te.Expr:
        at = te.floormod(i[axis] * r, length)
        real, imaginary = (_part(x, kind, i, r, which) for which in (0, 1))
        cosine, sine = cosines[at], sines[at]
        if kind.inverse:
            first, second = real * cosine - imaginary * sine, real * sine + imaginary * cosine
        else:
            first, second = real * cosine + imaginary * sine, imaginary * cosine - real * sine
        value = first if whole_result else te.select(_integer(i[-1]) == 0, first, second)
        return te.sum(value, r)

    shape = (*x.shape[:axis], bins, *x.shape[axis + 1 : -1], parts)
    sums = te.compute(shape, element, name="sums")
    scale = te.cast(_integer(length), "f64") if kind.inverse else te.const(1.0, "f64")
    return te.compute(shape, lambda *i: te.cast(sums[i] / scale, x.dtype), name="dft")


def _part(x: te.Tensor, kind: Transform, i: Sequence[te.Expr], r: te.Expr, which: int) -> te.Expr:
    """The real or imaginary part of an element; behind the data there are zeros, or what symmetry says."""
    axis, size = kind.axis, x.shape[kind.axis]
    if which and x.shape[-1].constant_value == 1:
        return te.const(0.0, "f64")
    half = te.cast(_integer(floordiv(kind.length, constant(2)) + 1), "index")
    mirrored = te.select(r < half, r, te.cast(kind.length, "index") - r) if kind.inverse and kind.onesided else r
    place = te.maximum(te.minimum(mirrored, size - 1), 0)
    value = te.cast(x[(*i[:axis], place, *i[axis + 1 : -1], which)], "f64")
    if kind.inverse and kind.onesided and which:
        turned = te.select(r < half, value, te.const(0.0, "f64") - value)
        edge = te.logical_or(_integer(r) == 0, _integer(r) * 2 == _integer(kind.length))
        value = te.select(edge, te.const(0.0, "f64"), turned)
    return te.select(mirrored < size, value, te.const(0.0, "f64"))


def frames(tensors: Sequence[te.Tensor], count: Dim, size: Dim, step: Dim) -> te.Tensor:
    """Pieces of a signal, `[batch, frame, place, part]`, multiplied by a window if there is one."""
    x, window = tensors[0], tensors[1] if len(tensors) > 1 else None
    parts = x.shape[2] if x.ndim == 3 else constant(1)

    def element(n: te.Expr, frame: te.Expr, place: te.Expr, part: te.Expr) -> te.Expr:
        at = te.minimum(frame * step + place, x.shape[1] - 1)
        value = x[n, at, part] if x.ndim == 3 else x[n, at]
        return value if window is None else value * window[place]

    return te.compute((x.shape[0], count, size, parts), element, name="frames")


def mel_weights(numbers: Sequence[te.Tensor], bins: Dim, bands: Dim, dtype: str) -> te.Tensor:
    """The weight of each bin of a spectrum in each band; numbers: length, sample rate, lowest and highest frequency."""
    length, rate, lowest, highest = (each[()] for each in numbers)
    low, high = (2595 * te.log1p(each / 700) / math.log(10) for each in (lowest, highest))
    count = te.cast(_integer(bands), "f64") + 2

    def edge(i: te.Expr) -> te.Expr:
        mel = te.cast(_integer(i), "f64") * ((high - low) / count) + low
        return te.floor((length + 1) * (700 * te.expm1(mel / 2595 * math.log(10))) / rate)

    edges = te.compute((bands + 2,), edge, name="edges")

    def weight(j: te.Expr, i: te.Expr) -> te.Expr:
        at = te.cast(_integer(j), "f64")
        left, center, right = edges[i], edges[i + 1], edges[i + 2]
        rising = te.logical_and(at >= left, at <= center)
        up = te.select(center > left, (at - left) / te.maximum(center - left, 1.0), te.const(1.0, "f64"))
        falling = te.logical_and(at >= center, at < right)
        down = (right - at) / te.maximum(right - center, 1.0)
        value = te.select(falling, down, te.select(rising, up, te.const(0.0, "f64")))
        return te.cast(value, dtype)

    return te.compute((bins, bands), weight, name="mel_weights")

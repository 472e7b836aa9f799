"""Resizing along one axis. Positions and weights are computed in `f64`."""

from __future__ import annotations

import math

import numpy as np

from relax_dialect.interpreter.image import ROUND
from relax_dialect.interpreter.operators import DimValues, computes_in, wide
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.resizing import Resize1dOp
from tir_dialect.dtypes import from_numpy
from tir_dialect.elements import converted


@computes_in(Resize1dOp)
def resize1d(dims: DimValues, op: Resize1dOp, x: Array) -> list[Array]:
    """The elements near the position that each position comes from, weighed."""
    axis, count = op.axis.value.data % x.ndim, dims(op.length)
    length = x.shape[axis]
    positions = source_positions(op, length, count)
    if op.method.data == "nearest_neighbor":
        result = _at(x, axis, ROUND[op.rounding.data](positions.astype(np.float32).astype(np.float64)))
    else:
        result = _weighed(op, x, axis, positions, count)
    if op.coordinates.data == "tf_crop_and_resize":
        beyond = ((positions < 0) | (positions > length - 1)).reshape(_along(axis, x.ndim))
        result = np.where(beyond, np.asarray(op.extrapolation_value.value.data, result.dtype), result)
    return [converted(result, from_numpy(x.dtype))]


def _along(axis: int, rank: int) -> list[int]:
    return [-1 if at == axis else 1 for at in range(rank)]


def source_positions(op: Resize1dOp, length: int, count: int) -> Array:
    """Where the positions of the result come from."""
    positions = np.arange(count, dtype=np.float64)
    scale = op.scale.value.data if op.scale is not None else count / length
    total = scale * length if op.scale is not None else count
    start, end = op.part
    match op.coordinates.data:
        case "align_corners":
            return positions * (length - 1) / (total - 1) if count > 1 else positions * 0
        case "asymmetric":
            return positions / scale
        case "pytorch_half_pixel" if count <= 1:
            return positions * 0
        case "half_pixel_symmetric":
            return length / 2 * (1 - count / total) + (positions + 0.5) / scale - 0.5 if count else positions
        case "tf_crop_and_resize" if count > 1:
            return start * (length - 1) + positions * (end - start) * (length - 1) / (total - 1)
        case "tf_crop_and_resize":
            return positions * 0 + 0.5 * (start + end) * (length - 1)
        case _:
            return (positions + 0.5) / scale - 0.5


def _weighed(op: Resize1dOp, x: Array, axis: int, positions: Array, count: int) -> Array:
    data = wide(x) if x.dtype.kind not in "iub" else x.astype(np.float32)
    squeeze = 1.0
    if op.antialias is not None and count:
        squeeze = min(op.scale.value.data if op.scale is not None else count / x.shape[axis], 1.0)
    reach = 1 if op.method.data == "linear" else 2
    taps = 2 * math.ceil(reach / squeeze)
    first = np.floor(positions) - taps // 2 + 1
    weights = [_weight(op, (first + tap - positions) * squeeze) for tap in range(taps)]
    if op.exclude_outside is not None:
        inside = [(first + tap >= 0) & (first + tap < x.shape[axis]) for tap in range(taps)]
        weights = [np.where(*pair, 0) for pair in zip(inside, weights, strict=True)]
    if op.exclude_outside is not None or op.antialias is not None:
        weights = [weight / sum(weights) for weight in weights]
    shape = _along(axis, x.ndim)
    parts = [_at(data, axis, first + tap) * w.astype(data.dtype).reshape(shape) for tap, w in enumerate(weights)]
    return sum(parts[1:], parts[0])


def _weight(op: Resize1dOp, distance: Array) -> Array:
    """The weight of an element at a distance."""
    t, a = np.abs(distance), op.cubic_alpha.value.data
    if op.method.data == "linear":
        return np.maximum(1 - t, 0)
    near, far = ((a + 2) * t - (a + 3)) * t * t + 1, ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def _at(x: Array, axis: int, positions: Array) -> Array:
    """The elements at positions of an axis, or at the nearest ones that there are."""
    return np.take(x, np.clip(positions, 0, x.shape[axis] - 1).astype(np.int64), axis)

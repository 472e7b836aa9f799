"""Operators on images. Positions are computed in `f64`, weights and sums in the dtype of the data, at least `f32`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relax_dialect.interpreter.convolution import arranged
from relax_dialect.interpreter.operators import computes, result_dtype, wide
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.image import Resize2dOp
from relax_dialect.ops.layouts import Layout
from tir_dialect.dtypes import from_numpy
from tir_dialect.elements import converted

ROUND: dict[str, Callable[[Array], Array]] = {
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


@computes(Resize2dOp)
def resize2d(op: Resize2dOp, x: Array, size: Shape) -> Array:
    """Interpolation along the height, then along the width."""
    layout = op.data_layout
    image = arranged(x, layout, "NCHW")
    work = image if op.method.data == "nearest_neighbor" else _floating(image)
    outside = np.zeros(size, bool)
    for axis in (0, 1):
        positions = source_positions(op, axis, image.shape[axis + 2], size[axis])
        work = _interpolated(op, work, axis + 2, positions)
        beyond = (positions < 0) | (positions > image.shape[axis + 2] - 1)
        outside |= beyond[:, None] if axis == 0 else beyond
    if op.coordinates.data == "tf_crop_and_resize":
        work = np.where(outside, np.asarray(op.extrapolation_value.value.data, work.dtype), work)
    return converted(arranged(work, Layout("NCHW"), layout.letters), from_numpy(result_dtype(op, x)))


def _floating(x: Array) -> Array:
    return wide(x) if np.issubdtype(wide(x).dtype, np.floating) else x.astype(np.float32)


def source_positions(op: Resize2dOp, axis: int, length: int, count: int) -> Array:
    """Where the positions of the result come from, along one axis (0: height, 1: width)."""
    positions = np.arange(count, dtype=np.float64)
    match op.coordinates.data:
        case "align_corners":
            return positions * (length - 1) / (count - 1) if count > 1 else positions * 0
        case "asymmetric":
            return positions * length / count
        case "pytorch_half_pixel" if count == 1:
            return positions * 0
        case "tf_crop_and_resize":
            roi = (0.0, 0.0, 1.0, 1.0) if op.roi is None else tuple(op.roi.get_values())
            start, end = roi[axis], roi[axis + 2]
            if count > 1:
                return start * (length - 1) + positions * (end - start) * (length - 1) / (count - 1)
            return positions * 0 + 0.5 * (start + end) * (length - 1)
        case _:
            return (positions + 0.5) * length / count - 0.5


def _interpolated(op: Resize2dOp, x: Array, axis: int, positions: Array) -> Array:
    """The tensor at positions between the elements of an axis."""
    if op.method.data == "nearest_neighbor":
        return _at(x, axis, ROUND[op.rounding.data](positions))
    first = np.floor(positions)
    rest = positions - first
    if op.method.data == "linear":
        offsets, weights = (0, 1), [1 - rest, rest]
    else:
        offsets, weights = (-1, 0, 1, 2), cubic_weights(op.cubic_alpha.value.data, rest)
    if op.method.data == "cubic" and op.cubic_exclude is not None:
        inside = [(first + offset >= 0) & (first + offset < x.shape[axis]) for offset in offsets]
        kept = [np.where(*pair, 0) for pair in zip(inside, weights, strict=True)]
        weights = [weight / sum(kept) for weight in kept]
    shape = [-1 if at == axis else 1 for at in range(x.ndim)]
    parts = [
        _at(x, axis, first + offset) * weight.astype(x.dtype).reshape(shape)
        for offset, weight in zip(offsets, weights, strict=True)
    ]
    return sum(parts[1:], parts[0])


def _at(x: Array, axis: int, positions: Array) -> Array:
    """The elements at positions of an axis, or at the nearest ones that there are."""
    return np.take(x, np.clip(positions, 0, x.shape[axis] - 1).astype(np.int64), axis)


def cubic_weights(alpha: float, rest: Array) -> Sequence[Array]:
    """The weights of four neighbours of a position that is `rest` after the second (Keys, 1981)."""

    def near(t: Array) -> Array:
        return ((alpha + 2) * t - (alpha + 3)) * t * t + 1

    def far(t: Array) -> Array:
        return ((alpha * t - 5 * alpha) * t + 8 * alpha) * t - 4 * alpha

    return [far(rest + 1), near(rest), near(1 - rest), far(2 - rest)]

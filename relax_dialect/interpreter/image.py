"""Images: resizing, whose positions and weights are computed in `f64`, and sampling, in the dtype of the grid, at
least `f32`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from relax_dialect.interpreter.convolution import arranged
from relax_dialect.interpreter.operators import DimValues, computes, computes_in, einsum, result_dtype, wide
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.image import AffineGridOp, GridSampleOp, Resize1dOp, Resize2dOp
from relax_dialect.ops.layouts import Layout
from tir_dialect.dtypes import from_numpy
from tir_dialect.weights import converted

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
        case "tf_half_pixel_for_nn":
            return (positions + 0.5) * length / count
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


@computes_in(Resize1dOp)
def resize1d(dims: DimValues, op: Resize1dOp, x: Array) -> list[Array]:
    """The elements near the position that each position comes from, weighed."""
    axis, count = op.axis.value.data % x.ndim, dims(op.length)
    length = x.shape[axis]
    positions = axis_positions(op, length, count)
    if op.method.data == "nearest_neighbor":
        result = _at(x, axis, ROUND[op.rounding.data](positions.astype(np.float32).astype(np.float64)))
    else:
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
        result = sum(parts[1:], parts[0])
    if op.coordinates.data == "tf_crop_and_resize":
        beyond = ((positions < 0) | (positions > length - 1)).reshape(_along(axis, x.ndim))
        result = np.where(beyond, np.asarray(op.extrapolation_value.value.data, result.dtype), result)
    return [converted(result, from_numpy(x.dtype))]


def _along(axis: int, rank: int) -> list[int]:
    return [-1 if at == axis else 1 for at in range(rank)]


def axis_positions(op: Resize1dOp, length: int, count: int) -> Array:
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
        case "tf_half_pixel_for_nn":
            return (positions + 0.5) / scale
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


def _weight(op: Resize1dOp, distance: Array) -> Array:
    """The weight of an element at a distance."""
    t, a = np.abs(distance), op.cubic_alpha.value.data
    if op.method.data == "linear":
        return np.maximum(1 - t, 0)
    near, far = ((a + 2) * t - (a + 3)) * t * t + 1, ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


@computes(GridSampleOp)
def grid_sample(op: GridSampleOp, x: Array, grid: Array) -> Array:
    """The weighted neighbours of each position."""
    lengths = x.shape[2:]
    data = wide(x) if x.dtype.kind not in "iub" else x.astype(np.float32)
    data = x if op.method.data == "nearest" else data
    taps = [_taps(op, wide(grid)[..., -1 - axis], length) for axis, length in enumerate(lengths)]
    batches = np.expand_dims(np.arange(int(x.shape[0])), tuple(range(1, len(lengths) + 1)))
    total = np.zeros((x.shape[0], *grid.shape[1:-1], x.shape[1]), data.dtype)
    for chosen in product(*taps):
        positions, inside, weights = zip(*chosen, strict=True)
        values = data.transpose(0, *range(2, x.ndim), 1)[(batches, *positions)]
        weight = np.prod(np.broadcast_arrays(*weights), axis=0).astype(data.dtype)
        kept = np.all(np.broadcast_arrays(*inside), axis=0)
        total += np.where(kept[..., None], values * weight[..., None], 0).astype(data.dtype)
    return np.moveaxis(total, -1, 1).astype(x.dtype)


def _taps(op: GridSampleOp, coordinate: Array, length: int) -> list[tuple[Array, Array, Array]]:
    """The neighbours along an axis: their positions, whether they are in the image, and their weights."""
    corners, mode = op.align_corners is not None, op.padding_mode.data
    position: Array = (coordinate + 1) / 2 * (length - 1) if corners else ((coordinate + 1) * length - 1) / 2
    low, high = (0.0, length - 1.0) if corners else (-0.5, length - 0.5)
    if op.method.data == "nearest":
        position = np.round(position)
    if mode == "border" and op.method.data != "cubic":
        position = np.clip(position, 0, length - 1)
    elif mode == "reflection":
        position = mirrored(position, low, high)
    first = np.floor(position)
    rest = position - first
    if op.method.data == "nearest":
        offsets, weights = (0,), [np.ones_like(position)]
        first = position
    elif op.method.data == "linear":
        offsets, weights = (0, 1), [1 - rest, rest]
    else:
        offsets, weights = (-1, 0, 1, 2), list(cubic_weights(op.cubic_alpha.value.data, rest))
    taps: list[tuple[Array, Array, Array]] = []
    for offset, weight in zip(offsets, weights, strict=True):
        at: Array = first + offset
        inside: Array = (at >= 0) & (at <= length - 1) if mode == "zeros" else np.ones(at.shape, bool)
        at = mirrored(at, low, high) if mode == "reflection" else at
        taps.append((np.clip(np.nan_to_num(at), 0, length - 1).astype(np.int64), inside, weight))
    return taps


def mirrored(position: Array, low: float, high: float) -> Array:
    """Positions mirrored at both ends until they lie between them."""
    span = high - low
    beyond = np.where(position < low, low - position, np.where(position > high, position - high, 0))
    if span <= 0:
        return np.where(beyond > 0, low, position)
    times = np.trunc(beyond / span)
    rest, even = beyond - times * span, times % 2 == 0
    from_low = (position < low) == even
    return np.where(beyond > 0, np.where(from_low, low + rest, high - rest), position).astype(position.dtype)


@computes(AffineGridOp)
def affine_grid(op: AffineGridOp, theta: Array, size: Shape) -> Array:
    """The maps of evenly spaced positions."""
    work = wide(theta)
    axes = [_even(length, op.align_corners is not None) for length in reversed(size)]
    positions = np.stack([*reversed(np.meshgrid(*reversed(axes), indexing="ij")), np.ones(size)], -1).astype(work.dtype)
    return einsum("bij,...j->b...i", work, positions).astype(theta.dtype)


def _even(length: int, corners: bool) -> Array:
    """Positions between -1 and 1: from end to end, or the middles of equal parts."""
    if corners:
        return np.linspace(-1, 1, length) if length > 1 else np.full(length, -1.0)
    return (2 * np.arange(length) + 1) / max(length, 1) - 1

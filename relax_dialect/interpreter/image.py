"""Images: resizing, whose positions and weights are computed in `f64`; sampling, in the dtype of the grid, at least
`f32`; and object detection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from relax_dialect.interpreter.convolution import arranged
from relax_dialect.interpreter.operators import (
    DimValues,
    computes,
    computes_all,
    computes_in,
    einsum,
    result_dtype,
    wide,
)
from relax_dialect.interpreter.reduction import order
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.image import AffineGridOp, GridSampleOp, Resize1dOp, Resize2dOp
from relax_dialect.ops.layouts import Layout
from relax_dialect.ops.vision import (
    COORDINATES,
    FARTHEST,
    BoxNMSOp,
    GetValidCountsOp,
    NonMaxSuppressionOp,
    ROIAlignOp,
    ROIPoolOp,
)
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


def corners(boxes: Array, center: bool) -> Array:
    """The least and greatest coordinates of boxes."""
    if center:
        x, y, half_width, half_height = boxes[:, 0], boxes[:, 1], boxes[:, 2] / 2, boxes[:, 3] / 2
        return np.stack([y - half_height, x - half_width, y + half_height, x + half_width], 1)
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    return np.concatenate([low, high], 1)


def overlap(box: Array, others: Array) -> Array:
    """The part of the union of two boxes that they share; 0 where one is empty."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    shared = np.where((sides > 0).all(1), sides.prod(1), 0)
    area, areas = (box[2:] - box[:2]).prod(), (others[:, 2:] - others[:, :2]).prod(1)
    return np.where((shared > 0) & (area > 0) & (areas > 0), shared / (area + areas - shared), 0)


@computes(NonMaxSuppressionOp)
def non_max_suppression(
    op: NonMaxSuppressionOp, boxes: Array, scores: Array, limit: Array, iou: Array, least: Array
) -> Array:
    """The best box that is left, until there is none."""
    found: list[tuple[int, int, int]] = []
    for batch, kind in np.ndindex(scores.shape[:2]):
        each, values = corners(wide(boxes[batch]), op.center_point_box is not None), wide(scores[batch, kind])
        order = [int(box) for box in np.argsort(-values, kind="stable") if values[box] > least]
        taken: list[int] = []
        for box in order:
            if len(taken) < limit and not (overlap(each[box], each[taken]) > iou).any():
                taken.append(box)
        found += [(batch, kind, box) for box in taken]
    return np.array(found, np.int64).reshape(-1, 3)


@computes(ROIAlignOp)
def roi_align(op: ROIAlignOp, x: Array, rois: Array, batches: Array) -> Array:
    """Points of a grid in each part of each region."""
    height, width = op.height.value.data, op.width.value.data
    data, result = wide(x), np.zeros((len(rois), x.shape[1], height, width), wide(x).dtype)
    for number, batch in enumerate(batches):
        image, scale = _image(data, batch), data.dtype.type(op.spatial_scale.value.data)
        corner = wide(rois[number]) * scale - data.dtype.type(op.offset.value.data)
        rows = _points(corner[1], corner[3], height, op)
        columns = _points(corner[0], corner[2], width, op)
        for i, j in product(range(height), range(width)):
            points = [_point(image, y, across) for y in rows[i] for across in columns[j]]
            if op.mode.data == "avg":
                result[number, :, i, j] = sum((p.sum(0) for p in points), np.zeros(x.shape[1])) / max(len(points), 1)
            elif points:
                each = [p.max(0) if op.mode.data == "max" else p.sum(0) for p in points]
                result[number, :, i, j] = np.max(each, axis=0)
    return result.astype(x.dtype)


def _image(data: Array, batch: Any) -> Array:
    """The image of a region; of a number that no image has, the nearest one."""
    return data[min(max(int(batch), 0), len(data) - 1)]


def _points(start: Any, end: Any, count: int, op: ROIAlignOp) -> list[list[float]]:
    """The positions of points along an axis, for each part."""
    length = end - start if op.aligned is not None else max(end - start, 1.0)
    part, ratio = length / count, op.sampling_ratio.value.data
    points = ratio or (max(math.ceil(part), 0) if math.isfinite(part) else 0)
    return [[start + at * part + (p + 0.5) * part / points for p in range(points)] for at in range(count)]


def _point(image: Array, y: float, x: float) -> Array:
    """The four weighted neighbours of a point, by neighbour and channel; zeros far outside, or where it is NaN."""
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros((4, image.shape[0]), image.dtype)
    (row, below, dy), (column, right, dx) = _neighbours(y, height), _neighbours(x, width)
    weights = ((row, column, (1 - dy) * (1 - dx)), (row, right, (1 - dy) * dx))
    weights += ((below, column, dy * (1 - dx)), (below, right, dy * dx))
    return np.stack([image[:, r, c] * weight for r, c, weight in weights])


def _neighbours(position: float, length: int) -> tuple[int, int, float]:
    position = max(position, 0.0)
    low = int(position)
    return (length - 1, length - 1, 0.0) if low >= length - 1 else (low, low + 1, position - low)


@computes(ROIPoolOp)
def roi_pool(op: ROIPoolOp, x: Array, rois: Array, batches: Array) -> Array:
    """The greatest element of each part of each region."""
    height, width = op.height.value.data, op.width.value.data
    result = np.zeros((len(rois), x.shape[1], height, width), wide(x).dtype)
    for number, batch in enumerate(batches):
        image = _image(wide(x), batch)
        scaled = np.nan_to_num(wide(rois[number]) * image.dtype.type(op.spatial_scale.value.data))
        corners = np.copysign(np.floor(abs(scaled) + 0.5), scaled).clip(-FARTHEST, FARTHEST)
        left, top, right, bottom = map(int, corners)
        rows, columns = _parts(top, bottom, height, image.shape[1]), _parts(left, right, width, image.shape[2])
        for i, j in product(range(height), range(width)):
            part = image[:, rows[i], columns[j]]
            if part.shape[1] and part.shape[2]:
                result[number, :, i, j] = part.max((1, 2))
    return result.astype(x.dtype)


def _parts(first: int, last: int, count: int, length: int) -> list[slice]:
    """The elements of each part of a region that are in the image."""
    size = max(last - first + 1, 1)
    ends = [(at * size // count + first, -(-(at + 1) * size // count) + first) for at in range(count)]
    return [slice(min(max(low, 0), length), min(max(high, 0), length)) for low, high in ends]


@computes_all(GetValidCountsOp)
def get_valid_counts(op: GetValidCountsOp, x: Array) -> Sequence[Array]:
    """The valid rows come first in a stable order of validity."""
    columns = wide(x)
    valid = columns[:, :, op.score_index.value.data] > op.score_threshold.value.data
    if op.id_index.value.data >= 0:
        valid &= columns[:, :, op.id_index.value.data] >= 0
    count, positions = valid.sum(1), np.argsort(~valid, axis=1, kind="stable")
    there = np.sort(valid, axis=1)[:, ::-1]
    rows = np.where(there[:, :, None], np.take_along_axis(x, positions[:, :, None], 1), x.dtype.type(-1))
    return count.astype(np.int32), rows, np.where(there, positions, -1).astype(np.int32)


@computes_all(BoxNMSOp)
def box_nms(op: BoxNMSOp, x: Array, count: Array, indices: Array) -> Sequence[Array]:
    """Batch by batch, the best row that is left, until there is none."""
    rows, kept, taken = np.full_like(x, -1), np.full_like(indices, -1), np.zeros_like(count)
    column, limit = op.score_index.value.data, op.top_k.value.data
    for batch, length in enumerate(count):
        valid = min(max(int(length), 0), x.shape[1])
        positions = order(x[batch, :valid, column], 0, True)[: limit if limit > 0 else None]
        found = _best(op, x[batch, positions])
        taken[batch] = len(found)
        for at, (rank, score) in enumerate(found):
            target = at if op.is_compact else rank
            rows[batch, target] = x[batch, positions[rank]]
            rows[batch, target, column] = score
            kept[batch, at] = indices[batch, positions[rank]]
    return rows, kept, taken


def _best(op: BoxNMSOp, rows: Array) -> list[tuple[int, Array]]:
    """Which of sorted rows are taken, in order, and their scores then."""
    start, kind = op.coord_start.value.data, op.column_of_class
    boxes, scores = corners(wide(rows[:, start : start + COORDINATES]), False), wide(rows[:, op.score_index.value.data])
    left = np.ones(len(rows), bool)
    found: list[tuple[int, Array]] = []
    most = op.max_output_size.value.data
    while len(found) < most or most <= 0:
        live = np.flatnonzero(left & (scores > op.least))
        if not live.size:
            break
        best = live[np.argmax(scores[live])]
        found.append((int(best), scores[best]))
        left[best] = False
        near = left if kind is None else left & (rows[:, kind] == rows[best, kind])
        share = overlap(boxes[best], boxes)
        left &= ~(near & (share >= op.iou_threshold.value.data))
        if op.is_soft:
            decay = np.exp(scores.dtype.type(-0.5 / op.soft_nms_sigma.value.data) * share * share)
            scores = np.where(near & left, scores * decay, scores)
    return found

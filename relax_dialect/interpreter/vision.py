"""Operators of object detection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from relax_dialect.interpreter.operators import computes, computes_all, wide
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.interpreter.sorting import order
from relax_dialect.ops.vision import (
    COORDINATES,
    FARTHEST,
    BoxNMSOp,
    GetValidCountsOp,
    NonMaxSuppressionOp,
    ROIAlignOp,
    ROIPoolOp,
)


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

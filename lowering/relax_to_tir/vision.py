"""Operators of object detection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TypeAlias

from lowering.relax_to_tir.elementwise import narrowed, number, wide_dtype, widen
from lowering.relax_to_tir.kernel import Kernel, axes, clamped, legalizes, sizes
from lowering.relax_to_tir.sorting import descending, merge_sort
from relax_dialect.ops.vision import (
    COORDINATES,
    FARTHEST,
    BoxNMSOp,
    GetValidCountsOp,
    NonMaxSuppressionOp,
    ROIAlignOp,
    ROIPoolOp,
)
from tir_dialect import te
from tir_dialect.dims import Dim

Box: TypeAlias = tuple[te.Expr, te.Expr, te.Expr, te.Expr]


@sizes(NonMaxSuppressionOp)
def count_boxes(kernel: Kernel, op: NonMaxSuppressionOp) -> Sequence[te.Tensor]:
    """How many boxes are taken; kept: batch, class and box of each, in order."""
    boxes, scores, limit, iou, least = (kernel.tensor(operand) for operand in op.operands)
    batches, classes, count = scores.shape
    center = op.center_point_box is not None

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        total, found = outs
        first, taken = b.alloc((), "i64", "first"), b.alloc((), "i1", "taken")
        b.store(total, 0, 0)
        with b.block("non_max_suppression", *axes((batches, classes), (0, 1))) as (batch, kind):
            lane = merge_sort(b, count, lambda i: scores[batch, kind, i], descending)
            b.store(first, (), total[0])
            with b.for_range(0, count, "rank") as rank:
                position = b.let(lane.index(rank), "place")
                box = _corners(b, boxes, batch, position, center)
                room = total[0] - first[()] < te.cast(limit[()], "i64")
                b.store(taken, (), te.logical_and(lane.key(rank) > least[()], room))
                with b.if_(taken[()]), b.for_range(first[()], total[0], "before") as before:
                    other = _corners(b, boxes, batch, found[before, 2], center)
                    part = overlap(box, other)
                    b.store(taken, (), te.logical_and(taken[()], te.logical_not(part > widen(iou[()]))))
                with b.if_(taken[()]):
                    for at, value in enumerate((te.cast(batch, "i64"), te.cast(kind, "i64"), position)):
                        b.store(found, (total[0], at), value)
                    b.store(total, 0, total[0] + 1)

    outputs = [((1,), "i64"), ((batches * classes * count, 3), "i64")]
    return te.extern(outputs, [boxes, scores, limit, iou, least], body, name="non_max_suppression")


@legalizes(NonMaxSuppressionOp)
def non_max_suppression(kernel: Kernel, op: NonMaxSuppressionOp) -> te.Tensor:
    """The rows that were found."""
    found = kernel.kept(0)
    return te.compute(kernel.shape(op.result), lambda *i: found[i], name="boxes")


def _corners(b: te.ExternBuilder, boxes: te.Tensor, batch: te.Expr, position: te.Expr, center: bool) -> Box:
    """The least and greatest coordinates of a box."""
    p, q, r, s = (b.let(widen(boxes[batch, position, at]), "side") for at in range(4))
    return (q - s / 2, p - r / 2, q + s / 2, p + r / 2) if center else box_between(p, q, r, s)


def box_between(p: te.Expr, q: te.Expr, r: te.Expr, s: te.Expr) -> Box:
    """The least and greatest coordinates of the box with the corners `p, q` and `r, s`."""
    return te.minimum(p, r), te.minimum(q, s), te.maximum(p, r), te.maximum(q, s)


def overlap(one: Box, other: Box) -> te.Expr:
    """The part of the union of two boxes that they share; 0 where one is empty."""
    height = te.minimum(one[2], other[2]) - te.maximum(one[0], other[0])
    width = te.minimum(one[3], other[3]) - te.maximum(one[1], other[1])
    area, areas = ((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    shared = height * width
    some = te.logical_and(height > 0, width > 0, area > 0, areas > 0)
    return te.select(some, shared / (area + areas - shared), number(0, shared))


@legalizes(ROIAlignOp)
def roi_align(kernel: Kernel, op: ROIAlignOp) -> te.Tensor:
    """Points of a grid in each part of each region."""
    x, rois, batches = (kernel.tensor(operand) for operand in op.operands)
    shape, wide, mode = kernel.shape(op.result), wide_dtype(x.dtype), op.mode.data
    join_points = add if mode == "avg" else te.maximum
    join_parts = te.maximum if mode == "max" else add

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("roi_align", *axes(shape)) as (region, channel, i, j):
            total = b.alloc((), wide, "total")
            b.store(total, (), te.const(0.0, wide) if mode == "avg" else te.min_value(wide))
            batch = clamped(te.cast(batches[region], "index"), x.shape[0])
            top, rows = _grid(b, op, rois, region, 1, i, shape[2])
            left, columns = _grid(b, op, rois, region, 0, j, shape[3])
            with b.for_range(0, rows, "row") as row, b.for_range(0, columns, "column") as column:
                y = b.let(_at(top, row, rows), "y")
                across = b.let(_at(left, column, columns), "x")
                # The four weighted neighbours of a point; zeros far outside, or where it is NaN.
                outer = (batch, channel)
                (row, below, dy), (column, right, dx) = (
                    _pair(b, position, length) for position, length in zip((y, across), x.shape[2:], strict=True)
                )
                height, width = (te.cast(te.cast(length, "index"), y.dtype) for length in x.shape[2:])
                near = te.logical_and(y >= -1, y <= height, across >= -1, across <= width)
                weights = ((row, column, (1 - dy) * (1 - dx)), (row, right, (1 - dy) * dx))
                weights += ((below, column, dy * (1 - dx)), (below, right, dy * dx))
                zero = number(0, y)
                parts = [te.select(near, widen(x[(*outer, r, c)]) * te.cast(w, y.dtype), zero) for r, c, w in weights]
                b.store(total, (), join_points(total[()], reduce(join_parts, parts)))
            points = rows * columns
            none = te.logical_or(rows <= 0, columns <= 0)
            joined = total[()] / te.cast(te.maximum(points, 1), wide) if mode == "avg" else total[()]
            b.store(outs[0], (region, channel, i, j), te.select(none, te.const(0.0, wide), joined))

    (result,) = te.extern([(shape, wide)], list(dict.fromkeys((x, rois, batches))), body, name="roi_align")
    return narrowed(result, x.dtype)


def _grid(
    b: te.ExternBuilder, op: ROIAlignOp, rois: te.Tensor, region: te.Expr, axis: int, at: te.Expr, count: Dim
) -> tuple[tuple[te.Expr, te.Expr], te.Expr]:
    """Where a part of a region begins, its length, and how many points it has."""
    start, end = (widen(rois[region, axis + corner]) for corner in (0, 2))
    scale, offset = number(op.spatial_scale.value.data, start), op.offset.value.data
    start, end = (each * scale - offset if offset else each * scale for each in (start, end))
    length = end - start if op.aligned is not None else te.maximum(end - start, 1)
    part = b.let(length / te.cast(te.cast(count, "index"), length.dtype), "part")
    ratio = op.sampling_ratio.value.data
    whole = te.select(te.isfinite(part), te.ceil(part), number(0, part))
    points = te.const(ratio, "i64") if ratio else te.cast(whole, "i64")
    return (start + te.cast(at, part.dtype) * part, part), te.cast(b.let(points, "points"), "index")


def _at(position: tuple[te.Expr, te.Expr], index: te.Expr, count: te.Expr) -> te.Expr:
    start, part = position
    return start + (te.cast(index, part.dtype) + 0.5) * part / te.cast(count, part.dtype)


def _pair(b: te.ExternBuilder, position: te.Expr, length: Dim) -> tuple[te.Expr, te.Expr, te.Expr]:
    """The neighbours of a position, and its distance from the first."""
    size = te.cast(length, "index")
    inside = b.let(te.minimum(te.maximum(position, 0), te.cast(size, position.dtype)), "inside")
    low = b.let(te.minimum(te.cast(te.cast(inside, "i64"), "index"), size - 1), "low")
    last = low >= size - 1
    rest = te.select(last, number(0, position), inside - te.cast(low, position.dtype))
    return low, te.select(last, low, low + 1), rest


@legalizes(ROIPoolOp)
def roi_pool(kernel: Kernel, op: ROIPoolOp) -> te.Tensor:
    """The greatest element of each part of each region."""
    x, rois, batches = (kernel.tensor(operand) for operand in op.operands)
    shape, wide = kernel.shape(op.result), wide_dtype(x.dtype)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("roi_pool", *axes(shape)) as (region, channel, i, j):
            greatest = b.alloc((), wide, "greatest")
            b.store(greatest, (), te.min_value(wide))
            batch = clamped(te.cast(batches[region], "index"), x.shape[0])
            top, bottom = _part(b, op, rois, region, 1, i, shape[2], x.shape[2])
            left, right = _part(b, op, rois, region, 0, j, shape[3], x.shape[3])
            with b.for_range(top, bottom, "row") as row, b.for_range(left, right, "column") as column:
                b.store(greatest, (), te.maximum(greatest[()], widen(x[batch, channel, row, column])))
            some = te.logical_and(top < bottom, left < right)
            b.store(outs[0], (region, channel, i, j), te.select(some, greatest[()], te.const(0.0, wide)))

    (result,) = te.extern([(shape, wide)], list(dict.fromkeys((x, rois, batches))), body, name="roi_pool")
    return narrowed(result, x.dtype)


def _part(
    b: te.ExternBuilder,
    op: ROIPoolOp,
    rois: te.Tensor,
    region: te.Expr,
    axis: int,
    at: te.Expr,
    count: Dim,
    length: Dim,
) -> tuple[te.Expr, te.Expr]:
    """The first element of a part of a region, and the one after the last, within the image."""
    corners: list[te.Expr] = []
    for corner in (0, 2):
        value = widen(rois[region, axis + corner])
        position = te.round_away(value * number(op.spatial_scale.value.data, value))
        limited = te.maximum(te.minimum(position, FARTHEST), -FARTHEST)
        corners.append(b.let(te.cast(limited, "i64"), "corner"))
    size = b.let(te.maximum(corners[1] - corners[0] + 1, 1), "size")
    index, parts = te.cast(at, "i64"), te.cast(te.cast(count, "index"), "i64")
    limit = te.cast(te.cast(length, "index"), "i64")
    ends = (index * size // parts + corners[0], te.ceildiv((index + 1) * size, parts) + corners[0])
    first, last = (b.let(te.maximum(te.minimum(end, limit), 0), "end") for end in ends)
    return te.cast(first, "index"), te.cast(last, "index")


@legalizes(GetValidCountsOp)
def get_valid_counts(kernel: Kernel, op: GetValidCountsOp) -> Sequence[te.Tensor]:
    """One way down the rows of a batch."""
    x = kernel.tensor(op.x)
    batches, length, columns = x.shape
    outputs = [(kernel.shape(result), str(kernel.dtype(result))) for result in op.results]
    column, kind = op.score_index.value.data, op.id_index.value.data

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        total, rows, positions = outs
        with b.block("get_valid_counts", *axes((batches,))) as (batch,):
            count, valid = b.alloc((), "i32", "count"), b.alloc((), "i1", "valid")
            b.store(count, (), 0)
            with b.for_range(0, length, "row") as row:
                score = widen(x[batch, row, column])
                b.store(valid, (), score > number(op.score_threshold.value.data, score))
                if kind >= 0:
                    b.store(valid, (), te.logical_and(valid[()], x[batch, row, kind] >= 0))
                _fill(b, rows, (batch, row), columns)
                b.store(positions, (batch, row), -1)
                with b.if_(valid[()]):
                    target = te.cast(count[()], "index")
                    with b.for_range(0, columns, "column") as at:
                        b.store(rows, (batch, target, at), x[batch, row, at])
                    b.store(positions, (batch, target), te.cast(row, "i32"))
                    b.store(count, (), count[()] + 1)
            b.store(total, batch, count[()])

    return te.extern(outputs, [x], body, name="get_valid_counts")


def _fill(b: te.ExternBuilder, rows: te.Tensor, position: Sequence[te.Expr], columns: Dim) -> None:
    """A row of -1."""
    with b.for_range(0, columns, "column") as at:
        b.store(rows, (*position, at), te.const(-1.0, rows.dtype))


@dataclass(frozen=True)
class _Rows:
    """The rows of one batch in descending order of scores: where they come from, their scores, which are left."""

    x: te.Tensor
    batch: te.Expr
    positions: te.Tensor
    scores: te.Tensor
    left: te.Tensor
    count: te.Expr

    def box(self, b: te.ExternBuilder, rank: te.Expr, start: int) -> Box:
        """The least and greatest coordinates of a box."""
        position = self.positions[rank]
        return box_between(
            *(b.let(widen(self.x[self.batch, position, start + at]), "side") for at in range(COORDINATES))
        )


@legalizes(BoxNMSOp)
def box_nms(kernel: Kernel, op: BoxNMSOp) -> Sequence[te.Tensor]:
    """Batch by batch, the best row that is left, until there is none."""
    x, count, indices = (kernel.tensor(operand) for operand in op.operands)
    outputs = [(kernel.shape(result), str(kernel.dtype(result))) for result in op.results]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("box_nms", *axes(x.shape[:1])) as (batch,):
            rows = _sorted(b, op, x, batch, count[batch])
            with b.for_range(0, x.shape[1], "row") as row:
                _fill(b, outs[0], (batch, row), x.shape[2])
                b.store(outs[1], (batch, row), -1)
            taken, best = b.alloc((), "i64", "taken"), b.alloc((), "i64", "best")
            b.store(taken, (), 0)
            with b.for_range(0, rows.count, "turn"):
                # The rank of the greatest score above the least one; -1 if there is none, or no room.
                greatest = b.alloc((), rows.scores.dtype, "greatest")
                b.store(best, (), -1)
                b.store(greatest, (), number(op.least, rows.scores[0]))
                most = op.max_output_size.value.data
                room = taken[()] < most if most > 0 else te.const(True, "i1")
                with b.if_(room), b.for_range(0, rows.count, "rank") as rank:
                    better = te.logical_and(rows.left[rank], rows.scores[rank] > greatest[()])
                    with b.if_(better):
                        b.store(best, (), te.cast(rank, "i64"))
                        b.store(greatest, (), rows.scores[rank])
                with b.if_(best[()] >= 0):
                    rank = te.cast(best[()], "index")
                    # Writes a row and its index to the results.
                    position, at = b.let(rows.positions[rank], "place"), te.cast(taken[()], "index")
                    target = b.let(at if op.is_compact else rank, "target")
                    with b.for_range(0, rows.x.shape[2], "column") as column:
                        b.store(outs[0], (rows.batch, target, column), rows.x[rows.batch, position, column])
                    b.store(
                        outs[0],
                        (rows.batch, target, op.score_index.value.data),
                        te.cast(rows.scores[rank], outs[0].dtype),
                    )
                    b.store(outs[1], (rows.batch, at), indices[rows.batch, position])
                    b.store(rows.left, rank, False)
                    b.store(taken, (), taken[()] + 1)
                    _suppress(b, op, rows, rank)
            b.store(outs[2], batch, te.cast(taken[()], outs[2].dtype))

    return te.extern(outputs, list(dict.fromkeys((x, count, indices))), body, name="box_nms")


def _sorted(b: te.ExternBuilder, op: BoxNMSOp, x: te.Tensor, batch: te.Expr, given: te.Expr) -> _Rows:
    """The rows that count in the order of their scores; after them the others."""
    length, column = x.shape[1], op.score_index.value.data
    valid = b.let(te.maximum(te.minimum(te.cast(given, "index"), length), 0), "valid")
    lowest = te.min_value(wide_dtype(x.dtype))
    lane = merge_sort(b, length, lambda row: te.select(row < valid, widen(x[batch, row, column]), lowest), descending)
    limit = op.top_k.value.data
    rows = _Rows(
        x,
        batch,
        b.alloc((length,), "i64", "order"),
        b.alloc((length,), wide_dtype(x.dtype), "scores"),
        b.alloc((length,), "i1", "left"),
        b.let(te.minimum(valid, limit), "count") if limit > 0 else valid,
    )
    with b.for_range(0, length, "rank") as rank:
        b.store(rows.positions, rank, lane.index(rank))
        b.store(rows.scores, rank, lane.key(rank))
        b.store(rows.left, rank, rank < rows.count)
    return rows


def _suppress(b: te.ExternBuilder, op: BoxNMSOp, rows: _Rows, best: te.Expr) -> None:
    """Drops the rows that overlap with the one taken; lets the scores of the others decay."""
    start, kind = op.coord_start.value.data, op.column_of_class
    box, near = rows.box(b, best, start), b.alloc((), "i1", "near")
    with b.for_range(0, rows.count, "rank") as rank:
        b.store(near, (), rows.left[rank])
        if kind is not None:
            mine, its = (rows.x[rows.batch, rows.positions[each], kind] for each in (rank, best))
            b.store(near, (), te.logical_and(near[()], mine == its))
        with b.if_(near[()]):
            share = b.let(overlap(box, rows.box(b, rank, start)), "share")
            b.store(rows.left, rank, share < number(op.iou_threshold.value.data, share))
            if op.is_soft:
                decay = te.exp(number(-0.5 / op.soft_nms_sigma.value.data, share) * share * share)
                b.store(rows.scores, rank, rows.scores[rank] * decay)

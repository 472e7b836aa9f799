"""Rows of detected boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.indices import axes
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.scalars import number, wide_dtype, widen
from lowering.relax_to_tir.sorting import descending, merge_sort
from lowering.relax_to_tir.vision import Box, box_between, overlap
from relax_dialect.ops.detection import COORDINATES, BoxNMSOp, GetValidCountsOp
from tir_dialect import te
from tir_dialect.dims import Dim


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
                _find(b, op, rows, best, taken)
                with b.if_(best[()] >= 0):
                    rank = te.cast(best[()], "index")
                    _take(b, op, rows, rank, taken, indices, outs)
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


def _find(b: te.ExternBuilder, op: BoxNMSOp, rows: _Rows, best: te.Tensor, taken: te.Tensor) -> None:
    """The rank of the greatest score above the least one; -1 if there is none, or no room."""
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


def _take(
    b: te.ExternBuilder,
    op: BoxNMSOp,
    rows: _Rows,
    rank: te.Expr,
    taken: te.Tensor,
    indices: te.Tensor,
    outs: Sequence[te.Tensor],
) -> None:
    """Writes a row and its index to the results."""
    position, at = b.let(rows.positions[rank], "place"), te.cast(taken[()], "index")
    target = b.let(at if op.is_compact else rank, "target")
    with b.for_range(0, rows.x.shape[2], "column") as column:
        b.store(outs[0], (rows.batch, target, column), rows.x[rows.batch, position, column])
    b.store(outs[0], (rows.batch, target, op.score_index.value.data), te.cast(rows.scores[rank], outs[0].dtype))
    b.store(outs[1], (rows.batch, at), indices[rows.batch, position])
    b.store(rows.left, rank, False)
    b.store(taken, (), taken[()] + 1)


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

"""Rows of detected boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relax_dialect.interpreter.operators import computes_all, wide
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.interpreter.sorting import order
from relax_dialect.interpreter.vision import corners, overlap
from relax_dialect.ops.detection import COORDINATES, BoxNMSOp, GetValidCountsOp


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

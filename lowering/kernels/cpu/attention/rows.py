"""The structure of attention: a product whose rows are completed, one by one, before they are the rows of another
product.

`C[i, d] = sum over j of f(sum over c of A[i, c] * B[j, c])[i, j] * V[j, d]`, where `f` is a chain of maps and
reductions along the row `i`, such as a softmax. It is recognised by structure. What lies between the products is needed
for a few rows at a time only, so it is never allocated as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.attention.bound import find_bound
from lowering.kernels.cpu.attention.forms import Following, Step, is_vector_map
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.structure.accesses import Index
from lowering.kernels.cpu.structure.alone import reduction_of
from lowering.kernels.cpu.structure.chains import Row, find_row
from lowering.kernels.cpu.structure.contraction import Contraction
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind

MOST_FEATURES = 1024
"""Longer sums of the first product would have to be split."""


@dataclass(frozen=True)
class Attention:
    """The stages of two products and of what is between them and after them."""

    scores: Contraction
    maps: tuple[Stage, ...]
    """What is computed of a score alone, in order; their axes are the dimensions of the scores."""
    row: Row
    """The chain along a row."""
    reductions: Mapping[Stage, Reduction]
    totals: Contraction
    weights: LoadOp
    """The load of the rows of the second product."""
    axes: Mapping[int, int]
    """The axis of the second product for each batch and row axis of the first."""
    bound: Index | None
    """The last column that counts, by the dimensions that choose a row; `None` if all may."""
    following: tuple[Step, ...]
    """What is computed of a total, and of what the chain keeps of its row."""
    unread: frozenset[SSAValue]
    """Buffers that need no memory of their own."""

    @property
    def buffer(self) -> SSAValue:
        """The scores, after the maps."""
        return self.maps[-1].stores[0].buffer if self.maps else self.scores.store.buffer

    @property
    def count(self) -> int:
        """How many stages there are."""
        chain = sum(map(len, self.row.sweeps))
        return 2 + len(self.maps) + chain + len(self.following)


def find_attention(
    kernel: Kernel,
    scores: Contraction,
    following: Sequence[Stage],
    contractions: Mapping[Stage, Contraction],
    own: frozenset[SSAValue],
) -> Attention | None:
    """The attention that begins with a product, or `None`; `own` are the buffers that nobody else sees."""
    if not _is_plain(scores, own):
        return None
    maps = _maps(scores, following, own)
    end = next((position for position, stage in enumerate(following) if stage in contractions), None)
    if end is None:
        return None
    totals, chain = contractions[following[end]], following[len(maps) : end]
    buffer = maps[-1].stores[0].buffer if maps else scores.store.buffer
    reductions = {stage: found for stage in chain if (found := reduction_of(stage)) is not None}
    weights = _weights(totals)
    row = None if weights is None else _row(kernel, chain, reductions, buffer, weights, own)
    axes = None if weights is None else _matched(scores, totals, weights)
    if row is None or weights is None or axes is None:
        return None
    inverse = {mine: theirs for theirs, mine in axes.items()}
    narrow = frozenset(row.buffers) - {buffer, weights.buffer}
    steps = Following(scores, totals, inverse, narrow).steps(following[end + 1 :])
    hidden = {*_written([scores.stage, *maps]), *row.buffers}
    made = _written([totals.stage, *(step.stage for step in steps)])
    read = {load.buffer for stage in following[end + 1 + len(steps) :] for load in stage.loads}
    if hidden & read:
        return None
    unread = frozenset(hidden | (made & own) - read)
    bound = find_bound(chain, reductions, frozenset((buffer, weights.buffer)), row.depth)
    return Attention(scores, tuple(maps), row, reductions, totals, weights, axes, bound, tuple(steps), unread)


def _written(stages: Sequence[Stage]) -> set[SSAValue]:
    return {store.buffer for stage in stages for store in stage.stores}


def _is_plain(scores: Contraction, own: frozenset[SSAValue]) -> bool:
    """Whether scores are of a known number of features, and go to memory of the function, row by row."""
    indices = scores.stage.accesses[scores.store]
    features = [scores.stage.extents[axis].constant_value for axis in scores.reduced]
    known = bool(features) and all(features) and not scores.outer and scores.longest is None
    if not known or len(scores.column) != 1 or scores.store.buffer not in own or len(indices) < 2:
        return False
    size = 1
    for length in features:
        size *= length or 0
    linear = all(index.value is None for index in indices)
    return linear and size <= MOST_FEATURES and indices[-1].is_axis(scores.column[0])


def _maps(scores: Contraction, following: Sequence[Stage], own: frozenset[SSAValue]) -> list[Stage]:
    """The stages that compute something of each score, and are the only ones to read what they do it of."""
    found: list[Stage] = []
    buffer, rank = scores.store.buffer, len(scores.stage.accesses[scores.store])
    for index, stage in enumerate(following):
        last = rank - 1
        plain = len(stage.axes) == rank and is_vector_map(stage, last) and len(stage.stores) == 1
        touched = [op for op in stage.accesses if isinstance(op, StoreOp) or op.buffer is buffer]
        if not plain or not all(_is_identity(stage, op) for op in touched) or stage.stores[0].buffer not in own:
            break
        others = [load for other in following[index + 1 :] for load in other.loads]
        if not any(load.buffer is buffer for load in stage.loads) or any(load.buffer is buffer for load in others):
            break
        found.append(stage)
        buffer = stage.stores[0].buffer
    return found


def _is_identity(stage: Stage, op: LoadOp | StoreOp) -> bool:
    indices = stage.accesses[op]
    return len(indices) == len(stage.axes) and all(index.is_axis(number) for number, index in enumerate(indices))


def _weights(totals: Contraction) -> LoadOp | None:
    """The load of the rows of a product, if they are nothing but loaded, along the last dimension."""
    ops, accesses = totals.rows.ops, totals.stage.accesses
    load = ops[0] if len(ops) == 1 else None
    if not isinstance(load, LoadOp) or load.result is not totals.rows.value or len(totals.reduced) != 1:
        return None
    linear = all(index.value is None for index in (*accesses[load], *accesses[totals.store]))
    one = len(totals.column) == 1 and not totals.outer and totals.longest is None
    return load if linear and one and accesses[load] and accesses[load][-1].is_axis(totals.reduced[0]) else None


def _row(
    kernel: Kernel,
    chain: Sequence[Stage],
    reductions: Mapping[Stage, Reduction],
    buffer: SSAValue,
    weights: LoadOp,
    own: frozenset[SSAValue],
) -> Row | None:
    """How a chain goes along a row of the scores, if it does, with nothing but numbers and one vector for each row."""
    depth = weights.buffer_type.rank - 1
    touched = dict.fromkeys(op.buffer for stage in chain for op in stage.accesses if op.buffer in own)
    row = find_row(kernel, chain, reductions, list(touched))
    if row is None or row.depth != depth or not {buffer, weights.buffer} <= set(row.buffers):
        return None
    for stage in chain:
        for op in stage.accesses:
            if op.buffer in touched and not _is_by_rows(stage, op, depth):
                return None
        if stage in reductions and len(stage.of_kind(IteratorKind.SPATIAL)) > depth:
            return None
    wide = {
        op.buffer for stage in chain for op in stage.accesses if op.buffer in touched and op.buffer_type.rank > depth
    }
    if wide - row.unread - {buffer, weights.buffer} or not _may_replace(row, buffer, weights.buffer):
        return None
    return Row(row.depth, row.buffers, row.unread - {buffer, weights.buffer}, row.sweeps)


def _is_by_rows(stage: Stage, op: LoadOp | StoreOp, depth: int) -> bool:
    indices = stage.accesses[op]
    leading = len(indices) in (depth, depth + 1) and all(indices[axis].is_axis(axis) for axis in range(depth))
    return leading and (len(indices) == depth or any(indices[depth].is_axis(axis) for axis in range(len(stage.axes))))


def _may_replace(row: Row, old: SSAValue, new: SSAValue) -> bool:
    """Whether one may be written over the other: what is read was the same element, and not read again."""
    written = False
    for sweep in row.sweeps:
        if written and any(load.buffer is old for stage in sweep for load in stage.loads):
            return False
        written = written or any(store.buffer is new for stage in sweep for store in stage.stores)
        if any(store.buffer is old for stage in sweep for store in stage.stores) and old is not new:
            return False
    return written


def _matched(scores: Contraction, totals: Contraction, weights: LoadOp) -> dict[int, int] | None:
    """The axis of the second product for each of the first that chooses a row."""
    mine, theirs = scores.stage.accesses[scores.store][:-1], totals.stage.accesses[weights][:-1]
    rows = (*scores.batch, *scores.row)
    found: dict[int, int] = {}
    for own, other in zip(mine, theirs, strict=True):
        if own.base is not other.base:
            return None
        for axis in (*totals.batch, *totals.row):
            step, extent = other.strides[axis], totals.stage.extents[axis]
            same = [each for each in rows if own.strides[each] is step and scores.stage.extents[each] is extent]
            if step.terms and (len(same) != 1 or same[0] in found):
                return None
            found |= {same[0]: axis} if step.terms else {}
    whole = set(found) == set(rows) and len(found) == len(totals.batch) + len(totals.row)
    return found if whole and {found[axis] for axis in scores.batch} == set(totals.batch) else None

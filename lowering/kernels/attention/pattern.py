"""The structure of attention: a GEMM whose output rows go through a chain such as a softmax, and then a second GEMM.

`C[i, d] = sum over j of f(sum over c of A[i, c] * B[j, c])[i, j] * V[j, d]`, where `f` is a chain of elementwise stages
and reductions along the row `i`. It is recognised by structure. The scores are needed for a few rows at a time only, so
they are never allocated as a whole.

If the chain has a causal mask, the columns beyond the causal bound of a row are skipped. Elementwise stages after the
second GEMM are its epilogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import ATTENTION_MAX_FEATURES
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.row.row_blocks import Row, find_row
from lowering.kernels.structure.contraction import Contraction
from lowering.kernels.structure.reduction import Reduction, reduction_of
from lowering.kernels.structure.stages import Index, Stage, linear
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class AffineForm:
    """A value that is linear in the axes of the first GEMM."""

    base: Dim
    terms: tuple[tuple[int, Dim], ...]
    """Axes with their strides, in the order of the axes."""


COLUMN = -1
"""Stands for the column of the second GEMM among the axes of the first."""


@dataclass(frozen=True)
class Step:
    """An elementwise stage that is computed from a vector in registers; for each axis, its value."""

    stage: Stage
    axes: tuple[AffineForm, ...]


def affine_forms(indices: Iterable[Index], axes: Mapping[int, int]) -> tuple[AffineForm, ...]:
    """Indices as affine forms with renumbered axes; axes without a number have extent 1."""
    return tuple(
        AffineForm(
            index.base,
            tuple(sorted(_terms(index, axes), key=itemgetter(0))),
        )
        for index in indices
    )


def _terms(index: Index, axes: Mapping[int, int]) -> Iterator[tuple[int, Dim]]:
    return ((axes[axis], step) for axis, step in enumerate(index.strides) if axis in axes and step.terms)


def row_forms(scores: Contraction) -> tuple[AffineForm, ...]:
    """The leading dimensions of the scores, which choose a row."""
    return affine_forms(scores.stage.accesses[scores.store][:-1], {axis: axis for axis in (*scores.batch, *scores.row)})


def is_vector_elementwise(stage: Stage, axis: int) -> bool:
    """Whether a stage can be computed for vectors along an axis."""
    if any(each.kind is not IteratorKind.SPATIAL for each in stage.axes) or axis in stage.pinned or stage.init:
        return False
    plain = all(index.value is None for indices in stage.accesses.values() for index in indices)
    return plain and not any(isinstance(op, IfOp) for op in stage.body)


class EpilogueFinder:
    """Finds the epilogue of the second GEMM."""

    def __init__(self, scores: Contraction, totals: Contraction, axes: Mapping[int, int], narrow: frozenset[SSAValue]):
        known = {**axes, totals.column[0]: COLUMN}
        self.known = {totals.store.buffer: affine_forms(totals.stage.accesses[totals.store], known)}
        self.known |= dict.fromkeys(narrow, row_forms(scores))

    def steps(self, stages: Sequence[Stage]) -> list[Step]:
        """As many of the stages as can be computed from a vector of the output."""
        found: list[Step] = []
        for stage in stages:
            step = self._step(stage)
            if step is None:
                break
            found.append(step)
            for store in stage.stores:
                self.known[store.buffer] = tuple(
                    next(step.axes[axis] for axis in range(len(step.axes)) if index.is_axis(axis))
                    for index in stage.accesses[store]
                )
        return found

    def _step(self, stage: Stage) -> Step | None:
        axes: dict[int, AffineForm] = {}
        for load in stage.loads:
            known = self.known.get(load.buffer)
            for number, index in enumerate(stage.accesses[load] if known is not None else ()):
                axis = next((axis for axis in range(len(stage.axes)) if index.is_axis(axis)), None)
                if axis is None or known is None or axes.setdefault(axis, known[number]) != known[number]:
                    return None
        if set(axes) != set(range(len(stage.axes))) or any(store.buffer in self.known for store in stage.stores):
            return None
        column = next((axis for axis, form in axes.items() if any(axis == COLUMN for axis, _ in form.terms)), None)
        plain = all(_is_permutation(stage, store) for store in stage.stores)
        if column is None or not plain or not is_vector_elementwise(stage, column):
            return None
        return Step(stage, tuple(axes[axis] for axis in range(len(stage.axes))))


def _is_permutation(stage: Stage, store: StoreOp) -> bool:
    return all(any(index.is_axis(axis) for axis in range(len(stage.axes))) for index in stage.accesses[store])


LESS_EQUAL = 3
"""The number of the signed predicate."""


def find_causal_bound(
    stages: Sequence[Stage], reductions: Mapping[Stage, Reduction], wide: frozenset[SSAValue], depth: int
) -> Index | None:
    """The last column that counts, by the axes of a stage; `None` if all may.

    Beyond it the chain stores 0 and reduces neutral elements; `wide` are the buffers with columns.
    """
    found: list[Index] = []
    zeros: set[SSAValue] = set()
    for stage in stages:
        if not any(op.buffer in wide for op in stage.accesses):
            continue
        reduction = reductions.get(stage)
        if reduction is not None and _adds_only(stage, reduction, wide, zeros):
            continue
        condition = _stored_condition(stage) if reduction is None else _reduced_condition(reduction)
        bounds = [] if condition is None else list(_bounds(stage, condition, depth))
        if len(bounds) != 1:
            return None
        found += bounds
        zeros |= {store.buffer for store in stage.stores} if reduction is None else set()
    return found[0] if found and all(each == found[0] for each in found) else None


def _adds_only(stage: Stage, reduction: Reduction, wide: frozenset[SSAValue], zeros: set[SSAValue]) -> bool:
    """Whether a stage sums a buffer that holds zeros beyond the causal bound."""
    read = {load.buffer for load in stage.loads} & wide
    added = len(reduction.combine) == 1 and isinstance(reduction.combine[0], arith.AddfOp)
    sources = {source.owner for source in reduction.sources}
    return added and read <= zeros and all(load in sources for load in stage.loads if load.buffer in wide)


def _stored_condition(stage: Stage) -> SSAValue | None:
    """The condition without which a stage stores 0."""
    op = stage.stores[0].value.owner if len(stage.stores) == 1 else None
    return op.cond if isinstance(op, arith.SelectOp) and _number(op.rhs) == 0 else None


def _reduced_condition(reduction: Reduction) -> SSAValue | None:
    """The condition without which a reduction takes its initial value."""
    op = reduction.sources[0].owner if len(reduction.sources) == 1 else None
    if not isinstance(op, IfOp):
        return None
    last = op.else_body.block.last_op
    other = _number(last.values[0]) if isinstance(last, YieldOp) and len(last.values) == 1 else None
    return op.condition if other is not None and other == _number(reduction.first[0]) else None


def _number(value: SSAValue) -> float | None:
    op = value.owner
    constant = op.value if isinstance(op, arith.ConstantOp) else None
    return constant.value.data if isinstance(constant, FloatAttr) else None


def _bounds(stage: Stage, condition: SSAValue, depth: int) -> Iterator[Index]:
    """The bounds of the column in a condition, or in one of its conjuncts."""
    op = condition.owner
    if isinstance(op, arith.AndIOp):
        yield from _bounds(stage, op.lhs, depth)
        yield from _bounds(stage, op.rhs, depth)
    elif isinstance(op, arith.CmpiOp) and op.predicate.value.data == LESS_EQUAL and _is_column(stage, op.lhs, depth):
        space = IndexSpace(stage.block)
        names = [space.variable(axis.value).dim.as_symbol or "" for axis in stage.axes]
        index = linear(space, names, op.rhs)
        if index.value is None and not any(stride.terms for stride in index.strides[depth:]):
            yield Index(index.base, index.strides[:depth])


def _is_column(stage: Stage, value: SSAValue, depth: int) -> bool:
    return len(stage.axes) > depth and stage.axes[depth].value is value


@dataclass(frozen=True)
class Attention:
    """Two GEMMs, the stages between them, and the epilogue."""

    scores: Contraction
    elementwise: tuple[Stage, ...]
    """Elementwise stages of a single score, in order; their axes are the dimensions of the scores."""
    row: Row
    """The chain along a row."""
    reductions: Mapping[Stage, Reduction]
    totals: Contraction
    weights: LoadOp
    """The load of the left operand of the second GEMM."""
    axes: Mapping[int, int]
    """The axis of the second GEMM for each batch and row axis of the first."""
    causal_bound: Index | None
    """The last column that counts, by the dimensions that choose a row; `None` if all may."""
    following: tuple[Step, ...]
    """The epilogue of the second GEMM, which may use row-invariant values of the chain."""
    unread: frozenset[SSAValue]
    """Buffers that need no memory of their own."""

    @property
    def buffer(self) -> SSAValue:
        """The scores after the elementwise stages."""
        return self.elementwise[-1].stores[0].buffer if self.elementwise else self.scores.store.buffer

    @property
    def count(self) -> int:
        """The number of stages."""
        chain = sum(map(len, self.row.passes))
        return 2 + len(self.elementwise) + chain + len(self.following)


def find_attention(
    kernel: Kernel,
    scores: Contraction,
    following: Sequence[Stage],
    contractions: Mapping[Stage, Contraction],
    own: frozenset[SSAValue],
) -> Attention | None:
    """The attention that begins with a contraction, or `None`; `own` are the buffers of the function."""
    if not _is_plain(scores, own):
        return None
    elementwise = _elementwise(scores, following, own)
    end = next((position for position, stage in enumerate(following) if stage in contractions), None)
    if end is None:
        return None
    totals, chain = contractions[following[end]], following[len(elementwise) : end]
    buffer = elementwise[-1].stores[0].buffer if elementwise else scores.store.buffer
    reductions = {stage: found for stage in chain if (found := reduction_of(stage)) is not None}
    # The load of the left operand, if it is a plain load along the last dimension.
    ops, accesses = totals.rows.ops, totals.stage.accesses
    load = ops[0] if len(ops) == 1 else None
    if not isinstance(load, LoadOp) or load.result is not totals.rows.value or len(totals.reduced) != 1:
        weights = None
    else:
        linear = all(index.value is None for index in (*accesses[load], *accesses[totals.store]))
        one = len(totals.column) == 1 and not totals.outer and totals.longest is None
        weights = load if linear and one and accesses[load] and accesses[load][-1].is_axis(totals.reduced[0]) else None
    row = None if weights is None else _row(kernel, chain, reductions, buffer, weights, own)
    axes = None if weights is None else _matched(scores, totals, weights)
    if row is None or weights is None or axes is None:
        return None
    after = {load.buffer for stage in following[end + 1 :] for load in stage.loads}
    row = replace(row, unread=row.unread - after)
    inverse = {mine: theirs for theirs, mine in axes.items()}
    narrow = frozenset(row.buffers) - {buffer, weights.buffer}
    steps = EpilogueFinder(scores, totals, inverse, narrow).steps(following[end + 1 :])
    hidden = {*_written([scores.stage, *elementwise]), *row.buffers}
    made = _written([totals.stage, *(step.stage for step in steps)])
    read = {load.buffer for stage in following[end + 1 + len(steps) :] for load in stage.loads}
    if hidden & read:
        return None
    unread = frozenset(hidden | (made & own) - read)
    bound = find_causal_bound(chain, reductions, frozenset((buffer, weights.buffer)), row.depth)
    return Attention(scores, tuple(elementwise), row, reductions, totals, weights, axes, bound, tuple(steps), unread)


def _written(stages: Sequence[Stage]) -> set[SSAValue]:
    return {store.buffer for stage in stages for store in stage.stores}


def _is_plain(scores: Contraction, own: frozenset[SSAValue]) -> bool:
    """Whether scores have a constant number of features, and are stored row by row in a buffer of the function."""
    indices = scores.stage.accesses[scores.store]
    features = [scores.stage.extents[axis].constant_value for axis in scores.reduced]
    known = bool(features) and all(features) and not scores.outer and scores.longest is None
    if not known or len(scores.column) != 1 or scores.store.buffer not in own or len(indices) < 2:
        return False
    size = 1
    for length in features:
        size *= length or 0
    linear = all(index.value is None for index in indices)
    return linear and size <= ATTENTION_MAX_FEATURES and indices[-1].is_axis(scores.column[0])


def _elementwise(scores: Contraction, following: Sequence[Stage], own: frozenset[SSAValue]) -> list[Stage]:
    """The elementwise stages of a single score that are the only readers of their input."""
    found: list[Stage] = []
    buffer, rank = scores.store.buffer, len(scores.stage.accesses[scores.store])
    for index, stage in enumerate(following):
        last = rank - 1
        plain = len(stage.axes) == rank and is_vector_elementwise(stage, last) and len(stage.stores) == 1
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


def _row(
    kernel: Kernel,
    chain: Sequence[Stage],
    reductions: Mapping[Stage, Reduction],
    buffer: SSAValue,
    weights: LoadOp,
    own: frozenset[SSAValue],
) -> Row | None:
    """How the chain goes along a row of the scores, if it needs only scalars and one vector per row."""
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
    return Row(row.depth, row.buffers, row.unread - {buffer, weights.buffer}, row.passes)


def _is_by_rows(stage: Stage, op: LoadOp | StoreOp, depth: int) -> bool:
    indices = stage.accesses[op]
    leading = len(indices) in (depth, depth + 1) and all(indices[axis].is_axis(axis) for axis in range(depth))
    return leading and (len(indices) == depth or any(indices[depth].is_axis(axis) for axis in range(len(stage.axes))))


def _may_replace(row: Row, old: SSAValue, new: SSAValue) -> bool:
    """Whether one buffer may overwrite the other: each element is read before it is overwritten."""
    written = False
    for fused in row.passes:
        if written and any(load.buffer is old for stage in fused for load in stage.loads):
            return False
        written = written or any(store.buffer is new for stage in fused for store in stage.stores)
        if any(store.buffer is old for stage in fused for store in stage.stores) and old is not new:
            return False
    return written


def _matched(scores: Contraction, totals: Contraction, weights: LoadOp) -> dict[int, int] | None:
    """The axis of the second GEMM for each axis of the first that chooses a row."""
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

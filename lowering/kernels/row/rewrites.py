"""Softmax and variance rewritten before loops over rows are generated.

**Softmax.** Exponentials of a row minus its maximum, and their sum, in fewer instructions. The maximum need not
propagate NaN: if an element is NaN, so is the sum of the exponentials, and every result. No exponential exceeds 1.
Scaled by one large factor, none is subnormal, and the code for subnormal results is not needed. Quotients by the sum do
not change.

**Variance.** Mean and variance of a row in one pass instead of two, by shifted data.

```
s = sum(x);  mean = s / n;  v = sum((x - mean)**2)
->
k = mean of the first c elements;  s = sum(x - k);  q = sum((x - k)**2)
mean = k + s / n;  v = max(q - s * s / n, 0)
```

Rounding errors are proportional to q, which is v + n * (mean - k)**2. The c elements whose mean is k belong to the row,
so the second term is at most (n - c) / c * v: with a thirty-second of the row q is at most 32 times v, whatever the
elements are, and hardly more than v if the first ones are typical.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr, f32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.kernels.cost_model import ONE_PASS_MIN_ELEMENTS
from lowering.kernels.structure.reduction import Reduction, reduction_of
from lowering.kernels.structure.stages import Access, Stage, are_equivalent, shared_depth
from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.structure import loop_of
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum, product
from tir_dialect.ops.arithmetic import SCALE, DimOp, GreaterOp, ScaledExpOp
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.target import Target
from tir_dialect.types import BufferType, IteratorKind

_KEEP_NAN = (
    *(arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp, arith.ExtFOp, arith.TruncFOp),
    math.LogOp,
)


def simplify_exponentials(stages: Sequence[Stage], target: Target) -> bool:
    """Rewrites the stages; returns whether anything changed."""
    pairs = itertools.product(_reductions(stages, arith.MaximumfOp), _reductions(stages, arith.AddfOp))
    found = [chain for top, sums in pairs if (chain := _Exponentials(stages, *top, *sums)).are_found()]
    for chain in found:
        chain.rewrite(target)
    return bool(found)


_Sum: TypeAlias = Float32Type | Float64Type


def _reductions(
    stages: Sequence[Stage], kind: type[Operation], dtypes: type[_Sum] | UnionType = Float32Type
) -> list[tuple[Stage, Reduction]]:
    """The stages that reduce numbers of some dtypes by one op, into buffers of the function."""
    return [
        (stage, reduction)
        for stage in stages
        if (reduction := reduction_of(stage)) is not None
        and [type(op) for op in reduction.combine] == [kind]
        and _is_own(reduction.stores[0], dtypes)
    ]


def _is_own(store: StoreOp, dtypes: type[_Sum] | UnionType = Float32Type) -> bool:
    return isinstance(store.buffer.owner, AllocBufferOp) and isinstance(store.value.type, dtypes)


@dataclass
class _Exponentials:
    """The maximum of a row, the differences to it, the exponentials, and their sum."""

    stages: Sequence[Stage]
    top: Stage
    greatest: Reduction
    sums: Stage
    total: Reduction
    powers: list[Operation] = field(default_factory=list[Operation], init=False)
    values: set[SSAValue] = field(default_factory=set[SSAValue], init=False)
    """The exponentials, and loads of them."""
    buffers: set[SSAValue] = field(default_factory=set[SSAValue], init=False)
    """The buffers of the maxima, the exponentials and the sums."""

    def __post_init__(self) -> None:
        self.buffers |= {self.greatest.stores[0].buffer, self.total.stores[0].buffer}

    def are_found(self) -> bool:
        """Whether the two reductions belong together, and their results and the exponentials are used for
        nothing else.
        """
        kinds = [[axis.kind for axis in stage.axes] for stage in (self.top, self.sums)]
        if self.top.extents != self.sums.extents or kinds[0] != kinds[1]:
            return False
        if not (self._are_only_subtracted() and self._are_only_summed() and self.total.sources[0] in self.values):
            return False
        accesses = ((stage, op) for stage in self.stages for op in stage.accesses if op.buffer in self.buffers)
        return all(self._is_by_axes(stage, op) for stage, op in accesses) and all(map(self._is_nan, self.stages))

    def rewrite(self, target: Target) -> None:
        """Simplifies what is slow on the target: maxima, and exponentials."""
        (combine,), (source,), (old,) = self.greatest.combine, self.greatest.sources, self.greatest.accumulators
        if target.arch.startswith("x86"):
            Rewriter.replace_op(combine, GreaterOp(source, old))
        for _, load in list(self._loads(self.total.stores[0].buffer)):
            # The sum without the scale, except in quotients of exponentials.
            quotients = [use for use in load.result.uses if isinstance(use.operation, arith.DivfOp)]
            scaled = [use for use in quotients if use.operation.operands[0] in self.values]
            if uses := [use for use in load.result.uses if use not in scaled]:
                factor = arith.ConstantOp(FloatAttr(1 / SCALE, f32))
                product = arith.MulfOp(load.result, factor)
                Rewriter.insert_op([factor, product], InsertPoint.after(load))
                for use in uses:
                    use.operation.operands[use.index] = product.result
        for power in self.powers:
            Rewriter.replace_op(power, ScaledExpOp(power.operands[0]))

    # Matching

    def _loads(self, buffer: SSAValue) -> Iterator[tuple[Stage, LoadOp]]:
        """The loads of a buffer, except those of the reduction that writes it."""
        own = (*self.greatest.accumulators, *self.total.accumulators)
        for stage in self.stages:
            yield from ((stage, load) for load in stage.loads if load.buffer is buffer and load not in own)

    def _is_by_axes(self, stage: Stage, op: Access) -> bool:
        """Whether an access is at the element, or the row, of a stage's own axes."""
        indices, rows = stage.accesses[op], len(self.greatest.stores[0].indices)
        whole = all(index.is_axis(number) for number, index in enumerate(indices))
        same = stage.extents[:rows] == self.top.extents[:rows]
        return whole and same and len(indices) >= rows and isinstance(op.parent_op(), BlockOp | InitOp)

    def _are_only_subtracted(self) -> bool:
        """Whether the maximum is only subtracted from the elements of its row; collects the exponentials."""
        # What is written from the reduction to the maximum on is not the same any more.
        later = self.stages[self.stages.index(self.top) :]
        changed = frozenset(store.buffer for stage in later for store in stage.stores)
        for stage, load in self._loads(self.greatest.stores[0].buffer):
            for use in load.result.uses:
                op = use.operation
                if not isinstance(op, arith.SubfOp) or use.index != 1:
                    return False
                if not are_equivalent(self.top, self.greatest.sources[0], stage, op.lhs, changed):
                    return False
                self.powers += [each.operation for each in op.result.uses if isinstance(each.operation, math.ExpOp)]
        return True

    def _are_only_summed(self) -> bool:
        """Whether exponentials are only summed and divided by the sum, at once or from memory; collects all of them."""
        pending = [power.results[0] for power in self.powers]
        while pending:
            value = pending.pop()
            self.values.add(value)
            for use in value.uses:
                op = use.operation
                if isinstance(op, StoreOp) and _is_own(op) and op.buffer not in self.buffers:
                    self.buffers.add(op.buffer)
                    pending += [load.result for _, load in self._loads(op.buffer)]
                elif op not in self.total.combine and not self._is_quotient(op, use.index):
                    return False
        return True

    def _is_quotient(self, op: Operation, index: int) -> bool:
        """Whether an op divides a value by the sum."""
        divisor = op.rhs.owner if isinstance(op, arith.DivfOp) and index == 0 else None
        return isinstance(divisor, LoadOp) and divisor.buffer is self.total.stores[0].buffer

    def _is_nan(self, stage: Stage) -> bool:
        """Whether a stage stores only values of this pattern, or values that are NaN if the sum of the row is."""
        if stage in (self.top, self.sums):
            return True
        nan: set[SSAValue] = {load.result for _, load in self._loads(self.total.stores[0].buffer)}
        for op in stage.body:
            if isinstance(op, _KEEP_NAN) and any(value in nan for value in op.operands):
                nan.update(op.results)
        wanted = any(op.buffer in self.buffers for op in stage.accesses)
        kept = (self.values if store.buffer in self.buffers else nan for store in stage.stores)
        return not wanted or all(store.value in known for store, known in zip(stage.stores, kept, strict=True))


def find_moments(stages: Sequence[Stage]) -> Iterator[Moments]:
    """The moments among some stages."""
    sums = {sum_.stores[0].buffer: (stage, sum_) for stage, sum_ in _reductions(stages, arith.AddfOp, _Sum)}
    for squares in sums.values():
        for load in squares[0].loads:
            means = next((stage for stage in stages if _is_elementwise_to(stage, load.buffer)), None)
            quotient = None if means is None else means.stores[0].value.owner
            total = quotient.lhs.owner if isinstance(quotient, arith.DivfOp) else None
            if means is not None and isinstance(total, LoadOp) and total.buffer in sums:
                assert isinstance(quotient, arith.DivfOp)
                found = Moments(stages, *sums[total.buffer], means, *squares, load, quotient, total)
                if found.belong_together():
                    yield found


def _is_elementwise_to(stage: Stage, buffer: SSAValue) -> bool:
    own = isinstance(buffer.owner, AllocBufferOp) and not stage.of_kind(IteratorKind.REDUCE, IteratorKind.SCAN)
    return own and len(stage.stores) == 1 and stage.stores[0].buffer is buffer


@dataclass(frozen=True)
class Moments:
    """A sum, the mean computed from it, and the sum of the squared differences to the mean."""

    stages: Sequence[Stage]
    first: Stage
    total: Reduction
    """The sums, by the first stage."""
    means: Stage
    second: Stage
    squares: Reduction
    """The sums of squares, by the second stage."""
    mean: LoadOp
    """The load of the mean for a square."""
    quotient: arith.DivfOp
    """The division that computes the mean."""
    dividend: LoadOp
    """The load of the sum for the mean."""

    @property
    def dtype(self) -> _Sum:
        """The type of the sums."""
        found = self.dividend.buffer_type.dtype
        assert isinstance(found, _Sum)  # `_reductions` accepts only these
        return found

    @property
    def rows(self) -> int:
        """How many axes choose the row."""
        return len(self.first.of_kind(IteratorKind.SPATIAL))

    @property
    def count(self) -> Dim:
        """Elements of a row."""
        return product(self.first.extents[self.rows :])

    def belong_together(self) -> bool:
        """Whether these are the moments of rows that all stages have in common, and the sums are used for
        nothing else.
        """
        kinds = [[axis.kind for axis in stage.axes] for stage in (self.first, self.second)]
        if self.first.extents != self.second.extents or kinds[0] != kinds[1] or self.rows == 0:
            return False
        known = self.count.constant_value
        if shared_depth(self.stages) != self.rows or self._divisor() is not self.count:
            return False
        if known is not None and known < ONE_PASS_MIN_ELEMENTS:
            return False
        return self._are_by_rows() and self._are_squares() and self._are_along_rows() and self._are_in_order()

    def _divisor(self) -> Dim | None:
        """The divisor of a sum; `None` if it is not the number of elements."""
        op = self.quotient.rhs.owner
        if isinstance(op, arith.SIToFPOp):
            return dim_of(op.input)
        number = op.value if isinstance(op, arith.ConstantOp) else None
        known = number.value.data if isinstance(number, FloatAttr) else 0.5
        return constant(int(known)) if known == int(known) else None

    def _are_by_rows(self) -> bool:
        """Whether sums, means and squares have an element for each row, and sums are used only for means."""
        accesses = (
            (self.first, self.total.stores[0]),
            (self.second, self.squares.stores[0]),
            (self.second, self.mean),
            (self.means, self.dividend),
            (self.means, self.means.stores[0]),
        )
        for stage, op in accesses:
            indices = stage.accesses[op]
            if len(indices) != self.rows or not all(index.is_axis(number) for number, index in enumerate(indices)):
                return False
        readers = {op for stage in self.stages for op in stage.loads if op.buffer is self.dividend.buffer}
        alone = readers == {self.dividend, *self.total.accumulators} and self.quotient.result.has_one_use()
        return alone and self.means.extents == self.first.extents[: self.rows]

    def _are_squares(self) -> bool:
        """Whether the second stage sums the squared differences of the first stage's elements to the mean."""
        op = self.squares.sources[0].owner
        changed = {store.buffer for stage in self.stages[self.stages.index(self.first) :] for store in stage.stores}
        if not isinstance(op, arith.MulfOp) or not are_equivalent(self.second, op.lhs, self.second, op.rhs):
            return False
        for apart in (op.lhs.owner, op.rhs.owner):
            if not isinstance(apart, arith.SubfOp) or self.mean.result not in apart.operands:
                return False
            number = apart.lhs if apart.rhs is self.mean.result else apart.rhs
            if not are_equivalent(self.first, self.total.sources[0], self.second, number, changed):
                return False
        return True

    def _are_along_rows(self) -> bool:
        """Whether reduced elements are contiguous, and so are lanes of one vector."""
        last = self.first.of_kind(IteratorKind.REDUCE)[-1]
        numbers = [load for load in self.first.loads if load not in self.total.accumulators and load.indices]
        steps = [self.first.accesses[load][-1].strides[last].constant_value for load in numbers]
        return bool(steps) and all(step in (0, 1) for step in steps)

    def _are_in_order(self) -> bool:
        """Whether nothing accesses the squares before the second stage."""
        order = [self.stages.index(stage) for stage in (self.first, self.means, self.second)]
        buffer = self.squares.stores[0].buffer
        before = self.stages[: order[-1]]
        return order == sorted(order) and not any(op.buffer is buffer for stage in before for op in stage.accesses)


PART, LANES = 32, 32
"""A thirty-second of a row is the head; for a single axis it is a multiple of 32."""


def rewrite_to_one_pass(stages: Sequence[Stage]) -> bool:
    """Rewrites the stages; returns whether anything changed."""
    found = next(find_moments(stages), None)
    if found is not None:
        _Rewriting(found).rewrite()
    return found is not None


class _Rewriting:
    """Rewrites two passes into one."""

    def __init__(self, found: Moments):
        self.found = found
        self.sums, self.means = found.total.stores[0].buffer, found.means.stores[0].buffer
        self.heads, self.shifts = self._memory(self.sums, "heads"), self._memory(self.means, "shifts")
        self.squares = found.squares.stores[0].buffer
        self.parts = self._memory(self.squares, "parts")

    def rewrite(self) -> None:
        """All steps."""
        found = self.found
        first, second = found.first.nest, found.second.nest
        numbers = self._head * product(found.first.extents[self._head_axis + 1 :])
        shifts, shift = self._quotients(self.heads, self.shifts, numbers)
        # Replaces an infinite or NaN shift by 0: otherwise infinity minus infinity would be computed.
        zero = arith.ConstantOp(FloatAttr(0.0, self.found.dtype))
        nothing = arith.SubfOp(shift.result, shift.result)
        is_finite = arith.CmpfOp(nothing.result, zero.result, "oeq")
        kept = arith.SelectOp(is_finite.result, shift.result, zero.result)
        store = next(use.operation for use in shift.result.uses if isinstance(use.operation, StoreOp))
        Rewriter.insert_op([zero, nothing, is_finite, kept], InsertPoint.before(store))
        store.operands[0] = kept.result
        Rewriter.insert_op([self._sums_of_heads(), shifts], InsertPoint.before(first))
        second.detach()
        Rewriter.insert_op([second, self._without_mean()], InsertPoint.after(first))
        _redirect(second, self.squares, self.parts)
        _redirect(second, self.means, self.shifts)
        # Subtracts the shift from each element of the first sums.
        (combine,), (number,) = self.found.total.combine, self.found.total.sources
        load = LoadOp(self.shifts, self.found.total.accumulators[0].indices)
        apart = arith.SubfOp(number, load.result)
        Rewriter.insert_op([load, apart], InsertPoint.before(combine))
        combine.operands[next(n for n, operand in enumerate(combine.operands) if operand is number)] = apart.result
        # Adds the shift to the means.
        quotient, store = self.found.quotient, self.found.means.stores[0]
        load = LoadOp(self.shifts, store.indices)
        mean = arith.AddfOp(quotient.result, load.result)
        Rewriter.insert_op([load, mean], InsertPoint.before(store))
        store.operands[0] = mean.result

    def _memory(self, like: SSAValue, name: str) -> SSAValue:
        """Another buffer of the same type."""
        alloc = AllocBufferOp(SSAValue.get(like, type=BufferType).type)
        alloc.buffer.name_hint = name
        Rewriter.insert_op(alloc, InsertPoint.before(self.found.first.nest))
        return alloc.buffer

    @property
    def _head_axis(self) -> int:
        """The outermost axis of a row with more than one value."""
        extents, rows = self.found.first.extents, self.found.rows
        return next((n for n in range(rows, len(extents)) if extents[n].constant_value != 1), rows)

    @property
    def _head(self) -> Dim:
        """The extent of that axis in the head."""
        axis, extents = self._head_axis, self.found.first.extents
        length = extents[axis]
        if axis + 1 < len(extents):
            return ceildiv(length, PART)
        return minimum(length, LANES * ceildiv(length, LANES * PART))

    def _sums_of_heads(self) -> Operation:
        """The sum of the head of each row."""
        first, axis = self.found.first.nest, self._head_axis
        nest = first.clone()
        block = next(op for op in nest.walk() if isinstance(op, BlockOp))
        extent, loop = DimOp(self._head), loop_of(block.bindings[axis])
        assert loop is not None  # each axis of a stage has a loop
        Rewriter.insert_op(extent, InsertPoint.before(first))
        loop.operands[len(loop.operands) - 1] = extent.result
        block.operands[len(block.bindings) + axis] = extent.result
        _redirect(nest, self.sums, self.heads)
        return nest

    def _quotients(self, sums: SSAValue, target: SSAValue, numbers: Dim) -> tuple[Operation, arith.DivfOp]:
        """The nest of the means for other sums and another number of elements; 0 elements count as 1, since
        their sum is 0.
        """
        values: dict[SSAValue, SSAValue] = {}
        nest = self.found.means.nest.clone(value_mapper=values)
        quotient = values[self.found.quotient.result].owner
        assert isinstance(quotient, arith.DivfOp)  # a copy of the division
        count = DimOp(maximum(numbers, 1))
        wide = arith.IndexCastOp(count.result, i64)
        divisor = arith.SIToFPOp(wide.result, self.found.dtype)
        Rewriter.insert_op([count, wide, divisor], InsertPoint.before(quotient))
        quotient.operands[1] = divisor.result
        _redirect(nest, self.sums, sums)
        _redirect(nest, self.means, target)
        return nest, quotient

    def _without_mean(self) -> Operation:
        """The squared differences to the mean, from those to the shift."""
        nest, quotient = self._quotients(self.sums, self.squares, self.found.count)
        total = quotient.lhs.owner
        assert isinstance(total, LoadOp)  # a copy of the load
        product = arith.MulfOp(quotient.result, total.result)
        chunks = LoadOp(self.parts, total.indices)
        rest = arith.SubfOp(chunks.result, product.result)
        zero = arith.ConstantOp(FloatAttr(0.0, self.found.dtype))
        result = arith.MaximumfOp(rest.result, zero.result)
        store = next(use.operation for use in quotient.result.uses if isinstance(use.operation, StoreOp))
        Rewriter.insert_op([product, chunks, rest, zero, result], InsertPoint.before(store))
        store.operands[0] = result.result
        return nest


def _redirect(nest: Operation, old: SSAValue, new: SSAValue) -> None:
    """Accesses to one buffer become accesses to another."""
    for op in nest.walk():
        for number, operand in enumerate(op.operands):
            if operand is old:
                op.operands[number] = new

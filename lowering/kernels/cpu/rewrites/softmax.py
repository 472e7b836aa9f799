"""Softmax in fewer instructions: exponentials of a row minus its maximum, and their sum.

The maximum need not propagate NaN: if an element is NaN, so is the sum of the exponentials, and every result. No
exponential exceeds 1. Scaled by one large factor, none is subnormal, and the code for subnormal results is not needed.
Quotients by the sum do not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, FloatAttr, f32
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.kernels.cpu.structure.reduction import Reduction, reduction_of
from lowering.kernels.cpu.structure.stages import Access, Stage, are_equivalent
from tir_dialect.ops.arithmetic import SCALE, GreaterOp, ScaledExpOp
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.target import Target

_KEEP_NAN = (
    *(arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp, arith.ExtFOp, arith.TruncFOp),
    math.LogOp,
)


def simplify_exponentials(stages: Sequence[Stage], target: Target) -> bool:
    """Rewrites the stages; returns whether anything changed."""
    pairs = product(_reductions(stages, arith.MaximumfOp), _reductions(stages, arith.AddfOp))
    found = [chain for top, sums in pairs if (chain := _Exponentials(stages, *top, *sums)).are_found()]
    for chain in found:
        chain.rewrite(target)
    return bool(found)


def _reductions(stages: Sequence[Stage], kind: type[Operation]) -> list[tuple[Stage, Reduction]]:
    """The stages that reduce f32 by one op, into buffers of the function."""
    found = [(stage, reduction) for stage in stages if (reduction := reduction_of(stage)) is not None]
    return [each for each in found if [type(op) for op in each[1].combine] == [kind] and _is_own(each[1].stores[0])]


def _is_own(store: StoreOp) -> bool:
    return isinstance(store.buffer.owner, AllocBufferOp) and isinstance(store.value.type, Float32Type)


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
        return all(self._is_by_axes(stage, op) for stage, op in self._accesses()) and all(
            map(self._is_nan, self.stages)
        )

    def rewrite(self, target: Target) -> None:
        """Simplifies what is slow on the target: maxima, and exponentials."""
        (combine,), (source,), (old,) = self.greatest.combine, self.greatest.sources, self.greatest.accumulators
        if target.arch.startswith("x86"):
            Rewriter.replace_op(combine, GreaterOp(source, old))
        self._scale()

    # Matching

    def _loads(self, buffer: SSAValue) -> Iterator[tuple[Stage, LoadOp]]:
        """The loads of a buffer, except those of the reduction that writes it."""
        own = (*self.greatest.accumulators, *self.total.accumulators)
        for stage in self.stages:
            yield from ((stage, load) for load in stage.loads if load.buffer is buffer and load not in own)

    def _accesses(self) -> Iterator[tuple[Stage, Access]]:
        for stage in self.stages:
            yield from ((stage, op) for op in stage.accesses if op.buffer in self.buffers)

    def _is_by_axes(self, stage: Stage, op: Access) -> bool:
        """Whether an access is at the element, or the row, of a stage's own axes."""
        indices, rows = stage.accesses[op], len(self.greatest.stores[0].indices)
        whole = all(index.is_axis(number) for number, index in enumerate(indices))
        same = stage.extents[:rows] == self.top.extents[:rows]
        return whole and same and len(indices) >= rows and isinstance(op.parent_op(), BlockOp | InitOp)

    def _are_only_subtracted(self) -> bool:
        """Whether the maximum is only subtracted from the elements of its row; collects the exponentials."""
        for stage, load in self._loads(self.greatest.stores[0].buffer):
            for use in load.result.uses:
                op = use.operation
                if not isinstance(op, arith.SubfOp) or use.index != 1:
                    return False
                if not are_equivalent(self.top, self.greatest.sources[0], stage, op.lhs, self._changed):
                    return False
                self.powers += [each.operation for each in op.result.uses if isinstance(each.operation, math.ExpOp)]
        return True

    @property
    def _changed(self) -> frozenset[SSAValue]:
        """The buffers that are written from the reduction to the maximum on."""
        later = self.stages[self.stages.index(self.top) :]
        return frozenset(store.buffer for stage in later for store in stage.stores)

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

    # Rewriting

    def _scale(self) -> None:
        for _, load in list(self._loads(self.total.stores[0].buffer)):
            # The sum without the scale, except in quotients of exponentials.
            uses = [use for use in load.result.uses if not self._is_scaled_quotient(use.operation)]
            if uses:
                factor = arith.ConstantOp(FloatAttr(1 / SCALE, f32))
                product = arith.MulfOp(load.result, factor)
                Rewriter.insert_op([factor, product], InsertPoint.after(load))
                for use in uses:
                    use.operation.operands[use.index] = product.result
        for power in self.powers:
            Rewriter.replace_op(power, ScaledExpOp(power.operands[0]))

    def _is_scaled_quotient(self, op: Operation) -> bool:
        return isinstance(op, arith.DivfOp) and op.lhs in self.values

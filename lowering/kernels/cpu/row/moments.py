"""Stages that sum rows, and then the squared differences of their elements to the mean of the row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr
from xdsl.ir import SSAValue

from lowering.kernels.cpu.structure.alone import reduction_of
from lowering.kernels.cpu.structure.chains import shared_depth
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from lowering.kernels.cpu.structure.twins import are_twins
from tir_dialect.analysis.dims import dim_of
from tir_dialect.dims import Dim, constant, product
from tir_dialect.ops.memory import AllocBufferOp, LoadOp
from tir_dialect.types import IteratorKind

LEAST = 64
"""Fewer numbers, if that is known, are not worth a shift of their own."""

_Sum: TypeAlias = Float32Type | Float64Type


def find_moments(stages: Sequence[Stage]) -> Iterator[Moments]:
    """Those of some stages."""
    sums = {r.stores[0].buffer: (s, r) for s in stages if (r := reduction_of(s)) is not None and _is_own_sum(r)}
    for squares in sums.values():
        for load in squares[0].loads:
            means = next((stage for stage in stages if _is_map_to(stage, load.buffer)), None)
            quotient = None if means is None else means.stores[0].value.owner
            total = quotient.lhs.owner if isinstance(quotient, arith.DivfOp) else None
            if means is not None and isinstance(total, LoadOp) and total.buffer in sums:
                assert isinstance(quotient, arith.DivfOp)
                found = Moments(stages, *sums[total.buffer], means, *squares, load, quotient, total)
                if found.belong_together():
                    yield found


def _is_own_sum(reduction: Reduction) -> bool:
    is_sum = len(reduction.combine) == 1 and isinstance(reduction.combine[0], arith.AddfOp)
    store = reduction.stores[0]
    return is_sum and isinstance(store.buffer.owner, AllocBufferOp) and isinstance(store.buffer_type.dtype, _Sum)


def _is_map_to(stage: Stage, buffer: SSAValue) -> bool:
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
    """The mean, where it is made."""
    dividend: LoadOp
    """The load of a sum for it."""

    @property
    def dtype(self) -> _Sum:
        """The type of the sums."""
        found = self.dividend.buffer_type.dtype
        assert isinstance(found, _Sum)  # others are not found
        return found

    @property
    def rows(self) -> int:
        """How many axes choose the row."""
        return len(self.first.of_kind(IteratorKind.SPATIAL))

    @property
    def count(self) -> Dim:
        """How many numbers a row has."""
        return product(self.first.extents[self.rows :])

    def belong_together(self) -> bool:
        """Whether these are the moments of rows that all stages have in common, and nobody needs a sum itself."""
        kinds = [[axis.kind for axis in stage.axes] for stage in (self.first, self.second)]
        if self.first.extents != self.second.extents or kinds[0] != kinds[1] or self.rows == 0:
            return False
        known = self.count.constant_value
        if shared_depth(self.stages) != self.rows or self._divisor() is not self.count:
            return False
        if known is not None and known < LEAST:
            return False
        return self._are_by_rows() and self._are_squares() and self._are_along_rows() and self._are_in_order()

    def _divisor(self) -> Dim | None:
        """The number of elements that a sum is divided by; `None` if it is anything else."""
        op = self.quotient.rhs.owner
        if isinstance(op, arith.SIToFPOp):
            return dim_of(op.input)
        number = op.value if isinstance(op, arith.ConstantOp) else None
        known = number.value.data if isinstance(number, FloatAttr) else 0.5
        return constant(int(known)) if known == int(known) else None

    def _are_by_rows(self) -> bool:
        """Whether sums, means and squares have an element for each row, and only means are made of the sums."""
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
        """Whether what the second stage adds up is the square of how far the first stage's number is from the mean."""
        op = self.squares.sources[0].owner
        changed = {store.buffer for stage in self.stages[self.stages.index(self.first) :] for store in stage.stores}
        if not isinstance(op, arith.MulfOp) or not are_twins(self.second, op.lhs, self.second, op.rhs):
            return False
        for apart in (op.lhs.owner, op.rhs.owner):
            if not isinstance(apart, arith.SubfOp) or self.mean.result not in apart.operands:
                return False
            number = apart.lhs if apart.rhs is self.mean.result else apart.rhs
            if not are_twins(self.first, self.total.sources[0], self.second, number, changed):
                return False
        return True

    def _are_along_rows(self) -> bool:
        """Whether neighbours that are added up lie side by side in memory, and so are lanes of one vector."""
        last = self.first.of_kind(IteratorKind.REDUCE)[-1]
        numbers = [load for load in self.first.loads if load not in self.total.accumulators and load.indices]
        steps = [self.first.accesses[load][-1].strides[last].constant_value for load in numbers]
        return bool(steps) and all(step in (0, 1) for step in steps)

    def _are_in_order(self) -> bool:
        """Whether nobody touches the squares before they are all there."""
        order = [self.stages.index(stage) for stage in (self.first, self.means, self.second)]
        buffer = self.squares.stores[0].buffer
        before = self.stages[: order[-1]]
        return order == sorted(order) and not any(op.buffer is buffer for stage in before for op in stage.accesses)

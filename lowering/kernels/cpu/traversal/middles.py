"""The middle of a row, where all lanes take the same branch, such as the data between mirrored ends.

Elsewhere elements come from computed addresses, or depend on computed numbers, such as how many elements of a clipped
window count: these are few, and are computed one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cpu.emit.guards import Bound, Guard, find_guards, range_of
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.ops.scalars import DimOp


@dataclass(frozen=True)
class Middle:
    """A part of an axis on which branches are taken."""

    stage: Stage
    axis: int
    branches: frozenset[IfOp]
    bounds: tuple[Bound, ...]

    @property
    def is_the_same(self) -> bool:
        """Whether the part is the same in all rows."""
        return not any(bound.moves_with(other) for bound in self.bounds for other in self._others)

    @property
    def _others(self) -> Sequence[int]:
        return [axis for axis in range(len(self.stage.axes)) if axis != self.axis]

    def left_out(self, kernel: Kernel) -> frozenset[Operation]:
        """The ops that no vector of the middle is made by: those of other branches, and loads that all lanes share."""
        elsewhere = {op for branch in self.branches for op in branch.else_body.walk()}
        accesses = {op: kernel.access(self.stage, op) for op in self.stage.loads if op not in elsewhere}
        return frozenset(elsewhere.union(op for op, access in accesses.items() if not access.strides[self.axis].terms))

    def range(
        self, kernel: Kernel, at: Mapping[int, SSAValue], part: tuple[SSAValue, SSAValue] | None
    ) -> tuple[SSAValue, SSAValue]:
        """Where the part begins and ends, within a part of the axis."""
        code = kernel.code
        first, end = range_of(code, self.bounds, self.axis, self.stage.axes[self.axis].extent, at)
        if part is None:
            return first, end
        low, high = part
        first = code.minimum(code.maximum(first, low), high)
        return first, code.maximum(code.minimum(end, high), first)


def find_middle(kernel: Kernel, stages: Sequence[Stage], axis: int) -> Middle | None:
    """The middle of an axis of one map; `None` if its branches are chosen otherwise, or both go along the axis."""
    if len(stages) != 1:
        return None
    (stage,) = stages
    guards = [
        guard
        for guard in find_guards(stage)
        if _is_scattered(kernel, stage, guard.op) or (_is_counted(guard.op) and _moves(guard, axis))
    ]
    bounds = tuple(bound for guard in guards for bound in guard.bounds)
    if not guards or not all(bound.step(axis) for bound in bounds):
        return None
    return Middle(stage, axis, frozenset(guard.op for guard in guards), bounds)


def _moves(guard: Guard, axis: int) -> bool:
    """Whether an axis decides about a branch."""
    return all(bound.moves_with(axis) for bound in guard.bounds)


def _is_counted(branch: IfOp) -> bool:
    """Whether a known number stands for one that is computed elsewhere."""
    known, computed = branch.then_body.block.last_op, branch.else_body.block.last_op
    if not isinstance(known, YieldOp) or not isinstance(computed, YieldOp):
        return False
    is_known = all(isinstance(value.owner, arith.ConstantOp | DimOp) for value in known.values)
    return is_known and any(isinstance(value.type, IndexType) for value in computed.values)


def _is_scattered(kernel: Kernel, stage: Stage, branch: IfOp) -> bool:
    """Whether only what is taken elsewhere comes from computed indices along the axes."""
    inside, outside = (
        [kernel.access(stage, op) for op in block.walk() if isinstance(op, LoadOp) and op in stage.accesses]
        for block in (branch.then_body.block, branch.else_body.block)
    )
    return sum(len(access.computed) for access in outside) > sum(len(access.computed) for access in inside)

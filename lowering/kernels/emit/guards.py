"""Branches whose conditions are linear in the axes, and the iterations of a loop for which the conditions hold.

The interior of a padded image runs without conditions, and windows at the edges are clipped.

The interior of a row is where all lanes take the same branch, such as the data between mirrored ends. At the edges
elements come from computed addresses, or depend on computed values such as the size of a clipped window. These elements
are few, and are computed one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.structure.reduction import Reduction
from lowering.kernels.structure.stages import Stage, linear
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class Bound:
    """`base + sum(strides[a] * axis a) >= 0`."""

    base: Dim
    strides: tuple[Dim, ...]

    def moves_with(self, axis: int) -> bool:
        """Whether the bound depends on an axis."""
        return bool(self.strides[axis].terms)

    def step(self, axis: int) -> int | None:
        """The stride of an axis, if it is a number."""
        return self.strides[axis].constant_value

    def with_step(self, axis: int, step: int) -> Bound:
        """The bound with another stride for an axis."""
        return Bound(self.base, tuple(constant(step) if i == axis else old for i, old in enumerate(self.strides)))


@dataclass(frozen=True)
class Guard:
    """A branch that is taken if all bounds hold."""

    op: IfOp
    bounds: tuple[Bound, ...]


def find_guards(stage: Stage) -> tuple[Guard, ...]:
    """The branches of a stage, outside of others, whose conditions are linear bounds."""
    branches = [op for op in stage.body if isinstance(op, IfOp)]
    if not branches:
        return ()
    space = IndexSpace(stage.block)
    names = [space.variable(axis.value).dim.as_symbol or "" for axis in stage.axes]
    found = [(op, _bounds(space, names, op.condition)) for op in branches]
    return tuple(Guard(op, bounds) for op, bounds in found if bounds is not None)


def _bounds(space: IndexSpace, names: Sequence[str], condition: SSAValue) -> tuple[Bound, ...] | None:
    op = condition.owner
    if isinstance(op, arith.AndIOp):
        left, right = (_bounds(space, names, operand) for operand in op.operands)
        return None if left is None or right is None else (*left, *right)
    if not isinstance(op, arith.CmpiOp):
        return None
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    left, right = linear(space, names, op.lhs), linear(space, names, op.rhs)
    if predicate not in ("slt", "sle", "sgt", "sge") or left.value is not None or right.value is not None:
        return None
    low, high = (left, right) if predicate.startswith("sl") else (right, left)
    base = high.base - low.base - (1 if predicate.endswith("t") else 0)
    return (Bound(base, tuple(a - b for a, b in zip(high.strides, low.strides, strict=True))),)


def unneeded(stage: Stage, taken: AbstractSet[Operation]) -> frozenset[Operation]:
    """The ops that only compute conditions of branches that are `taken`, or indices of loads among these."""
    found: set[Operation] = set()
    for op in reversed(stage.body):
        uses = [use for result in op.results for use in result.uses]
        if uses and all(use.operation in found or use.operation in taken or _is_index(stage, use) for use in uses):
            found.add(op)
    return frozenset(op for op in found if not isinstance(op, LoadOp | IfOp))


def _is_index(stage: Stage, use: object) -> bool:
    """Whether a use is an index of an affine access."""
    op, number = getattr(use, "operation", None), getattr(use, "index", 0)
    if not isinstance(op, LoadOp | StoreOp) or op not in stage.accesses:
        return False
    dimension = number - (1 if isinstance(op, LoadOp) else 2)
    return 0 <= dimension < len(stage.accesses[op]) and (
        op in stage.wholes or stage.accesses[op][dimension].value is None
    )


def range_of(
    code: Code, bounds: Sequence[Bound], axis: int, extent: Dim, at: Mapping[int, SSAValue]
) -> tuple[SSAValue, SSAValue]:
    """The range of a loop over an axis for which bounds hold.

    `at` has the other axes that the bounds depend on; their strides, and that of the axis, are numbers.
    """
    first, length = code.index(0), code.dim(extent)
    end = length
    for bound in bounds:
        step = bound.step(axis) or 1
        rest = code.linear(bound.base, [(index, bound.strides[other]) for other, index in at.items() if other != axis])
        if step > 0:
            least = code.maximum(code.sub(code.index(step - 1), rest), 0)
            first = code.maximum(first, _quotient(code, least, step))
        else:
            most = code.maximum(code.add(rest, -step), 0)
            end = code.minimum(end, _quotient(code, most, -step))
    first = code.minimum(first, length)
    return first, code.maximum(end, first)


def _quotient(code: Code, value: SSAValue, divisor: int) -> SSAValue:
    return value if divisor == 1 else code.divide(value, divisor)


@dataclass(frozen=True)
class Interior:
    """A range of an axis on which branches are taken."""

    stage: Stage
    axis: int
    branches: frozenset[IfOp]
    bounds: tuple[Bound, ...]

    @property
    def is_uniform(self) -> bool:
        """Whether the range is the same in all rows."""
        return not any(bound.moves_with(other) for bound in self.bounds for other in self._others)

    @property
    def _others(self) -> Sequence[int]:
        return [axis for axis in range(len(self.stage.axes)) if axis != self.axis]

    def excluded_ops(self, kernel: Kernel) -> frozenset[Operation]:
        """The ops that no vector of the interior needs: those of other branches, and loads that all lanes share."""
        elsewhere = {op for branch in self.branches for op in branch.else_body.walk()}
        accesses = {op: kernel.access(self.stage, op) for op in self.stage.loads if op not in elsewhere}
        return frozenset(elsewhere.union(op for op, access in accesses.items() if not access.strides[self.axis].terms))

    def range(
        self, kernel: Kernel, at: Mapping[int, SSAValue], chunk: tuple[SSAValue, SSAValue] | None
    ) -> tuple[SSAValue, SSAValue]:
        """The interior, within a range of the axis."""
        code = kernel.code
        first, end = range_of(code, self.bounds, self.axis, self.stage.axes[self.axis].extent, at)
        if chunk is None:
            return first, end
        low, high = chunk
        first = code.minimum(code.maximum(first, low), high)
        return first, code.maximum(code.minimum(end, high), first)


def find_interior(kernel: Kernel, stages: Sequence[Stage], axis: int) -> Interior | None:
    """The interior of an axis of one elementwise stage; `None` if its branches depend on something else."""
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
    return Interior(stage, axis, frozenset(guard.op for guard in guards), bounds)


def _moves(guard: Guard, axis: int) -> bool:
    """Whether a branch depends on an axis."""
    return all(bound.moves_with(axis) for bound in guard.bounds)


def _is_counted(branch: IfOp) -> bool:
    """Whether the branch gives a constant where the other computes a value."""
    known, computed = branch.then_body.block.last_op, branch.else_body.block.last_op
    if not isinstance(known, YieldOp) or not isinstance(computed, YieldOp):
        return False
    is_known = all(isinstance(value.owner, arith.ConstantOp | DimOp) for value in known.values)
    return is_known and any(isinstance(value.type, IndexType) for value in computed.values)


def _is_scattered(kernel: Kernel, stage: Stage, branch: IfOp) -> bool:
    """Whether only the other branch has computed indices along the axes."""
    inside, outside = (
        [kernel.access(stage, op) for op in block.walk() if isinstance(op, LoadOp) and op in stage.accesses]
        for block in (branch.then_body.block, branch.else_body.block)
    )
    return sum(len(access.computed) for access in outside) > sum(len(access.computed) for access in inside)


Ranges: TypeAlias = Mapping[int, tuple[SSAValue, SSAValue]]
"""The ranges of loops over axes that do not run over all iterations."""


def all_iterations() -> Ranges:
    """All iterations of all loops."""
    return {}


@dataclass(frozen=True)
class ClippedReduction:
    """A reduction of elements that count only where bounds hold; elsewhere there is the neutral element."""

    guard: Guard
    loop_bounds: Mapping[int, tuple[Bound, ...]]
    """The bounds on a reduced axis that are the same for all lanes."""
    lane: Mapping[int, tuple[Bound, ...]]
    """The bounds that differ between lanes, by the reduced axis that they are on."""

    @property
    def lane_bounds(self) -> tuple[Bound, ...]:
        """The bounds that differ between lanes."""
        return tuple(bound for bounds in self.lane.values() for bound in bounds)

    def ranges(self, code: Code, stage: Stage, at: Mapping[int, SSAValue]) -> Ranges:
        """The ranges of reduced axes that count for all lanes."""
        return {
            axis: range_of(code, bounds, axis, stage.axes[axis].extent, at) for axis, bounds in self.loop_bounds.items()
        }


def find_clipping(stage: Stage, reduction: Reduction, lane: int) -> ClippedReduction | None:
    """The clipping of a reduction with lanes along an axis; `None` if there is none, or another structure."""
    guards = find_guards(stage)
    if len(guards) != 1 or not _is_skippable(guards[0], reduction):
        return None
    reduced = stage.of_kind(IteratorKind.REDUCE)
    loop_bounds: dict[int, tuple[Bound, ...]] = {}
    lane_bounds: dict[int, tuple[Bound, ...]] = {}
    for bound in guards[0].bounds:
        moved = [axis for axis in reduced if bound.moves_with(axis)]
        if len(moved) != 1 or any(bound.step(axis) is None for axis in (lane, *moved)):
            return None
        found = lane_bounds if bound.moves_with(lane) else loop_bounds
        found[moved[0]] = (*found.get(moved[0], ()), bound)
    return ClippedReduction(guards[0], loop_bounds, lane_bounds)


def _is_skippable(guard: Guard, reduction: Reduction) -> bool:
    """Whether the other branch gives the initial value of the reduction, so that it can be skipped."""
    if len(reduction.combine) != 1 or reduction.sources != tuple(guard.op.outputs):
        return False
    last = guard.op.else_body.block.last_op
    return isinstance(last, YieldOp) and _constant(last.values[0]) == _constant(reduction.first[0]) is not None


def _constant(value: SSAValue) -> object:
    owner = value.owner
    return owner.value if isinstance(owner, arith.ConstantOp) else None

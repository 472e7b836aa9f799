"""Accesses that cannot be proved to be in bounds, and have to be checked at run time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.dialects.vector import BroadcastOp, CreateMaskOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.hints import isa

from tir_dialect.analysis.accesses import ONE, Reach, name_of, reaches, runs_over, widths
from tir_dialect.analysis.index_space import WIDE, DataSpace, Variable, extremes
from tir_dialect.analysis.size_conditions import SizeCondition, facts
from tir_dialect.analysis.structure import loop_of
from tir_dialect.dims import Dim
from tir_dialect.ops.arithmetic import AssertOp, RampOp
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import ConditionOp, ForOp, IfOp, WhileOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp

CHECKED = "checked"
"""The attribute of an op whose accesses have been asserted to be in bounds."""

Facts: TypeAlias = tuple[Dim, ...]
"""Expressions that are known to be <= 0."""


@dataclass(frozen=True)
class UnprovenAccess:
    """An index, or a vector of indices, of an op that is not known to be in bounds."""

    op: Operation
    axis: int
    """The number of the index in the op."""
    reach: Reach
    mask: SSAValue | None
    subject: str
    is_data: bool
    """Whether the index may change while the function runs."""


def unproven_accesses(func: PrimFuncOp, conditions: Sequence[SizeCondition]) -> tuple[UnprovenAccess, ...]:
    """The accesses that have to be asserted in addition to the conditions, in program order.

    What is asserted of a view or a block is taken as known by the accesses after it.
    """
    return tuple(_Finder(func, conditions).visit(func.body.block, (), ()))


class _Finder:
    def __init__(self, func: PrimFuncOp, conditions: Sequence[SizeCondition]):
        self._space = DataSpace(func)
        self._conditions = conditions
        self._name = func.sym_name.data

    def visit(self, block: Block, loops: tuple[Variable, ...], known: Facts) -> Iterator[UnprovenAccess]:
        """The unproven accesses of the ops in a block, given what is known there."""
        # What the conditions on sizes say, given that the loops that they are about are not empty.
        lengths = {loop.upper - loop.lower for loop in loops if loop.lower is not None and loop.upper is not None}
        known = (
            *known,
            *tuple(each.smaller - each.larger for each in self._conditions if lengths.issuperset(each.lengths)),
        )
        for op in block.ops:
            if isinstance(op, AssertOp):
                known = (*known, *facts(self._space, op.condition))
                continue
            if CHECKED not in op.attributes:
                found = tuple(self._open(op, loops, known))
                yield from found
                known = (*known, *(fact for access in found for fact in self._asserted(access)))
            yield from self._inside(op, loops, known)

    def _inside(self, op: Operation, loops: tuple[Variable, ...], known: Facts) -> Iterator[UnprovenAccess]:
        space = self._space
        match op:
            case ForOp():
                variable = space.variable(op.induction_var)
                if not variable.is_empty:
                    yield from self.visit(op.body.block, (*loops, variable), known)
            case IfOp():
                for region, holds in ((op.then_body, True), (op.else_body, False)):
                    if region.block.first_op is not None:
                        yield from self.visit(region.block, loops, (*known, *facts(space, op.condition, holds)))
            case WhileOp():
                yield from self.visit(op.before.block, loops, known)
                last = op.before.block.last_op
                goes_on = tuple(facts(space, last.condition)) if isinstance(last, ConditionOp) else ()
                yield from self.visit(op.body.block, loops, (*known, *goes_on))
            case BlockOp():
                where = () if op.condition is None else tuple(facts(space, op.condition))
                yield from self.visit(op.body.block, loops, (*known, *where))
            case InitOp():
                # What is known in an init, which runs before the reduction, even if that is empty.
                block = op.parent_op()
                assert isinstance(block, BlockOp)
                reduced = [self._space.dim_of(each.binding) for each in block.iterators if each.kind.is_reduced]
                names = frozenset[str]().union(*(dim.symbols for dim in reduced if dim is not None))
                yield from self.visit(
                    op.body.block, loops, tuple(fact for fact in known if fact.symbols.isdisjoint(names))
                )
            case _:
                return

    # Which accesses are unproven.

    def _open(self, op: Operation, loops: Sequence[Variable], known: Facts) -> Iterator[UnprovenAccess]:
        for axis, (what, reach, mask) in enumerate(_all_reaches(op, self._space)):
            proof = _Proof(self._space, reach, loops, known)
            if not proof.holds(mask):
                dim = self._space.dim_of(reach.start) if isinstance(reach.start.type, IndexType) else None
                is_data = dim is None or self._space.is_data(dim)
                yield UnprovenAccess(op, axis, reach, mask, f"{self._name}: {what}", is_data)

    def _asserted(self, access: UnprovenAccess) -> Facts:
        """What is known once a view or an iterator has been asserted to be in bounds; nothing for loads and stores."""
        if isinstance(access.op, LoadOp | StoreOp):
            return ()
        dim = self._space.dim_of(access.reach.start) if isinstance(access.reach.start.type, IndexType) else None
        if dim is None:
            return ()
        return access.reach.first - dim, dim + access.reach.width - access.reach.end


def _all_reaches(op: Operation, space: DataSpace) -> Iterator[tuple[str, Reach, SSAValue | None]]:
    """As `reaches`, with vectors of indices, and accesses under a mask."""
    if isinstance(op, LoadOp | StoreOp):
        ends = zip(op.indices, widths(op), op.buffer_type.shape, strict=True)
        for axis, (index, width, extent) in enumerate(ends):
            yield f"a '{op.name}' whose index {axis} of {name_of(op.buffer)}", Reach(index, width, extent), op.mask
        return
    for what, reach in reaches(space, op):
        yield what, reach, None


@dataclass(frozen=True)
class _Proof:
    """Whether everything that an op accesses along a dimension is in bounds."""

    space: DataSpace
    reach: Reach
    loops: Sequence[Variable]
    known: Facts

    def holds(self, mask: SSAValue | None) -> bool:
        """Whether that can be proved, for the lanes of the mask if there is one."""
        start, width, end = self.reach[:3]
        if loop_of(start) is not None and runs_over(self.space, self.reach):
            return True
        if isinstance(start.owner, RampOp):
            ramp = start.owner
            base, step = self.space.dim_of(ramp.base), self.space.dim_of(ramp.step)
            if base is None or step is None:
                return False
            ends = base, base + step * (ramp.lanes - 1)
            return all((self._low(each) and self._high(each)) for each in ends)
        if isinstance(start.owner, BroadcastOp):
            start = start.owner.source
        if not isinstance(start.type, IndexType):
            return False
        if not self._reaches(start, low=True):
            return False
        if self._reaches(start, low=False):
            return True
        owner = None if mask is None or width is ONE else mask.owner
        if not isinstance(owner, CreateMaskOp) or len(owner.mask_dim_sizes) != 1:
            return False
        dim, count = self.space.dim_of(start), self.space.dim_of(owner.mask_dim_sizes[0])
        return dim is not None and count is not None and self._less_equal(dim + count, end)

    def _low(self, dim: Dim) -> bool:
        first = self.reach.first
        if self._less_equal(first, dim):
            return True
        found = extremes(dim, self.loops, self.space.prover)
        return found is not None and self._less_equal(first, found.low)

    def _high(self, dim: Dim) -> bool:
        room = self.reach.end - self.reach.width
        if self._less_equal(dim, room):
            return True
        found = extremes(dim, self.loops, self.space.prover)
        return found is not None and self._less_equal(found.high, room)

    def _less_equal(self, lhs: Dim, rhs: Dim) -> bool:
        if self.space.less_equal(lhs, rhs):
            return True
        goal = lhs - rhs
        return any(self.space.less_equal(goal, fact) is True for fact in self.known)

    def _reaches(self, value: SSAValue, *, low: bool) -> bool:
        """Whether an integer of any width is not too small, or not too large."""
        dim = self.space.number(value)
        if dim is not None and (self._low(dim) if low else self._high(dim)):
            return True
        match value.owner:
            case arith.IndexCastOp(input=number) | arith.ExtSIOp(input=number) if _bits(number) <= _bits(value):
                return self._reaches(number, low=low)
            case arith.MaxSIOp(lhs=lhs, rhs=rhs):
                sides = (self._reaches(side, low=low) for side in (lhs, rhs))
                return any(sides) if low else all(sides)
            case arith.MinSIOp(lhs=lhs, rhs=rhs):
                sides = (self._reaches(side, low=low) for side in (lhs, rhs))
                return all(sides) if low else any(sides)
            case arith.SelectOp(cond=condition, lhs=lhs, rhs=rhs):
                return all(
                    self._where(condition, holds)._reaches(side, low=low) for side, holds in ((lhs, True), (rhs, False))
                )
            case _:
                return False

    def _where(self, condition: SSAValue, holds: bool) -> _Proof:
        known = (*self.known, *facts(self.space, condition, holds))
        return _Proof(self.space, self.reach, self.loops, known)


def _bits(value: SSAValue) -> int:
    return value.type.width.data if isa(value.type, IntegerType) else WIDE

"""Whether accesses, views and block iterators are in bounds: provably not, under conditions on sizes, from which and
from their negations facts about indices follow, or unproven, so that they have to be checked at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import FileLineColLoc, IndexType, IntegerAttr, IntegerType
from xdsl.dialects.vector import BroadcastOp, CreateMaskOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from tir_dialect.analysis.index_space import WIDE, DataSpace, IndexSpace, Variable, extremes
from tir_dialect.analysis.structure import block_of, has_no_effects, loop_of
from tir_dialect.dims import Dim, DimLike, constant
from tir_dialect.ops.arithmetic import AssertOp, RampOp
from tir_dialect.ops.blocks import BlockOp, InitOp, MatchBufferOp, ViewOp
from tir_dialect.ops.control_flow import ConditionOp, ForOp, IfOp, WhileOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind

ZERO = constant(0)
ONE = constant(1)


def wrong_access(func: PrimFuncOp) -> str | None:
    """A description of an access that is out of bounds, or an iterator out of its domain, whenever no loop is empty.

    Where the length of a loop depends on those around it, as in a triangle, it must be known to be at least 1 in all of
    them. Only ops that are executed unconditionally are considered, and only indices that are expressions of loop
    variables; `None` if nothing is provably wrong. The ops need not have been verified.
    """
    space = IndexSpace(func)
    for op, loops in unconditional(space, func, ()):
        for what, reach in reaches(space, op):
            found = leaves(space, reach, loops)
            if found is not None and not any(
                _is_partly_empty(space, loops[: index + 1]) for index in range(len(loops))
            ):
                return f"{what} {found}{index_of(op)}"
    return None


class Reach(NamedTuple):
    """The elements `start <= i < start + width` of a dimension, of which those from `first` to `end` may be used."""

    start: SSAValue
    width: Dim
    end: Dim
    first: Dim = ZERO
    limit: SSAValue | None = None
    """The value of `end`, where that need not be a dimension over the symbols of the function."""


def reaches(space: IndexSpace, op: Operation) -> Iterator[tuple[str, Reach]]:
    """The elements that an op accesses when it is executed, with a description; nothing for an op with a predicate."""
    match op:
        case LoadOp() | StoreOp() if op.mask is None:
            ends = zip(op.indices, widths(op), op.buffer_type.shape, strict=False)
            for axis, (index, width, extent) in enumerate(ends):
                yield f"a '{op.name}' whose index {axis} of {name_of(op.buffer)}", Reach(index, width, extent)
        case MatchBufferOp():
            lengths = iter(op.view_type.shape)
            for axis, (part, extent) in enumerate(zip(op.axes, op.buffer_type.shape, strict=False)):
                width = ONE if part.upper is None else next(lengths, ONE)
                yield f"a '{op.name}' whose range {axis} of {name_of(op.buffer)}", Reach(part.lower, width, extent)
        case ViewOp() if op.start is not None:
            yield f"a '{op.name}' of {name_of(op.buffer)}, which", Reach(op.start, op.view_type.span, op.room)
        case BlockOp() if op.condition is None:
            for axis, (index, limit) in enumerate(zip(op.bindings, op.extents, strict=False)):
                if (extent := space.dim_of(limit)) is not None:
                    what = f"a '{op.name}' \"{op.block_name.data}\" whose binding {axis}"
                    yield what, Reach(index, ONE, extent, limit=limit)
        case _:
            return


def widths(op: LoadOp | StoreOp) -> Iterator[Dim]:
    """The number of elements that an access covers in each dimension: a vector extends along the last one."""
    in_order = op.lanes is not None and all(isinstance(index.type, IndexType) for index in op.indices)
    for axis in range(len(op.indices)):
        yield constant(op.lanes or 1) if in_order and axis == len(op.indices) - 1 else ONE


def unconditional(
    space: IndexSpace, op: Operation, loops: tuple[ForOp, ...]
) -> Iterator[tuple[Operation, tuple[ForOp, ...]]]:
    """The ops in `op` that run in every iteration of the loops around them, with these loops, outermost first."""
    if isinstance(op, IfOp | WhileOp) or (isinstance(op, BlockOp) and op.condition is not None):
        return
    if isinstance(op, ForOp):
        if space.variable(op.induction_var).is_empty:
            return
        loops = (*loops, op)
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield inner, loops
                yield from unconditional(space, inner, loops)


def _is_partly_empty(space: IndexSpace, nest: Sequence[ForOp]) -> bool:
    """Whether the length of the last loop depends on the others, and is not known to be at least 1 in all of them."""
    *outer, variable = (space.variable(loop.induction_var) for loop in nest)
    if variable.lower is None or variable.upper is None:
        return False
    length = variable.upper - variable.lower
    if length.symbols.isdisjoint(each.dim.as_symbol or "" for each in outer):
        return False
    found = extremes(length, outer, space.prover)
    return found is None or space.less_equal(1, found.low) is not True


def leaves(space: IndexSpace, reach: Reach, loops: Sequence[ForOp]) -> str | None:
    """How indices violate `first <= i < end`; `None` if they do not provably do so whenever no loop is empty."""
    start, width, end, first, _ = reach
    if not isinstance(start.type, IndexType) or runs_over(space, reach):
        return None
    dim = space.dim_of(start)
    if dim is None:
        return None
    found = extremes(dim, [space.variable(loop.induction_var) for loop in loops], space.prover)
    if found is None or not found.exact:
        return None
    if space.less_equal(first, found.low) is False:
        return f"reaches {found.low}, expected at least {first}"
    high = found.high + width - 1
    return f"reaches {high}, expected less than {end}" if space.less_equal(high + 1, end) is False else None


def runs_over(space: IndexSpace, reach: Reach) -> bool:
    """Whether the index is a variable whose range is exactly the valid one, so that no proof is needed."""
    index = reach.start
    if reach.width is not ONE or reach.first is not ZERO:
        return False
    loop, block = loop_of(index), block_of(index)
    if loop is not None:
        return loop.lower is None and space.dim_of(loop.upper) is reach.end
    if block is None or not isinstance(index, BlockArgument):
        return False
    return space.dim_of(block.extents[index.index]) is reach.end


def name_of(value: SSAValue) -> str:
    """The name of a buffer for messages."""
    return f"%{value.name_hint}" if value.name_hint else "a buffer"


def index_of(op: Operation) -> str:
    """The source line of an op, if it is known, for messages about the function."""
    return f" (line {op.location.line.data})" if isinstance(op.location, FileLineColLoc) else ""


@dataclass(frozen=True)
class SizeCondition:
    """`smaller <= larger`, unless one of `lengths`, those of loops around the access, is not positive.

    All are expressions over the symbols of the function. `message` says which access leaves its range otherwise.
    """

    smaller: Dim
    larger: Dim
    lengths: tuple[Dim, ...]
    message: str = field(compare=False)


@dataclass(frozen=True)
class _Access:
    """What an op touches, and the loops around it, outermost first; whether those in `ignored` run is of no account."""

    reach: Reach
    loops: Sequence[Variable]
    ignored: frozenset[str]

    def lengths(self, space: IndexSpace, smaller: Dim, larger: Dim) -> tuple[Dim, ...] | None:
        """How often loops run that may be empty although not `smaller <= larger`; `None` if that is no expression."""
        found: dict[Dim, None] = {}
        for loop in self.loops:
            if loop.dim.symbols <= self.ignored:
                continue
            if loop.lower is None or loop.upper is None:
                return None
            length = loop.upper - loop.lower
            if not length.symbols.isdisjoint(space.variables):
                return None
            if not space.less_equal(1, length) and not _follows(space, length, smaller, larger):
                found.setdefault(length)
        return tuple(found)


def size_conditions(func: PrimFuncOp) -> tuple[SizeCondition, ...]:
    """The conditions that can be neither proved nor refuted for all sizes, in program order, without repetitions.

    Of the accesses, views and iterators that `wrong_access` looks at: those that run unconditionally. Where a condition
    fails, one of these leaves its range. Where all hold, none does whose index is an expression of loop variables with
    least and greatest values that are attained; of other indices, such as data, and of buffers that both ways of a
    branch access, it is known that there is a valid one. The function has to be verified.
    """
    space = IndexSpace(func)
    found: dict[SizeCondition, None] = {}
    for op, loops in unconditional(space, func, ()):
        for one, holds in ((op, _open), *((each, _open_if_data) for each in _on_both_ways(op))):
            for what, reach in reaches(space, one):
                if isinstance(reach.start.type, IndexType):
                    variables = [space.variable(loop.induction_var) for loop in loops]
                    access = _Access(reach, variables, _reduced(space, op))
                    found |= dict.fromkeys(holds(space, f"{func.sym_name.data}: {what}", access))
    return tuple(found)


def _on_both_ways(op: Operation) -> list[LoadOp | StoreOp]:
    """The accesses on the ways of a branch to buffers that are accessed on both."""
    if not isinstance(op, IfOp):
        return []
    one, other = (
        [each for each in region.block.ops if isinstance(each, LoadOp | StoreOp) and each.mask is None]
        for region in (op.then_body, op.else_body)
    )
    buffers = {each.buffer for each in one} & {each.buffer for each in other}
    return [each for each in (*one, *other) if each.buffer in buffers]


def first_effect(func: PrimFuncOp) -> Operation | None:
    """The op before which conditions are checked: the first one with effects other than assertions."""
    return next((op for op in func.body.block.ops if not (has_no_effects(op) or isinstance(op, AssertOp))), None)


def _open(space: IndexSpace, subject: str, access: _Access) -> Iterator[SizeCondition]:
    """The lower and the upper end of what is touched, as far as they are not known to be in range."""
    reach = access.reach
    if runs_over(space, reach):
        return
    dim = space.dim_of(reach.start)
    found = None if dim is None else extremes(dim, access.loops, space.prover)
    if dim is None or found is None or not found.exact or not dim.symbols.isdisjoint(access.ignored):
        if not access.ignored:
            yield from _somewhere(space, subject, access)
        return
    high = found.high + reach.width - 1
    low_end = f"{subject} reaches {found.low}, expected at least {reach.first}"
    high_end = f"{subject} reaches {high}, expected less than {reach.end}"
    for smaller, larger, message in ((reach.first, found.low, low_end), (high + 1, reach.end, high_end)):
        lengths = None if space.less_equal(smaller, larger) else access.lengths(space, smaller, larger)
        if lengths is not None:
            yield SizeCondition(smaller, larger, lengths, message)


def _open_if_data(space: IndexSpace, subject: str, access: _Access) -> Iterator[SizeCondition]:
    """The same of an access on both ways of a branch: which numbers its index has may depend on the way."""
    dim = space.dim_of(access.reach.start)
    if dim is None and not access.ignored:
        yield from _somewhere(space, subject, access)


def _somewhere(space: IndexSpace, subject: str, access: _Access) -> Iterator[SizeCondition]:
    """That there is a valid index at all, where it is data or otherwise no expression of loop variables."""
    least, end = access.reach.first + access.reach.width, access.reach.end
    lengths = None if space.less_equal(least, end) else access.lengths(space, least, end)
    if lengths is not None:
        message = f"{subject} reaches at least {least - 1}, expected less than {end}"
        yield SizeCondition(least, end, lengths, message)


def _follows(space: IndexSpace, length: Dim, smaller: Dim, larger: Dim) -> bool:
    """Whether `smaller <= larger` is known where a loop of this length is empty."""
    name = length.as_symbol
    if name is None:
        return False
    try:
        least, greatest = smaller.substitute({name: 0}), larger.substitute({name: 0})
    except ZeroDivisionError:  # they have no value there
        return False
    return space.less_equal(least, greatest) is True


def _reduced(space: IndexSpace, op: Operation) -> frozenset[str]:
    """For an op of an init, the variables of its reduction: it runs once for all of their values, or for none."""
    init = op.parent_op()
    block = None if init is None else init.parent_op()
    if not isinstance(init, InitOp) or not isinstance(block, BlockOp):
        return frozenset()
    bindings = [space.dim_of(each.binding) for each in block.iterators if each.kind is not IteratorKind.SPATIAL]
    return frozenset[str]().union(*(binding.symbols for binding in bindings if binding is not None))


_NAMES = list(arith.CMPI_COMPARISON_OPERATIONS)
_PAIRS = (("eq", "ne"), ("slt", "sge"), ("sle", "sgt"), ("ult", "uge"), ("ule", "ugt"))
_OPPOSITES = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
_TURNED = {"sgt": "slt", "sge": "sle", "ugt": "ult", "uge": "ule"}


class Numbers(Protocol):
    """The interface of `DataSpace`."""

    def number(self, value: SSAValue) -> Dim | None: ...

    def less_equal(self, lhs: DimLike, rhs: DimLike) -> bool | None: ...


def facts(space: Numbers, condition: SSAValue, holds: bool = True) -> Iterator[Dim]:
    """Expressions that are <= 0 where a condition holds, or where it does not hold."""
    match condition.owner:
        case arith.CmpiOp() as op:
            name = _NAMES[op.predicate.value.data]
            sides = space.number(op.lhs), space.number(op.rhs)
            if sides[0] is not None and sides[1] is not None:
                yield from _compared(space, name if holds else _OPPOSITES[name], sides[0], sides[1])
        case arith.AndIOp() | arith.OrIOp() as op if isinstance(op, arith.AndIOp) == holds:
            yield from facts(space, op.lhs, holds)
            yield from facts(space, op.rhs, holds)
        case arith.XOrIOp() as op if _is_true(op.rhs):
            yield from facts(space, op.lhs, not holds)
        case _:
            return


def _compared(space: Numbers, name: str, lhs: Dim, rhs: Dim) -> Iterator[Dim]:
    if name in _TURNED:
        name, lhs, rhs = _TURNED[name], rhs, lhs
    match name:
        case "eq":
            yield from (lhs - rhs, rhs - lhs)
        case "slt":
            yield lhs - rhs + 1
        case "sle":
            yield lhs - rhs
        case "ult" | "ule" if space.less_equal(0, rhs):  # a negative number is a large unsigned one
            yield from (-lhs, lhs - rhs + (name == "ult"))
        case _:
            return


def _is_true(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr) and owner.value.value.data != 0


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

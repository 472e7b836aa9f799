"""The accesses of the ops inside an op: buffers and index ranges, as expressions of loop variables; bounding boxes of
what one iteration accesses; and dependences between iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.dependence import Axis, determine
from tir_dialect.analysis.digits import Digit, as_sum, digit_range
from tir_dialect.analysis.index_space import IndexSpace, Variable, extremes
from tir_dialect.analysis.regions import AxisRange, BlockRegions, Region
from tir_dialect.analysis.structure import ancestors, is_defined_inside, root_buffer
from tir_dialect.dims import Dim, Prover, ceildiv, constant, floordiv, maximum, minimum, symbol
from tir_dialect.ops.blocks import BlockOp, BufferViewOp, MatchBufferOp, ReadsOp, WritesOp
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.types import BufferType, IteratorKind


@dataclass(frozen=True)
class Access:
    """An access of `op` to a parameter or allocation, with views resolved."""

    op: Operation
    buffer: SSAValue
    is_store: bool
    axes: tuple[Axis, ...]


def accesses_in(space: IndexSpace, root: Operation) -> list[Access]:
    """All accesses of `root` and the ops inside; for a block that declares what it reads, or writes, these regions."""
    return list(_visit(space, root))


def _visit(space: IndexSpace, op: Operation) -> Iterator[Access]:
    if isinstance(op, BlockOp):
        declared = [inner for inner in op.body.block.ops if isinstance(inner, ReadsOp | WritesOp)]
        for inner in declared:
            axes: list[Axis] = []
            for axis in inner.axes:
                low = space.dim_of(axis.lower)
                high = None if axis.upper is None else space.dim_of(axis.upper)
                if axis.upper is None:
                    axes.append(Axis(low))
                else:
                    axes.append(Axis(None) if low is None or high is None else Axis(low, high - low))
            yield _through_views(space, inner, inner.buffer, isinstance(inner, WritesOp), axes)
        said = {isinstance(inner, WritesOp) for inner in declared}
        yield from (access for access in _inside(space, op) if access.is_store not in said)
        return
    if isinstance(op, LoadOp | StoreOp):
        axes = [Axis(space.dim_of(index) if isinstance(index.type, IndexType) else None) for index in op.indices]
        if op.lanes is not None and all(isinstance(index.type, IndexType) for index in op.indices):
            axes[-1] = Axis(axes[-1].low, constant(op.lanes))
        yield _through_views(space, op, op.buffer, isinstance(op, StoreOp), axes)
    elif isinstance(op, CallOp | ForeignCallOp):
        for argument in op.arguments:
            if isinstance(argument.type, BufferType):
                whole = [Axis(None)] * argument.type.rank
                yield _through_views(space, op, argument, False, whole)
                yield _through_views(space, op, argument, True, whole)
    yield from _inside(space, op)


def _inside(space: IndexSpace, op: Operation) -> Iterator[Access]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from _visit(space, inner)


def _through_views(space: IndexSpace, op: Operation, buffer: SSAValue, is_store: bool, axes: list[Axis]) -> Access:
    while isinstance(buffer.owner, BufferViewOp):
        if not isinstance(buffer.owner, MatchBufferOp):
            buffer, axes = buffer.owner.buffer, [Axis(None)] * buffer.owner.buffer_type.rank
            continue
        inner = iter(axes)
        outer: list[Axis] = []
        for axis in buffer.owner.axes:
            start = space.dim_of(axis.lower)
            part = Axis(constant(0)) if axis.upper is None else next(inner)
            outer.append(Axis(None if start is None or part.low is None else start + part.low, part.width))
        buffer, axes = buffer.owner.buffer, outer
    return Access(op, root_buffer(buffer), is_store, tuple(axes))


def described(buffer: SSAValue) -> str:
    """A buffer in messages."""
    return f'buffer "{buffer.name_hint}"' if buffer.name_hint else "a buffer"


def conflicting_buffers(space: IndexSpace, loop: ForOp) -> list[SSAValue]:
    """The buffers with an element that one iteration may write and another may read or write.

    Buffers that are allocated inside the loop are each iteration's own. A buffer is free of conflicts if its indices,
    the same in all accesses, determine the loop variable.
    """
    by_buffer: dict[SSAValue, list[Access]] = {}
    for access in accesses_in(space, loop):
        if not is_defined_inside(access.buffer, loop):
            by_buffer.setdefault(access.buffer, []).append(access)
    variable = space.variable(loop.induction_var).dim
    names = loop_names(space, loop)
    found: list[SSAValue] = []
    for buffer, accesses in by_buffer.items():
        rows = list(zip(*{access.axes for access in accesses}, strict=True))
        if any(access.is_store for access in accesses) and not determine(space, rows, variable, names):
            found.append(buffer)
    return found


def loop_names(space: IndexSpace, loop: ForOp) -> set[str]:
    """The symbols of a loop and the loops inside of it."""
    loops = (op for op in loop.walk() if isinstance(op, ForOp))
    return {space.variable(op.induction_var).dim.as_symbol or "" for op in loops}


def box_in(
    self: ScheduleState, accesses: Iterable[Access], loop: ForOp | None, shape: Sequence[Dim]
) -> list[AxisRange]:
    """The bounding box of the accesses, all inside `loop`, in one of its iterations.

    Without a loop, in the whole function.

    An index that is no expression of loop variables stands for the whole dimension.
    """
    rows = [[_range(self, access, axis, loop) for axis in access.axes] for access in accesses]
    return [_union(self.space.prover, column, dim) for column, dim in zip(zip(*rows, strict=True), shape, strict=True)]


def _range(self: ScheduleState, access: Access, axis: Axis, loop: ForOp | None) -> AxisRange | None:
    inner = [self.space.variable(op.induction_var) for op in loops_between(access, loop)]
    return None if axis.low is None else range_of(self.space.prover, axis, inner)


def range_of(prover: Prover, axis: Axis, variables: Sequence[Variable]) -> AxisRange | None:
    """The indices of an axis while the variables, outermost first, run; `None` if they cannot be bounded."""
    found = None if axis.low is None else extremes(axis.low, variables, prover)
    if found is None:
        return None
    return AxisRange(prover.simplify(found.low), prover.simplify(found.high - found.low + axis.width))


def loops_between(access: Access, loop: ForOp | None) -> list[ForOp]:
    """The loops around an access, inside of `loop` if there is one, outermost first."""
    found: list[ForOp] = []
    for op in ancestors(access.op):
        if op is loop:
            break
        if isinstance(op, ForOp):
            found.insert(0, op)
    return found


def _union(prover: Prover, column: Sequence[AxisRange | None], extent: Dim) -> AxisRange:
    known = [axis for axis in column if axis is not None]
    if len(known) < len(column):
        return AxisRange(constant(0), extent)
    found = join(prover, known)
    lower, upper = found.lower, found.lower + found.extent
    # guards keep accesses inside, whatever the indices say
    if prover.less_equal(lower, 0) is True:
        lower = constant(0)
    if prover.less_equal(extent, upper) is True:
        upper = extent
    return AxisRange(lower, prover.simplify(upper - lower))


def join(prover: Prover, ranges: Sequence[AxisRange]) -> AxisRange:
    """The least range that contains all of the ranges, at least one."""
    lower, upper = ranges[0].lower, ranges[0].lower + ranges[0].extent
    for axis in ranges[1:]:
        lower = prover.simplify(minimum(lower, axis.lower))
        upper = prover.simplify(maximum(upper, axis.lower + axis.extent))
    return AxisRange(lower, prover.simplify(upper - lower))


def clipped(prover: Prover, box: Sequence[AxisRange], shape: Sequence[Dim]) -> list[AxisRange]:
    """The part of a box that is in a buffer."""
    found: list[AxisRange] = []
    for axis, extent in zip(box, shape, strict=True):
        lower = prover.simplify(maximum(axis.lower, constant(0)))
        upper = prover.simplify(minimum(axis.lower + axis.extent, extent))
        found.append(AxisRange(lower, prover.simplify(upper - lower)))
    return found


def is_dense_once(
    self: ScheduleState, accesses: Sequence[Access], loop: ForOp | None, box: Sequence[AxisRange]
) -> bool:
    """Whether the accesses touch all elements of their common box if loops that move none of them have iterations."""
    shape = [axis.lower + axis.extent for axis in box]
    return any(
        box_in(self, [access], loop, shape) == list(box) and _fills_box(self, access, loops_between(access, loop), box)
        for access in accesses
    )


def _fills_box(self: ScheduleState, access: Access, loops: Sequence[ForOp], box: Sequence[AxisRange]) -> bool:
    names = {self.symbol(loop).as_symbol or "" for loop in loops}
    digits: list[Digit] = []
    for axis, wanted in zip(access.axes, box, strict=True):
        # of a box without elements nothing is missing
        found = None if axis.low is None else as_sum(self.space, axis.low, names, [each.extent for each in box])
        if found is None:
            return False
        start, reach = found.base, axis.width
        for term in found.terms:
            # The values that a digit of a loop variable takes; `None` if they depend on the loops `names`.
            variable = self.space.variables.get(term.digit.source.as_symbol or "")
            if (
                variable is None
                or variable.lower is None
                or variable.upper is None
                or not names.isdisjoint(variable.lower.symbols | variable.upper.symbols)
            ):
                values = None
            elif term.digit == Digit(term.digit.source):
                values = AxisRange(variable.lower, variable.upper - variable.lower)
            else:
                count = digit_range(self.space, term.digit)
                values = None if count is None else AxisRange(constant(0), count)
            if values is None or self.space.prover.equal(term.factor, reach) is not True:
                return False
            reach = term.factor * values.extent
            start = start if term.mirrored else start + term.factor * values.lower
        if not contains(self.space.prover, AxisRange(start, reach), wanted):
            return False
        digits += [term.digit for term in found.terms]
    return _take_all(self, digits, names)


def contains(prover: Prover, whole: AxisRange, part: AxisRange) -> bool:
    """Whether a range has all of the indices of another one."""
    ends = part.lower + part.extent, whole.lower + whole.extent
    return prover.less_equal(whole.lower, part.lower) is True and prover.less_equal(*ends) is True


def _take_all(self: ScheduleState, digits: Sequence[Digit], names: AbstractSet[str]) -> bool:
    """Whether the digits take all combinations of their values while the loops `names` run."""
    used: set[str] = set()
    for source in dict.fromkeys(digit.source for digit in digits):
        own = [digit for digit in digits if digit.source is source]
        if not used.isdisjoint(source.symbols):
            return False
        used |= source.symbols & names
        if own != [Digit(source)] and not _take_all_of(self, source, own):
            return False
    return True


def _take_all_of(self: ScheduleState, source: Dim, digits: Sequence[Digit]) -> bool:
    """Whether digits of one loop variable are different ones, and those above them are whole."""
    variable = self.space.variables.get(source.as_symbol or "")
    if variable is None or variable.upper is None or variable.lower is None:
        return False
    equal, extent = self.space.prover.equal, variable.upper
    first = next((digit for digit in digits if digit.low not in {each.high for each in digits}), None)
    chain = [] if first is None else [first]
    while chain and (following := next((each for each in digits if each.low is chain[-1].high), None)) is not None:
        chain.append(following)
    if len(chain) < len(digits) or equal(variable.lower, 0) is not True:
        return False
    whole = chain[-1].high or chain[-1].low
    # the other digits need a value, too
    below, above = chain[0].low, chain[-1].high
    reached = self.space.less_equal(1, below) is True and (
        above is None or self.space.less_equal(above, extent) is True
    )
    return reached and equal(ceildiv(extent, whole) * whole, extent) is True


@dataclass(frozen=True)
class Position:
    """The indices `offset + step * v` and the `width - 1` after it, for iterator number `iterator` with value `v`.

    `width` is at most the size of `step`, which is not 0, so an index belongs to one value of the iterator.
    """

    iterator: int
    offset: Dim
    step: int
    width: Dim

    def values(self, indices: AxisRange) -> AxisRange:
        """The values of the iterator for which some index is in a range."""
        size = abs(self.step)
        first = floordiv(indices.lower - self.offset - self.width + size, size)
        last = floordiv(indices.lower - self.offset + indices.extent - 1, size)
        return AxisRange(first if self.step > 0 else -last, last - first + 1)


def positions_of(
    block: BlockOp, regions: BlockRegions, region: Region, sizes: Sequence[str]
) -> list[Position | None] | None:
    """What each dimension of a region that a block writes is; the same elements for all iterators are `None`.

    `None` for the whole if one is something else, or if the region does not tell all spatial iterators, or one twice.
    Offsets are made of `sizes`.
    """
    names = [dim.as_symbol or "" for dim in regions.iterators.values()]
    found: list[Position | None] = []
    for axis in region.axes:
        moving = [number for number, name in enumerate(names) if name in axis.lower.symbols | axis.extent.symbols]
        position = _position(axis, moving[0], names[moving[0]]) if len(moving) == 1 else None
        if moving and (position is None or not _is_alone(regions, position, sizes)):
            return None
        found.append(position)
    used = [position.iterator for position in found if position is not None]
    free = [number for number, it in enumerate(block.iterators) if it.kind is IteratorKind.SPATIAL]
    extents = [regions.space.dim_of(block.extents[number]) for number in free if number not in used]
    units = all(extent is not None and extent.constant_value == 1 for extent in extents)
    return found if units and len(set(used)) == len(used) else None


def _position(axis: AxisRange, number: int, name: str) -> Position | None:
    """The range of an axis as a multiple of a variable; `None` if it is none."""
    own = [(factor, monomial) for factor, monomial in axis.lower.terms if any(name in a.symbols for a, _ in monomial)]
    if len(own) != 1 or name in axis.extent.symbols:
        return None
    step, offset = own[0][0], axis.lower - own[0][0] * symbol(name)
    return None if name in offset.symbols else Position(number, offset, step, axis.extent)


def _is_alone(regions: BlockRegions, position: Position, sizes: Sequence[str]) -> bool:
    """Whether no two values of the iterator mean the same index, and the position depends on nothing else that
    moves.
    """
    fixed = position.offset.symbols | position.width.symbols
    return fixed <= set(sizes) and regions.space.less_equal(position.width, abs(position.step)) is True

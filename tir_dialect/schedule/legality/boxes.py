"""Bounding boxes of what one iteration of a loop accesses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from tir_dialect.analysis.determination import Axis
from tir_dialect.analysis.digits import Digit, as_sum, digit_range
from tir_dialect.analysis.extremes import extremes
from tir_dialect.analysis.index_space import Variable
from tir_dialect.analysis.regions import AxisRange
from tir_dialect.analysis.structure import ancestors
from tir_dialect.dims import Dim, Prover, ceildiv, constant, maximum, minimum
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.legality.accesses import Access
from tir_dialect.schedule.state import ScheduleState


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
            values = _values(self, term.digit, names)
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


def _values(self: ScheduleState, digit: Digit, names: AbstractSet[str]) -> AxisRange | None:
    """The values that a digit of a loop variable takes; `None` if they depend on the loops `names`."""
    variable = self.space.variables.get(digit.source.as_symbol or "")
    if variable is None or variable.lower is None or variable.upper is None:
        return None
    if not names.isdisjoint(variable.lower.symbols | variable.upper.symbols):
        return None
    if digit == Digit(digit.source):
        return AxisRange(variable.lower, variable.upper - variable.lower)
    count = digit_range(self.space, digit)
    return None if count is None else AxisRange(constant(0), count)


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

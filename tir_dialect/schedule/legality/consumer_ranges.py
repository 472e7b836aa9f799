"""The iterator ranges for which a consumer may run once a box of its input has been produced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from tir_dialect.analysis.determination import Axis
from tir_dialect.analysis.digits import ONE, Digit, Term, as_sum, digit_range
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange
from tir_dialect.dims import Dim, constant, floordiv, mod, total
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.schedule.legality.accesses import accesses_in
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure import iterator_extent, shape_of
from tir_dialect.types import IteratorKind

Boxes = Mapping[SSAValue, Sequence[AxisRange]]
"""What is there of each buffer; nothing is said about others."""


def available(self: ScheduleState, block: BlockOp, boxes: Boxes, loop: str) -> list[AxisRange]:
    """The values of the block's iterators for which everything that it reads is in the boxes, and no others.

    An index may be an iterator, or a digit of one or of a number made of several. Iterators of a reduction with an init
    are among them: their values are then those that one iteration reduces over. Refuses a block where these values are
    not a range for each iterator; `loop` names the loop that makes the boxes.
    """
    finder = _Finder(self, block)
    for access in accesses_in(finder.space, block):
        if access.is_store or access.buffer not in boxes:
            continue
        if not finder.take(access.axes, boxes[access.buffer], shape_of(access.buffer)):
            raise self.error(
                f'block "{block.block_name.data}" reads elements of buffer "{access.buffer.name_hint}" that other '
                f'iterations of loop "{loop}" write'
            )
    return [
        finder.ranges.get(number, AxisRange(constant(0), iterator_extent(self, block, number)))
        for number in range(len(block.iterators))
    ]


class _Finder:
    def __init__(self, state: ScheduleState, block: BlockOp):
        self._state = state
        self.space = IndexSpace(block)
        kinds = (IteratorKind.SPATIAL,) if block.init is None else (IteratorKind.SPATIAL, IteratorKind.REDUCE)
        symbols = [self.space.variable(value).dim for value in block.body.block.args]
        self._numbers = {dim: number for number, dim in enumerate(symbols) if block.iterators[number].kind in kinds}
        self._names = {dim.as_symbol or "" for dim in symbols}
        self.ranges: dict[int, AxisRange] = {}

    def take(self, axes: Sequence[Axis], box: Sequence[AxisRange], shape: Sequence[Dim]) -> bool:
        """Adds the ranges that an access allows; whether they are ranges, the same as those that are there."""
        wanted: dict[Dim, dict[Digit, AxisRange]] = {}
        whole = [produced == AxisRange(constant(0), extent) for produced, extent in zip(box, shape, strict=True)]
        for number in sorted(range(len(axes)), key=whole.__getitem__):  # whole axes last: they restrict nothing
            low, produced = axes[number].low, box[number]
            if whole[number] and (low is None or self._numbers.get(low) is None):
                continue
            found = None if low is None else as_sum(self.space, low, self._names)
            if found is None or found.base.terms or len(found.terms) != 1:
                return False
            digit = found.terms[0].digit
            if found.terms[0] != Term(ONE, digit):
                return False
            known = wanted.setdefault(digit.source, {}).setdefault(digit, produced)
            if known != produced and not whole[number]:
                return False
        return all(self._restrict(source, digits) for source, digits in wanted.items())

    def _restrict(self, source: Dim, digits: Mapping[Digit, AxisRange]) -> bool:
        values = self._number(source, digits)
        number = self._numbers.get(source)
        if values is not None and number is None:
            number, values = self._leading(source, values)
        return values is not None and number is not None and self.ranges.setdefault(number, values) == values

    def _number(self, source: Dim, digits: Mapping[Digit, AxisRange]) -> AxisRange | None:
        """The range of a number with these digits: all of them down to one are single values, and the rest is free."""
        by_low = {digit.low: (digit, values) for digit, values in digits.items()}
        above = {digit.high for digit in digits} - {None}
        lows = [low for low in by_low if low not in above]
        if len(lows) != 1 or len(by_low) != len(digits):
            return None
        digit, values = by_low[lows[0]]
        lower, taken = values.lower * digit.low, 1
        while digit.high is not None and digit.high in by_low:
            digit, upper = by_low[digit.high]
            if upper.extent is not ONE:
                return None
            lower, taken = lower + upper.lower * digit.low, taken + 1
        extent = digit_range(self.space, Digit(source))
        ends = digit.high is None or (extent is not None and self.space.less_equal(extent, digit.high) is True)
        return AxisRange(lower, values.extent * lows[0]) if ends and taken == len(digits) else None

    def _leading(self, source: Dim, values: AxisRange) -> tuple[int | None, AxisRange | None]:
        """The iterator with the greatest factor in a number made of several, and its range; the others are free."""
        found = as_sum(self.space, source, self._names)
        if found is None or found.base.terms or any(term.mirrored for term in found.terms):
            return None, None
        reach, prover = ONE, self._state.space.prover
        for term in found.terms:
            extent = digit_range(self.space, term.digit)
            if extent is None or term.digit != Digit(term.digit.source) or prover.equal(term.factor, reach) is not True:
                return None, None
            reach = reach * extent
        last = found.terms[-1]
        parts = [mod(end, last.factor) for end in (values.lower, values.extent)]
        if prover.simplify(total(parts)).terms:
            return None, None
        lower, extent = (floordiv(end, last.factor) for end in (values.lower, values.extent))
        return self._numbers.get(last.digit.source), AxisRange(prover.simplify(lower), prover.simplify(extent))

"""Which blocks may read a cache, and the iterator ranges for which a consumer may run once a box of its input has been
produced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.dependence import Axis
from tir_dialect.analysis.digits import ONE, Digit, Term, as_sum, digit_range
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange
from tir_dialect.analysis.structure import ancestors
from tir_dialect.dims import Dim, constant, floordiv, mod, total
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp, IfOp, WhileOp
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.legality.accesses import Access, accesses_in, box_in, conflicting_buffers, contains
from tir_dialect.schedule.legality.elementwise import check_plain_uses
from tir_dialect.schedule.legality.instances import is_dense, leaves_some
from tir_dialect.schedule.legality.motion import describe, touches
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure import Less, comes_before, conjuncts, iterator_extent, shape_of
from tir_dialect.types import IteratorKind


def check_consumer(self: ScheduleState, block: BlockOp, consumer: BlockOp, stores: Sequence[Access]) -> None:
    """Refuses a consumer that would read of the cache what the block has not stored there before.

    `stores` are all of the block's to the buffer. What the consumer reads must be stored in the same iteration of the
    innermost loop around both.
    """
    buffer = stores[0].buffer
    name, hint = consumer.block_name.data, buffer.name_hint
    check_plain_uses(self, consumer, buffer)
    reads = [each for each in accesses_in(self.space, consumer) if each.buffer is buffer and not each.is_store]
    if not reads:
        raise self.error(f'expected a block that reads buffer "{hint}", got "{name}"')
    if not comes_before(self, block, consumer):
        raise self.error(f'block "{name}" reads buffer "{hint}" before block "{block.block_name.data}" writes it')
    loop = next((op for op in ancestors(block) if isinstance(op, ForOp) and is_inside(consumer, op)), None)
    stored, needed = (box_in(self, accesses, loop, shape_of(buffer)) for accesses in (stores, reads))
    for have, want in zip(stored, needed, strict=True):
        if not contains(self.space.prover, have, want):
            raise self.error(f'block "{name}" reads elements of buffer "{hint}" that the cache does not have')
    certain = [access for access in stores if is_certain(self, access, block)]
    if not is_dense(self, certain, loop, stored):
        raise self.error(f'block "{name}" reads elements of buffer "{hint}" that the cache may not have')


def is_certain(self: ScheduleState, access: Access, block: BlockOp) -> bool:
    """Whether a block accesses an element in each of its instances in which that is in the buffer."""
    inside = access.op
    for outer in ancestors(access.op):
        if not is_inside(outer, block):
            break
        if isinstance(outer, WhileOp) or (isinstance(outer, IfOp) and inside.parent_region() is not outer.then_body):
            return False
        condition = outer.condition if isinstance(outer, IfOp | BlockOp) else None
        for each in [] if condition is None else conjuncts(self.space, condition):
            if not _is_bound(access, each) and not (outer is block and leaves_some(self, block, access, each)):
                return False
        inside = outer
    return True


def _is_bound(access: Access, condition: Less | SSAValue) -> bool:
    """Whether a condition only says that an index is in the buffer."""
    for axis, extent in zip(access.axes, shape_of(access.buffer), strict=True):
        if axis.low is not None and condition in (Less(axis.low, extent), Less(constant(-1), axis.low)):
            return True
    return False


def missing_in_copy(
    self: ScheduleState, position: Operation, buffer: SSAValue, box: Sequence[AxisRange], reader: BlockOp
) -> str | None:
    """Why a block after `position` may not read what is copied of a buffer before `position`; `None` if it may.

    Each iteration of the loop around `position` copies `box`. The block finds its elements there if these boxes
    together have them, and if nobody changes an element after it was copied.
    """
    name, hint = reader.block_name.data, buffer.name_hint
    loops = _loops_until(position, reader)
    if loops is None:
        return f'block "{name}" reads buffer "{hint}" where it may not have been copied'
    if any(buffer in conflicting_buffers(self.space, loop) for loop in loops):
        return f'elements of buffer "{hint}" change in later iterations than they are copied in'
    writer = _writer_after(self, position, buffer, reader)
    if writer is not None:
        return f'{describe(writer)} writes buffer "{hint}" before block "{name}" has read the copy'
    common = next((op for op in ancestors(loops[-1]) if isinstance(op, ForOp) and is_inside(reader, op)), None)
    copied = [Access(position, buffer, True, tuple(Axis(axis.lower, axis.extent) for axis in box))]
    reads = [each for each in accesses_in(self.space, reader) if each.buffer is buffer and not each.is_store]
    stored, needed = (box_in(self, accesses, common, shape_of(buffer)) for accesses in (copied, reads))
    is_there = all(contains(self.space.prover, *pair) for pair in zip(stored, needed, strict=True))
    if not is_there or not is_dense(self, copied, common, stored):
        return f'block "{name}" reads elements of buffer "{hint}" that are not copied'
    return None


def _loops_until(position: Operation, reader: BlockOp) -> list[ForOp] | None:
    """The loops around `position` that do not hold the reader, innermost first; `None` if there are other ops
    or none.
    """
    found: list[ForOp] = []
    for op in ancestors(position):
        if is_inside(reader, op):
            break
        if not isinstance(op, ForOp):
            return None
        found.append(op)
    return found or None


def _writer_after(self: ScheduleState, index: Operation, buffer: SSAValue, reader: BlockOp) -> Operation | None:
    """What may write the buffer from `position` until the loops are through in which the reader runs."""
    around = [reader, *(op for op in ancestors(reader) if not is_inside(index, op))]
    top = around[-1]
    order = {op: position for position, op in enumerate(self.func.walk())}
    last = order[list(top.walk())[-1]]
    after = (op for op in order if order[index] <= order[op] <= last)
    return next((op for op in after if touches(op, {buffer}, writes_only=True)), None)


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

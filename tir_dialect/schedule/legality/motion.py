"""Whether a block may move into other loops, be inlined, or read a cache: what runs in between, for which values, and
in which order; blocks that compute one element per instance, and buffers that are only loaded and stored; and the
iterator ranges for which a consumer may run once a box of its input has been produced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.dependence import Axis
from tir_dialect.analysis.digits import ONE, Digit, Term, as_sum, digit_range
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange, read_buffers, touched_buffers, written_buffers
from tir_dialect.analysis.structure import ancestors, enclosing_block, root_buffer
from tir_dialect.dims import Dim, constant, floordiv, mod, total
from tir_dialect.ops.blocks import BlockOp, ReadsOp, WritesOp
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.control_flow import ForOp, IfOp, WhileOp, YieldOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.edits import is_index_op
from tir_dialect.schedule.handles import Block, Loop, is_inside
from tir_dialect.schedule.legality.accesses import Access, accesses_in, box_in, conflicting_buffers, contains
from tir_dialect.schedule.legality.independence import check_parallel
from tir_dialect.schedule.legality.instances import Instances, check_in_order, common_loop, is_dense, leaves_some
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure import Less, comes_before, conjuncts, iterator_extent, loops_without, shape_of
from tir_dialect.types import BufferType, IteratorKind, LoopKind


def touches(op: Operation, buffers: AbstractSet[SSAValue], *, writes_only: bool) -> bool:
    """Whether an op by itself writes, or at all accesses, one of the parameters or allocations."""
    if isinstance(op, StoreOp | WritesOp):
        return root_buffer(op.buffer) in buffers
    if isinstance(op, LoadOp | ReadsOp):
        return not writes_only and root_buffer(op.buffer) in buffers
    if isinstance(op, CallOp | ForeignCallOp):
        return any(isinstance(a.type, BufferType) and root_buffer(a) in buffers for a in op.arguments)
    return False


def runs_between(
    self: ScheduleState,
    first: Operation,
    last: Sequence[Operation],
    buffers: AbstractSet[SSAValue],
    *,
    writes_only: bool,
) -> Operation | None:
    """An op outside of `first` and `last` that touches the buffers after some run of `first` and before one of `last`.

    An op after `first` and before the end of `last` in the text is such an op; so is one before `first` that shares a
    loop with it that does not hold all of `last`, and one after `last` that shares a loop with one of these that does
    not hold `first`, for it runs again.
    """
    order = {op: position for position, op in enumerate(self.func.walk())}
    start, end = order[first], max(order[op] for op in last)
    for op in order:
        if not touches(op, buffers, writes_only=writes_only) or is_in_any(op, (first, *last)):
            continue
        if start < order[op] < end or (order[op] < start and not _same_loops(op, first, last)):
            return op
        if order[op] > end and any(not is_inside(first, loop) for loop in _shared_loops(op, last)):
            return op
    return None


def is_in_any(op: Operation, roots: Iterable[Operation]) -> bool:
    """Whether the op stands in one of the others."""
    return any(is_inside(op, root) for root in roots)


def _same_loops(op: Operation, first: Operation, last: Sequence[Operation]) -> bool:
    return all(is_inside(user, loop) for loop in _shared_loops(op, [first]) for user in last)


def _shared_loops(op: Operation, others: Sequence[Operation]) -> list[ForOp]:
    """The loops around an op that hold one of the others."""
    loops = (loop for loop in ancestors(op) if isinstance(loop, ForOp))
    return [loop for loop in loops if any(is_inside(other, loop) for other in others)]


def kind_of(op: Operation) -> str:
    """The name of an op for a message, which tells accesses of vectors from those of elements."""
    return f"'{op.name}' of a vector" if isinstance(op, LoadOp | StoreOp) and op.lanes is not None else f"'{op.name}'"


def describe(op: Operation) -> str:
    """The block that an op is in, or the op, for a message."""
    block = enclosing_block(op)
    return f"'{op.name}'" if block is None else f'block "{block.block_name.data}"'


def check_same_instances(self: ScheduleState, block: BlockOp, loop: ForOp, ranges: Sequence[AxisRange]) -> None:
    """Refuses to let a block run for `ranges` in a loop where that makes other instances than it has now.

    Both are compared in an iteration of the innermost loop around both. A reduction has to run from its init on.
    """
    position = loop.body.block.last_op
    if not block.iterators or position is None:
        return
    common = common_loop(block, loop)
    extents = [iterator_extent(self, block, number) for number in range(len(block.iterators))]
    # as if iterators were the indices of a buffer
    bindings = tuple(Axis(self.space.dim_of(it.binding)) for it in block.iterators)
    before = [Access(block, block.bindings[0], True, bindings)]
    after = [Access(position, block.bindings[0], True, tuple(Axis(axis.lower, axis.extent) for axis in ranges))]
    boxes = [box_in(self, instances, common, extents) for instances in (before, after)]
    name, hint = block.block_name.data, loop.induction_var.name_hint
    if not all(_is_same(self, *pair) for pair in zip(*boxes, strict=True)):
        raise self.error(
            f'block "{name}" runs for {_text(boxes[0])} of its iterators, in loop "{hint}" it would for '
            f"{_text(boxes[1])}; the loops of producer and consumer have to cover the same elements"
        )
    for instances, box in zip((before, after), boxes, strict=True):
        if not is_dense(self, instances, common, box):
            raise self.error(
                f'block "{name}" may not run for all of {_text(box)}, so in loop "{hint}" it may have other instances'
            )
    check_in_order(self, Instances(self, block, common))


def _is_same(self: ScheduleState, one: AxisRange, other: AxisRange) -> bool:
    equal = self.space.prover.equal
    return equal(one.lower, other.lower) is True and equal(one.extent, other.extent) is True


def _text(box: Sequence[AxisRange]) -> str:
    return f"[{', '.join(map(str, box))}]"


IN_ORDER = (LoopKind.SERIAL, LoopKind.UNROLLED)
"""The kinds of loops whose iterations run one after the other."""


def move_in_any_order(
    self: ScheduleState, block: Block, loop: Loop, move: Callable[..., None], *, may_refuse_late: bool = False
) -> None:
    """Runs `move` of a block into a loop; refuses where iterations that run in any order would share what it touches.

    This is seen on a copy of the function, after the move: it may make a buffer local to an iteration. There, too, a
    move may refuse that has begun.
    """
    loops = [self.loop(op) for op in loops_without(block.op, loop.op) if op.kind.data not in IN_ORDER]
    if loops or may_refuse_late:
        self.as_refusal(lambda: _try(self.copy(), block, loop, loops, move))
    move(self, block, loop)


def _try(twin: ScheduleState, block: Block, loop: Loop, loops: list[Loop], move: Callable[..., None]) -> None:
    def moved(self: ScheduleState, block: Block, loop: Loop, loops: list[Loop]) -> None:
        move(self, block, loop)
        self.changed()
        for each in loops:
            check_parallel(self, each.op, touched_buffers(block.op))

    twin.run(moved, (block, loop, loops), {})


@dataclass(frozen=True)
class ElementBlock:
    """A block that computes pure values from loads and stores the last one with its only `tir.store`."""

    op: BlockOp
    store: StoreOp

    @property
    def loads(self) -> list[LoadOp]:
        """The loads, in order."""
        return [op for op in self.op.body.walk() if isinstance(op, LoadOp)]


def element_block(self: ScheduleState, block: BlockOp, *, conditional: bool = False) -> ElementBlock:
    """The block as one that stores one element; refuses any other, and one with a condition unless `conditional`."""
    name = block.block_name.data
    for iterator in block.iterators:
        if iterator.kind is not IteratorKind.SPATIAL:
            raise self.error(
                f'block "{name}" has the {iterator.kind.value} iterator "{iterator.value.name_hint}", '
                "expected spatial iterators only"
            )
    if block.condition is not None and not conditional:
        raise self.error(f'block "{name}" has a condition, expected one that runs for all iterations')
    last = block.body.block.last_op
    others = [op for op in block.body.block.ops if op is not last]
    bad = next((op for op in others if not _is_value(op)), None)
    if bad is not None or not isinstance(last, StoreOp) or last.lanes is not None:
        found = bad or last
        what = "nothing" if found is None else f"'{found.name}'"
        raise self.error(f'block "{name}" contains {what}, expected values and one scalar store at the end')
    return ElementBlock(block, last)


def _is_value(op: Operation) -> bool:
    """Whether an op, and all inside of it, computes values from loads."""
    if isinstance(op, IfOp):
        return bool(op.outputs) and all(_is_value(i) for region in op.regions for i in region.block.ops)
    return isinstance(op, LoadOp | YieldOp) or is_index_op(op)


def own_allocation(self: ScheduleState, buffer: SSAValue) -> AllocBufferOp:
    """The allocation of a buffer; refuses a parameter and a view."""
    if not isinstance(buffer.owner, AllocBufferOp):
        raise self.error(f'buffer "{buffer.name_hint}" is a parameter or a view, expected an allocated buffer')
    return buffer.owner


def iterators_of_indices(
    block: BlockOp, indices: Sequence[SSAValue], *, complete: bool = True
) -> list[int | None] | None:
    """Per index the number of the iterator that it is, or `None` for the constant 0.

    `None` for all if some index is something else, or an iterator comes twice, or, unless `complete` is false, a
    spatial one of more than one value is missing.
    """
    space = IndexSpace(block)
    symbols = [space.variable(value).dim for value in block.body.block.args]
    positions: list[int | None] = []
    for index in indices:
        dim = space.dim_of(index)
        if dim in symbols:
            positions.append(symbols.index(dim))
        elif dim is not None and dim.constant_value == 0:
            positions.append(None)
        else:
            return None
    known = [position for position in positions if position is not None]
    spatial = [number for number, it in enumerate(block.iterators) if it.kind is IteratorKind.SPATIAL]
    missing = [space.dim_of(block.extents[number]) for number in spatial if number not in known] if complete else []
    units = all(extent is not None and extent.constant_value == 1 for extent in missing)
    return positions if units and len(set(known)) == len(known) else None


def check_moved_up(self: ScheduleState, consumer: ElementBlock, producer: BlockOp, between: SSAValue) -> None:
    """Refuses if what the consumer reads or writes is touched between the producer and the consumer."""
    inputs = read_buffers(consumer.op) - {between}
    name = consumer.op.block_name.data
    writer = runs_between(self, producer, [consumer.op], inputs, writes_only=True)
    writer = writer or next((op for op in producer.body.walk() if touches(op, inputs, writes_only=True)), None)
    if writer is not None:
        raise self.error(f'{describe(writer)} writes an input of block "{name}" after the producer')
    output = written_buffers(consumer.op)
    user = runs_between(self, producer, [consumer.op], output, writes_only=False)
    if user is not None or not touched_buffers(producer).isdisjoint(output):
        raise self.error(f'the output of block "{name}" is used before it')


def check_plain_uses(self: ScheduleState, block: BlockOp, buffer: SSAValue, *, calls: bool = False) -> None:
    """Refuses a block that uses the memory of a buffer otherwise than by loads and stores, which regions may sum up.

    Loads and stores of a view of it are no such uses.

    With `calls`, a buffer without gaps may be passed to foreign functions.
    """
    if (op := other_use(block, buffer, calls=calls)) is not None:
        what = "through a view" if buffer not in op.operands else f"in '{op.name}'"
        raise self.error(
            f'block "{block.block_name.data}" uses buffer "{buffer.name_hint}" {what}, expected loads and stores only'
        )


def other_use(block: BlockOp, buffer: SSAValue, *, calls: bool = False) -> Operation | None:
    """An op in a block that uses the memory of a buffer otherwise than `check_plain_uses` allows."""
    plain: tuple[type[Operation], ...] = (LoadOp, StoreOp, ReadsOp, WritesOp)
    if calls and isinstance(buffer.type, BufferType) and buffer.type.is_compact:
        plain = (*plain, ForeignCallOp)
    memory = root_buffer(buffer)
    for op in block.body.walk():
        used = [operand for operand in op.operands if root_buffer(operand) is memory]
        if used and (any(operand is not buffer for operand in used) or not isinstance(op, plain)):
            return op
    return None


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

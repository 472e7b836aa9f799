"""Whether a block may move into other loops: what runs in between, for which values, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.dependence import Axis
from tir_dialect.analysis.regions import AxisRange, touched_buffers
from tir_dialect.analysis.structure import ancestors, enclosing_block, root_buffer
from tir_dialect.ops.blocks import BlockOp, ReadsOp, WritesOp
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.schedule.handles import Block, Loop, is_inside
from tir_dialect.schedule.legality.accesses import Access, box_in
from tir_dialect.schedule.legality.independence import check_parallel
from tir_dialect.schedule.legality.instances import Instances, check_in_order, common_loop, is_dense
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure import iterator_extent, loops_without
from tir_dialect.types import BufferType, LoopKind


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

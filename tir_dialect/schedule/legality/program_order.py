"""What is executed between two ops, on which the legality of moving a computation depends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.structure import ancestors, enclosing_block, root_buffer
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.ops.regions import ReadsOp, WritesOp
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.types import BufferType


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

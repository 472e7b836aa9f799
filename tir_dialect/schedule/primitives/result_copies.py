"""Removing the copy of a reduction's result: the reduction works in the destination of the copy."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.structure import ancestors, enclosing_block, root_buffer
from tir_dialect.dims import constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.legality.elementwise import ElementBlock, check_moved_up, iterators_of_indices
from tir_dialect.schedule.legality.motion import describe, kind_of, touches
from tir_dialect.schedule.rewriting.materialize import header_value
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure import iterator_extent, shape_of


def is_plain_copy(consumer: ElementBlock, loads: Sequence[LoadOp]) -> bool:
    """Whether a block stores what it loads, each at its iterators."""
    if len(loads) != 1 or consumer.store.value is not loads[0].result:
        return False
    indices = (loads[0].indices, consumer.store.indices)
    return all(iterators_of_indices(consumer.op, each) is not None for each in indices)


def work_in_copy(self: ScheduleState, consumer: ElementBlock, load: LoadOp) -> None:
    """Lets those that use a buffer, but for the block that copies it, use the copy.

    Refuses a copy of a part, and a copy that others write while the buffer is in use.
    """
    buffer, copy = load.buffer, consumer.store.buffer
    order = _order_of_indices(self, consumer, load)
    uses = [use.operation for use in buffer.uses if use.operation is not load]
    producers = {op: _scalar_access(self, op, buffer) for op in uses}
    for producer in dict.fromkeys(producers.values()):
        check_moved_up(self, consumer, producer, buffer)
        _check_not_overwritten(self, producer, consumer.op, copy)
    zero = header_value(self.func, constant(0)) if None in order else None
    for op in uses:
        if isinstance(op, LoadOp | StoreOp):
            old = list(op.indices)
            indices = [zero if position is None else old[position] for position in order]
            _use_copy(op, copy, [index for index in indices if index is not None])


def _order_of_indices(self: ScheduleState, consumer: ElementBlock, load: LoadOp) -> list[int | None]:
    """For each dimension of the copy that of the buffer which has the same index, `None` for the index 0."""
    block = consumer.op
    there = iterators_of_indices(block, load.indices) or []
    back = iterators_of_indices(block, consumer.store.indices) or []
    for position, extent in zip(there, shape_of(load.buffer), strict=True):
        covered = constant(1) if position is None else iterator_extent(self, block, position)
        if self.space.prover.equal(covered, extent) is not True:
            name, hint = block.block_name.data, load.buffer.name_hint
            raise self.error(f'block "{name}" copies {covered} of {extent} elements of buffer "{hint}"')
    return [there.index(position) if position in there else None for position in back]


def _scalar_access(self: ScheduleState, op: Operation, buffer: SSAValue) -> BlockOp:
    """The block of a scalar load or store; refuses other uses of the buffer."""
    block = enclosing_block(op)
    if not isinstance(op, LoadOp | StoreOp) or op.lanes is not None or block is None:
        raise self.error(
            f'buffer "{buffer.name_hint}" is used by {kind_of(op)} in {describe(op)}, expected loads and stores of '
            "single elements"
        )
    return block


def _check_not_overwritten(self: ScheduleState, producer: BlockOp, consumer: BlockOp, copy: SSAValue) -> None:
    """Refuses others that write the copy in a loop of the producer: it goes on with what it finds there."""
    loop = next((op for op in reversed([*ancestors(producer)]) if isinstance(op, ForOp)), producer)
    for op in loop.walk():
        if touches(op, {root_buffer(copy)}, writes_only=True) and not is_inside(op, consumer):
            raise self.error(f'{describe(op)} writes buffer "{copy.name_hint}" in the loops of the reduction')


def _use_copy(op: LoadOp | StoreOp, copy: SSAValue, indices: Sequence[SSAValue]) -> None:
    point = InsertPoint.before(op)
    if isinstance(op, StoreOp):
        Rewriter.insert_op(StoreOp(op.value, copy, indices), point)
    else:
        load = LoadOp(copy, indices)
        load.result.name_hint = op.result.name_hint
        Rewriter.insert_op(load, point)
        op.result.replace_all_uses_with(load.result)
    Rewriter.erase_op(op)

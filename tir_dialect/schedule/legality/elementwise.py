"""Blocks that compute one element per instance, which can be inlined, and buffers that are only loaded and stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import read_buffers, touched_buffers, written_buffers
from tir_dialect.analysis.structure import root_buffer
from tir_dialect.ops.blocks import BlockOp, ReadsOp, WritesOp
from tir_dialect.ops.calls import ForeignCallOp
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.edits import is_index_op
from tir_dialect.schedule.legality.motion import describe, runs_between, touches
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.types import BufferType, IteratorKind


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

"""Which blocks after the loops in which a buffer is copied may read the copy."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.determination import Axis
from tir_dialect.analysis.regions import AxisRange
from tir_dialect.analysis.structure import ancestors
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.legality.accesses import Access, accesses_in
from tir_dialect.schedule.legality.boxes import box_in, contains
from tir_dialect.schedule.legality.conflicts import conflicting_buffers
from tir_dialect.schedule.legality.instances import is_dense
from tir_dialect.schedule.legality.program_order import describe, touches
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure.extents import shape_of


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

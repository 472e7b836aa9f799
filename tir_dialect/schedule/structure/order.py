"""Loops that hold a block or not, and the order of ops in the text."""

from __future__ import annotations

from xdsl.ir import Operation

from tir_dialect.analysis.structure import ancestors
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.state import ScheduleState


def loops_without(block: BlockOp, loop: ForOp) -> list[ForOp]:
    """`loop` and the loops around it that do not hold the block, outermost first."""
    found = [loop]
    for op in ancestors(loop):
        if is_inside(block, op):
            break
        if isinstance(op, ForOp):
            found.insert(0, op)
    return found


def comes_before(self: ScheduleState, first: Operation, second: Operation) -> bool:
    """Whether `first` starts before `second` in the text."""
    return next(op for op in self.func.walk() if op is first or op is second) is first

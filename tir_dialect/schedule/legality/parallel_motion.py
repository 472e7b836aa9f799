"""Moving a block into loops whose iterations run in any order."""

from __future__ import annotations

from collections.abc import Callable

from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.handles import Block, Loop
from tir_dialect.schedule.legality.accesses import touched_buffers
from tir_dialect.schedule.legality.independence import check_parallel
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure.order import loops_without
from tir_dialect.types import LoopKind

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
            _check(self, each.op, block)

    twin.run(moved, (block, loop, loops), {})


def _check(self: ScheduleState, loop: ForOp, block: Block) -> None:
    check_parallel(self, loop, touched_buffers(block.op))

"""Memory of one iteration of a loop that becomes memory of all of them."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.structure import ancestors
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.elementwise import own_allocation
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.types import LoopKind


def check_sequential(self: ScheduleState, loop: ForOp, buffer: SSAValue) -> None:
    """Refuses a buffer allocated in a loop of which iterations, or those of loops between, may run at the same time."""
    for op in ancestors(own_allocation(self, buffer)):
        if isinstance(op, ForOp) and op.kind.data not in (LoopKind.SERIAL, LoopKind.UNROLLED):
            raise self.error(
                f'buffer "{buffer.name_hint}" is allocated in {op.kind.data.value} loop "{op.induction_var.name_hint}"'
            )
        if op is loop:
            break


def hoist_allocation(buffer: SSAValue, loop: ForOp) -> None:
    """Moves the allocation of a buffer in front of a loop."""
    if isinstance(buffer.owner, Operation):
        buffer.owner.detach()
        Rewriter.insert_op(buffer.owner, InsertPoint.before(loop))

"""Hoisting of allocations out of loops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.structure import ancestors
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule.legality.elementwise import own_allocation
from tir_dialect.schedule.legality.program_order import describe
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure.statements import ancestor_in
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


def earlier_user(self: ScheduleState, buffer: SSAValue, users: Sequence[Operation]) -> Operation | None:
    """The op before which a buffer has to be allocated for its new users, `None` if nothing has to change.

    Refuses users that stand in other loops than the allocation.
    """
    allocation = buffer.owner
    if not isinstance(allocation, AllocBufferOp) or (body := allocation.parent) is None:
        return None
    first: Operation = allocation
    for user in users:
        top = ancestor_in(body, user)
        if top is None:
            raise self.error(f'{describe(user)} cannot use buffer "{buffer.name_hint}", which is allocated in a loop')
        first = min(first, top, key=body.get_operation_index)
    return None if first is allocation else first


def hoist_allocation(buffer: SSAValue, position: Operation) -> None:
    """Moves the allocation of a buffer before an op."""
    if isinstance(buffer.owner, Operation):
        buffer.owner.detach()
        Rewriter.insert_op(buffer.owner, InsertPoint.before(position))

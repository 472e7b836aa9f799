"""The common parts of `compute_at` and `reverse_compute_at`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint

from tir_dialect.analysis.structure import ancestors
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.legality.accesses import read_buffers, written_buffers
from tir_dialect.schedule.rewriting.renest import check_no_branch, check_plain_conditions
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure.statements import statements
from tir_dialect.types import IteratorKind


def check_movable(self: ScheduleState, block: BlockOp, loop: ForOp) -> None:
    """ScheduleError for blocks that cannot be moved, and loops that no block can be moved into."""
    name, target = block.block_name.data, loop.induction_var.name_hint
    if is_inside(block, loop):
        raise self.error(f'block "{name}" is already inside of loop "{target}"')
    for iterator in block.iterators:
        if iterator.kind not in (IteratorKind.SPATIAL, IteratorKind.REDUCE):
            raise self.error(
                f'block "{name}" has an iterator of kind {iterator.kind.value}, expected spatial and reduce ones only'
            )
    if block.init is None and not read_buffers(block).isdisjoint(written_buffers(block)):
        raise self.error(f'block "{name}" updates what it reads, so it may not run more often')
    for op in ancestors(loop):
        if is_inside(block, op):
            break
        if isinstance(op, IfOp | BlockOp):
            raise self.error(f'loop "{target}" stands in a \'{op.name}\' without block "{name}"')
    check_no_branch(self, block)
    check_plain_conditions(self, block)


def insert_point_in(
    self: ScheduleState, loop: ForOp, index: int, *, after: Sequence[Operation] = (), before: Sequence[Operation] = ()
) -> InsertPoint:
    """The position for a block in a loop: the last one that there is for -1, the first one for -2, or after `index`
    ops.

    It is after the ops that hold `after`, and before those that hold `before`; refuses another `index`.
    """
    ops = [op for op in statements(loop.body.block) if not isinstance(op, AllocBufferOp)]
    first = max((number + 1 for number, op in enumerate(ops) if _holds_any(op, after)), default=0)
    last = min((number for number, op in enumerate(ops) if _holds_any(op, before)), default=len(ops))
    number = {-1: last, -2: first}.get(index, index)
    if not first <= number <= last:
        name = loop.induction_var.name_hint
        raise self.error(f'expected an index of {first} to {last}, or -1 or -2, in loop "{name}", got {index}')
    return InsertPoint.at_end(loop.body.block) if number == len(ops) else InsertPoint.before(ops[number])


def _holds_any(op: Operation, others: Sequence[Operation]) -> bool:
    return any(is_inside(other, op) for other in others)

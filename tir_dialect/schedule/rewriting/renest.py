"""Moving a block to another position, with new loops around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.regions import AxisRange
from tir_dialect.analysis.structure import ancestors
from tir_dialect.dims import constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.rewriting.edits import erase_idle, rebuild_block
from tir_dialect.schedule.rewriting.materialize import Materializer
from tir_dialect.schedule.rewriting.normalize import emit_conditions
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.statements import users_of
from tir_dialect.schedule.structure import Less, conditions_of
from tir_dialect.types import IteratorKind


def check_plain_conditions(self: ScheduleState, block: BlockOp) -> None:
    """Refuses a block with a condition other than that its iterators stay below their extents."""
    bounds = [
        Less(binding, extent)
        for it in block.iterators
        if (binding := self.space.dim_of(it.binding)) is not None
        and (extent := self.space.dim_of(it.extent)) is not None
    ]
    if any(condition not in bounds for condition in conditions_of(self.space, block)):
        raise self.error(f'block "{block.block_name.data}" has a condition that is not about the ends of its iterators')


def check_no_branch(self: ScheduleState, block: BlockOp) -> None:
    """Refuses a block in a branch: it would lose the condition."""
    parent = block.parent_op()
    while isinstance(parent, ForOp | IfOp):
        if isinstance(parent, IfOp):
            raise self.error(f"block \"{block.block_name.data}\" stands in a 'tir.if'")
        parent = parent.parent_op()


def move_with_new_loops(
    self: ScheduleState,
    block: BlockOp,
    ranges: Sequence[AxisRange],
    point: InsertPoint,
    *,
    preserve_unit_loops: bool = False,
) -> list[ForOp]:
    """Moves a block to `point` with a loop for each range of an iterator, and removes its old loops.

    Ranges of one value get no loop, unless those are to be preserved. Iterators that the ranges let leave their domains
    get a condition.
    """
    emitter = Materializer(self.func, self.space, point)
    loops = [
        None
        if axis.extent.constant_value == 1 and not preserve_unit_loops
        else ForOp(emitter.emit(axis.extent), name_hint=_hint(value))
        for axis, value in zip(ranges, block.body.block.args, strict=True)
    ]
    built = [loop for loop in loops if loop is not None]
    anchor: Operation = block
    parent = block.parent_op()
    _detach(block)
    for loop in reversed(built):
        loop.location = block.location
        loop.body.block.add_op(anchor)
        anchor = loop
    Rewriter.insert_op(anchor, point)
    erase_idle(parent)
    _bind(self, block, ranges, loops)
    return built


def _detach(block: BlockOp) -> None:
    # the old bindings go with the old loops
    rebuild_block(block, [(it.kind, it.extent, it.extent) for it in block.iterators], None)
    block.detach()


def _bind(self: ScheduleState, block: BlockOp, ranges: Sequence[AxisRange], loops: Sequence[ForOp | None]) -> None:
    lowers = self.carry([axis.lower for axis in ranges])
    emitter = Materializer(self.func, self.space, InsertPoint.before(block))
    iterators: list[tuple[IteratorKind, SSAValue, SSAValue]] = []
    conditions: list[Less | SSAValue] = []
    for iterator, lower, loop in zip(block.iterators, lowers, loops, strict=True):
        binding = lower if loop is None else lower + self.symbol(loop)
        extent = self.space.dim_of(iterator.extent)
        limit = iterator.extent if extent is None else emitter.emit(extent)
        iterators.append((iterator.kind, emitter.emit(binding), limit))
        if self.space.less_equal(0, binding) is not True:
            conditions.append(Less(constant(-1), binding))
        if extent is not None and self.space.prover.less(binding, extent) is not True:
            conditions.append(Less(binding, extent))
    rebuild_block(block, iterators, emit_conditions(emitter, conditions))


def _hint(value: SSAValue) -> str:
    """A name for the loop of an iterator: `i` for `vi`."""
    name = value.name_hint or "i"
    return name[1:] if name.startswith("v") and name[1:].isidentifier() else name


def sink_allocations(buffers: Iterable[SSAValue], loop: ForOp, may: Callable[[SSAValue, ForOp], bool]) -> None:
    """Moves allocations among buffers into `loop`, or loops around it, as far as all uses are there and it `may`."""
    around = [loop, *ancestors(loop)]
    for buffer in buffers:
        allocation, users = buffer.owner, users_of(buffer)
        if not isinstance(allocation, AllocBufferOp) or (home := allocation.parent_op()) not in around:
            continue
        position = None
        for op in reversed(around[: around.index(home or loop)]):
            held = isinstance(op, ForOp) and all(is_inside(user, op) for user in users)
            if not isinstance(op, ForOp) or not held or not may(buffer, op):
                break
            position = op
        if position is not None:
            allocation.detach()
            Rewriter.insert_op(allocation, InsertPoint.at_start(position.body.block))

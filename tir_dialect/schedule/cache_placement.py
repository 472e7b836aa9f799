"""The placement of cache copies, and its legality."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.dependence import Dependence, is_loop_variable
from tir_dialect.analysis.init import init_placement
from tir_dialect.analysis.regions import read_buffers
from tir_dialect.analysis.structure import ancestors, is_defined_inside
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.schedule.edits import nest_of, scope_of
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.legality.instances import Instances
from tir_dialect.schedule.legality.motion import describe, is_in_any, touches
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.types import IteratorKind


def unwritten_insert_point(self: ScheduleState, readers: Sequence[BlockOp], buffer: SSAValue) -> Operation:
    """The first op of those that hold the readers, as far outside as nobody writes the buffer in them."""
    position, writer = _unwritten(readers, buffer)
    if position is None:
        by = "another block" if writer is None else describe(writer)
        name = readers[0].block_name.data
        raise self.error(f'{by} writes buffer "{buffer.name_hint}" in the loops of block "{name}"')
    return position


def side_by_side(self: ScheduleState, readers: Sequence[BlockOp], buffer: SSAValue) -> list[BlockOp]:
    """The first reader, and as many after it as one copy before all of them can serve."""
    ordered = [op for op in self.func.walk() if isinstance(op, BlockOp) and op in readers]
    served = (ordered[:count] for count in range(len(ordered), 1, -1))
    return next((run for run in served if _unwritten(run, buffer)[0] is not None), ordered[:1])


def _unwritten(readers: Sequence[BlockOp], buffer: SSAValue) -> tuple[Operation | None, Operation | None]:
    """The position, or `None` and what writes the buffer in the innermost position around all of the readers."""
    writer = None
    # The ops around the readers, outermost first: level by level one of each.
    for tops in [list(level) for level in zip(*(_path(reader, buffer) for reader in readers), strict=False)]:
        body, first = tops[0].parent, tops[0]
        if body is None or any(top.parent is not body for top in tops):
            continue
        order = sorted(tops, key=body.get_operation_index)
        first, last = order[0], body.get_operation_index(order[-1])
        between = [op for op in body.ops if body.get_operation_index(first) <= body.get_operation_index(op) <= last]
        writer = next((op for top in between if (op := _writer_in(top, buffer)) is not None), None)
        if writer is None:
            return first, None
    return None, writer


def readers_beside(block: BlockOp, buffer: SSAValue) -> list[BlockOp]:
    """A block that reads a buffer, and those beside it that read what it reads, in program order.

    These stand around it, as far outside as nobody writes the buffer, up to the writers before and after.
    """
    for op in _path(block, buffer):
        body = op.parent
        if body is None or _writer_in(op, buffer) is not None:
            continue
        run: list[Operation] = []
        for other in body.ops:
            if _writer_in(other, buffer) is None:
                run.append(other)
            elif op in run:
                break
            else:
                run.clear()
        scope = scope_of(block)
        inner = (each for other in run for each in other.walk() if isinstance(each, BlockOp))
        return [each for each in inner if scope_of(each) is scope and buffer in read_buffers(each)]
    return [block]


def _writer_in(op: Operation, buffer: SSAValue) -> Operation | None:
    return next((inner for inner in op.walk() if touches(inner, {buffer}, writes_only=True)), None)


def unshared_insert_point(block: BlockOp, buffer: SSAValue, besides: Sequence[BlockOp] = ()) -> Operation:
    """The outermost op around a block in which nobody else uses the buffer, except some blocks."""
    for op in _path(block, buffer):
        users = (inner for inner in op.walk() if touches(inner, {buffer}, writes_only=False))
        if all(is_in_any(user, (block, *besides)) for user in users):
            return op
    return block


def _path(block: BlockOp, buffer: SSAValue) -> list[Operation]:
    """The ops in the scope of a block that hold it but not the buffer, outermost first, and the block."""
    nest = nest_of(block)
    around = [op for op in reversed([block, *ancestors(block)]) if is_inside(op, nest)]
    return [op for op in around if not is_defined_inside(buffer, op)]


def loop_around(op: Operation) -> ForOp | None:
    """The innermost loop around an op that is in the same block or function; `None` if there is none."""
    scope = scope_of(op)
    return next((outer for outer in ancestors(op) if isinstance(outer, ForOp) and is_inside(outer, scope)), None)


def check_complete(self: ScheduleState, block: BlockOp, buffer: SSAValue, position: Operation) -> None:
    """Refuses a block that goes on with values from outside of `position`."""
    name, hint = block.block_name.data, buffer.name_hint
    dependence = Dependence(is_loop_variable)
    inside = {op.induction_var for op in position.walk() if isinstance(op, ForOp)}
    for iterator in block.iterators:
        if iterator.kind is not IteratorKind.SPATIAL and dependence.of(iterator.binding) - inside:
            raise self.error(f'others read buffer "{hint}" in the loops over which block "{name}" reduces')
    for op in block.walk():
        if isinstance(op, LoadOp) and op.buffer is buffer and _is_update(self, op, block):
            raise self.error(f'block "{name}" updates buffer "{hint}" without an init')


def _is_update(self: ScheduleState, load: LoadOp, block: BlockOp) -> bool:
    """Whether the load is in a block that stores to the buffer, too, and no init around it has stored before."""
    around = [op for op in ancestors(load) if isinstance(op, BlockOp) and is_inside(op, block)]
    inits = (op.init for op in around if op.init is not None and _is_started(self, op, load))
    if any(touches(op, {load.buffer}, writes_only=True) for init in inits for op in init.walk()):
        return False
    return any(touches(op, {load.buffer}, writes_only=True) for op in around[0].walk())


def _is_started(self: ScheduleState, block: BlockOp, load: LoadOp) -> bool:
    """Whether the init of a block has an instance for what it loads: not where loops leave out the start of a range."""
    instances = Instances(self, block)
    values = {block.body.block.args[number] for number in instances.reduced}
    if Dependence(values.__contains__, through_bindings=False).of_all(load.indices):
        return False
    return init_placement(block) is not None or instances.reach_all(instances.reduced)

"""Legality of reordering and parallelising loops."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.dependence import Dependence, is_loop_variable
from tir_dialect.analysis.determination import Axis, determine
from tir_dialect.analysis.structure import child_blocks
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.legality.accesses import described, touched_buffers
from tir_dialect.schedule.legality.conflicts import conflicting_buffers, loop_names
from tir_dialect.schedule.legality.distances import check_apart, check_order
from tir_dialect.schedule.legality.instances import Instances, check_in_order
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.statements import is_index_op
from tir_dialect.types import IteratorKind


def check_parallel(self: ScheduleState, loop: ForOp, buffers: AbstractSet[SSAValue] | None = None) -> None:
    """ScheduleError if the iterations of a loop may not run in parallel: for all buffers, or for some."""
    name = loop.induction_var.name_hint
    for buffer in conflicting_buffers(self.space, loop):
        if buffers is not None and buffer not in buffers:
            continue
        users = _blocks_touching(loop, buffer)
        if len(users) != 1 or not _declared_independent(self, loop, users[0]):
            raise self.error(
                f'the iterations of loop "{name}" are not independent: they share elements of {described(buffer)}'
            )
        check_apart(self, loop, users[0])


def check_reorderable(self: ScheduleState, loops: Sequence[ForOp], order: Sequence[ForOp] = ()) -> None:
    """ScheduleError if the iterations of a perfect nest, outermost loop first, may not be reordered.

    They get into any order then, unless `order` gives the loops in one.
    """
    inner = loops[-1]
    bare = bare_statements(inner)
    if bare:
        raise self.error(f"the loops hold '{bare[0].name}' outside of a block, expected blocks only")
    blocks = child_blocks(inner)
    for block in blocks:
        _check_iterators(self, block, loops)
        _check_reduction(self, block, loops, order)
        check_order(self, block, loops, order)
    if len(blocks) == 1:
        return
    for loop in loops:
        for buffer in conflicting_buffers(self.space, loop):
            users = [block for block in blocks if buffer in touched_buffers(block)]
            if len(users) > 1:
                names = " and ".join(f'"{block.block_name.data}"' for block in users)
                raise self.error(
                    f"blocks {names} share elements of {described(buffer)} across iterations of loop "
                    f'"{loop.induction_var.name_hint}"'
                )


def bare_statements(loop: Operation) -> list[Operation]:
    """The statements in a loop, and in loops inside it, that are in no block."""
    found: list[Operation] = []
    for op in loop.regions[0].block.ops:
        if isinstance(op, ForOp):
            found += bare_statements(op)
        elif not isinstance(op, BlockOp) and not is_index_op(op):
            found.append(op)
    return found


def _check_iterators(self: ScheduleState, block: BlockOp, loops: Sequence[ForOp]) -> None:
    dependence = Dependence(is_loop_variable)
    variables = {loop.induction_var for loop in loops}
    kinds: dict[SSAValue, set[IteratorKind]] = {}
    for iterator in block.iterators:
        for variable in dependence.of(iterator.binding) & variables:
            kinds.setdefault(variable, set()).add(iterator.kind)
    for variable, found in kinds.items():
        ordered = found - {IteratorKind.SPATIAL, IteratorKind.REDUCE}
        if ordered:
            raise self.error(
                f'loop "{variable.name_hint}" drives an iterator of kind {min(ordered).value} of block '
                f'"{block.block_name.data}", expected spatial and reduce ones only'
            )
        if len(found) > 1 and block.init is not None:
            raise self.error(
                f'loop "{variable.name_hint}" drives both spatial and reduce iterators of block '
                f'"{block.block_name.data}", so its init could come too late'
            )


def _check_reduction(self: ScheduleState, block: BlockOp, loops: Sequence[ForOp], order: Sequence[ForOp]) -> None:
    """Refuses to change the order of instances that go to one element where that matters."""
    if block.init is None:
        return
    instances = Instances(self, block)
    apart = {op for op in loops if op not in instances.idle(instances.spatial)}
    before, after = ([op for op in some if op not in apart] for some in (loops, order))
    if before != after:
        check_in_order(self, instances, loops)


def _blocks_touching(loop: ForOp, buffer: SSAValue) -> list[BlockOp]:
    if any(buffer in touched_buffers(op) for op in bare_statements(loop)):
        return []
    return [block for block in child_blocks(loop) if buffer in touched_buffers(block)]


def _declared_independent(self: ScheduleState, loop: ForOp, block: BlockOp) -> bool:
    """Whether instances of a block in different iterations differ in a spatial iterator: they are independent then."""
    bindings = [self.space.dim_of(it.binding) for it in block.iterators if it.kind is IteratorKind.SPATIAL]
    names = loop_names(self.space, loop)
    return determine(self.space, [(Axis(binding),) for binding in bindings], self.symbol(loop), names)

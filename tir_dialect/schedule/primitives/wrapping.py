"""Turning several consecutive loop nests into one block."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.ir import Block as IRBlock
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dependence import Dependence
from tir_dialect.analysis.structure import child_blocks, enclosing_loops
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.statements import common_insert_point, is_index_op, unique_block_name
from tir_dialect.types import IteratorKind


def wrap(self: ScheduleState, blocks: Sequence[BlockOp]) -> BlockOp:
    """A new block with the loops of some blocks, and what stands between them.

    It has an iterator for each loop around that is used inside: a spatial one if all blocks inside say so, else an
    opaque one. Refuses no blocks, some in an init and some after it, those around which something has to be computed
    from memory, values of theirs that are used outside, and an init before a loop that may have no iteration.
    """
    if not blocks:
        raise self.error("expected a loop or at least one block, got none")
    run = _run(self, blocks)
    loops = enclosing_loops(run[0])
    check_inits(self, run, loops)
    leaving = _leaving(self, run)
    run = [op for op in run if op not in leaving]
    # In the order of the text, as operands that are set anew change the order of uses, and with it that of later steps.
    inside = dict.fromkeys(inner for op in run for inner in op.walk())
    used = dict.fromkeys(v for op in run for inner in op.walk() for v in inner.operands if not _is_of(v, inside))
    dependence = Dependence(lambda argument: any(argument is loop.induction_var for loop in loops))
    moving = [value for value in used if dependence.of(value)]
    around = [loop for loop in loops if loop.induction_var in dependence.of_all(moving)]
    outer = _outer_block(self, blocks, around, run)
    values: dict[SSAValue, SSAValue] = {
        loop.induction_var: value for loop, value in zip(around, outer.body.block.args, strict=True)
    }
    copies = {value: _copy(self, value, values, outer.body.block, dependence) for value in moving}
    for op in leaving:
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(next(each for each in run if each.regions)))
    Rewriter.insert_op(outer, InsertPoint.before(run[0]))
    for op in run:
        op.detach()
        outer.body.block.add_op(op)
    for op in inside:
        op.operands = [copies.get(operand, operand) for operand in op.operands]
    return outer


def _run(self: ScheduleState, blocks: Sequence[BlockOp]) -> list[Operation]:
    """The ops from the first to the last of those that hold the blocks, in the innermost position that holds
    them all.
    """
    position, tops = common_insert_point(blocks)
    order = sorted(map(position.get_operation_index, tops))
    run = list(position.ops)[order[0] : order[-1] + 1]
    if isinstance(run[0], InitOp):
        raise self.error("expected blocks that are all in the init of a block, or all behind it")
    return run


def check_inits(self: ScheduleState, run: Sequence[Operation], loops: Sequence[ForOp]) -> None:
    """Refuses a reduction over a loop that may have no iteration, if its init would not run then any more."""
    for block in (op for top in run for op in top.walk() if isinstance(op, BlockOp) and op.init is not None):
        reduced = [it.binding for it in block.iterators if it.kind.is_reduced]
        for loop in loops:
            drives = Dependence(lambda argument, loop=loop: argument is loop.induction_var)
            if drives.of_all(reduced) and self.space.less_equal(1, self.extent(loop)) is not True:
                hint = loop.induction_var.name_hint
                raise self.error(
                    f'block "{block.block_name.data}" has an init and is reduced over loop "{hint}", which may have no '
                    "iteration; use decompose_reduction before, or blockize the loop"
                )


def _is_of(value: SSAValue, ops: Collection[Operation]) -> bool:
    owner = value.owner
    return (owner.parent_op() if isinstance(owner, IRBlock) else owner) in ops


def _leaving(self: ScheduleState, run: Sequence[Operation]) -> list[Operation]:
    """Computations of indices, and memory, that somebody after the last op uses: they move before the first."""
    leaving: list[Operation] = []
    for op in run:
        users = [use.operation for result in op.results for use in result.uses]
        if all(any(is_inside(user, each) for each in run if each not in leaving) for user in users):
            continue
        own = any(operand.owner in run and operand.owner not in leaving for operand in op.operands)
        if own or not (is_index_op(op) or isinstance(op, AllocBufferOp)):
            raise self.error(f"a value of '{op.name}' between the blocks is used outside of them")
        leaving.append(op)
    return leaving


def _outer_block(
    self: ScheduleState, blocks: Sequence[BlockOp], loops: Sequence[ForOp], run: Sequence[Operation]
) -> BlockOp:
    children = [block for op in run for block in ([op] if isinstance(op, BlockOp) else child_blocks(op))]
    iterators = [(_kind(loop, children), loop.induction_var, loop.upper) for loop in loops]
    name = unique_block_name(self.func, f"outer_{''.join(f'{block.block_name.data}_' for block in blocks)}")
    outer = BlockOp(name, iterators, name_hints=[f"v{loop.induction_var.name_hint or ''}" for loop in loops])
    outer.location = blocks[0].location
    return outer


def _kind(loop: ForOp, blocks: Sequence[BlockOp]) -> IteratorKind:
    dependence = Dependence(lambda argument: argument is loop.induction_var)
    kinds = {
        frozenset(iterator.kind for iterator in block.iterators if dependence.of(iterator.binding)) for block in blocks
    }
    return IteratorKind.SPATIAL if kinds == {frozenset((IteratorKind.SPATIAL,))} else IteratorKind.OPAQUE


def _copy(
    self: ScheduleState, value: SSAValue, values: dict[SSAValue, SSAValue], body: IRBlock, dependence: Dependence
) -> SSAValue:
    """A value that depends on loops, computed from the iterators for these."""
    if value in values or not dependence.of(value):
        return values.get(value, value)
    op = value.owner
    if isinstance(value, BlockArgument) or not isinstance(op, Operation) or not is_index_op(op):
        kind = op.name if isinstance(op, Operation) else "an argument"
        raise self.error(f"the blocks use what '{kind}' gives in the loops around them, expected indices only")
    for operand in op.operands:
        _copy(self, operand, values, body, dependence)
    body.add_op(op.clone(values))
    return values[value]

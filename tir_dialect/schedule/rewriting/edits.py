"""Small edits that the primitives share. They keep locations and name hints."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, i32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl import AttrSizedOperandSegments
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.new_ops import erase_dead
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.statements import common_insert_point, is_index_op, statements
from tir_dialect.types import IteratorKind, IteratorKindAttr


def before_all(ops: Sequence[Operation]) -> InsertPoint:
    """The innermost position that dominates all of the ops, at least one."""
    block, tops = common_insert_point(ops)
    return InsertPoint.before(min(tops, key=block.get_operation_index))


def erase_nest(op: Operation) -> None:
    """Erases an op and the loops around it that do nothing without it."""
    parent = op.parent_op()
    Rewriter.erase_op(op)
    erase_idle(parent)


def erase_idle(parent: Operation | None) -> None:
    """Erases a loop or branch that does nothing, then those around it."""
    while isinstance(parent, ForOp | IfOp) and not any(statements(region.block) for region in parent.regions):
        parent, idle = parent.parent_op(), parent
        Rewriter.erase_op(idle)


def after_removal(op: Operation) -> InsertPoint:
    """The position of an op, valid when it is no longer there."""
    if op.next_op is not None:
        return InsertPoint.before(op.next_op)
    if op.parent is None:
        raise ValueError("the op is in no block")
    return InsertPoint.at_end(op.parent)


def move_ops(source: Block, target: Block) -> None:
    """Moves all ops to the end of another block."""
    for op in list(source.ops):
        op.detach()
        target.add_op(op)


def add_condition(block: BlockOp, condition: SSAValue) -> None:
    """Lets the instances of a block run only where `condition` holds, too; it must dominate the block."""
    if block.condition is not None:
        both = arith.AndIOp(block.condition, condition)
        Rewriter.insert_op(both, InsertPoint.before(block))
        condition = both.result
    set_condition(block, condition)


def set_condition(block: BlockOp, condition: SSAValue | None) -> None:
    """Replaces the condition of a block."""
    rebuild_block(block, [(it.kind, it.binding, it.extent) for it in block.iterators], condition)


def rebuild_block(
    block: BlockOp, iterators: Sequence[tuple[IteratorKind, SSAValue, SSAValue]], condition: SSAValue | None
) -> None:
    """Gives a block other iterators (kind, binding, extent) and another condition; its body is left to the caller."""
    conditions = [] if condition is None else [condition]
    block.operands = [*(it[1] for it in iterators), *(it[2] for it in iterators), *conditions]
    sizes = [len(iterators), len(iterators), len(conditions)]
    block.properties[AttrSizedOperandSegments.attribute_name] = DenseArrayBase.from_list(i32, sizes)
    block.iterator_kinds = ArrayAttr([IteratorKindAttr(it[0]) for it in iterators])


def erase_dead_ops(func: PrimFuncOp) -> None:
    """Erases what only computes values that nothing uses."""
    erase_dead(func.body.walk(), among=is_index_op)

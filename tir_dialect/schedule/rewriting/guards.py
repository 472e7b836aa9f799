"""Guards on loop iterations: predicates of blocks, and branches around other statements."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule.rewriting.edits import add_condition, move_ops
from tir_dialect.schedule.statements import is_index_op


def guarded_ops(body: Block) -> list[Operation]:
    """What a condition on the body of a loop applies to: its blocks, or the whole body if it does something outside."""
    found = list(_leaves(body))
    if all(isinstance(op, BlockOp) for op in found):
        return found
    first = body.first_op
    return [] if first is None else [first]


def _leaves(body: Block) -> Iterator[Operation]:
    for op in body.ops:
        if isinstance(op, ForOp):
            yield from _leaves(op.body.block)
        elif not is_index_op(op) and not isinstance(op, AllocBufferOp):
            yield op


def guard(body: Block, value: SSAValue, limit: SSAValue) -> None:
    """Lets what `guarded_ops` gives run only where `value < limit`; both must dominate it."""
    targets = guarded_ops(body)
    if all(isinstance(op, BlockOp) for op in targets):
        for op in targets:
            if isinstance(op, BlockOp):
                add_condition(op, _less(value, limit, InsertPoint.before(op)))
        return
    branch_body = Block()
    move_after(value, body, branch_body)
    condition = _less(value, limit, InsertPoint.at_end(body))
    branch = IfOp(condition)
    move_ops(branch_body, branch.then_body.block)
    body.add_op(branch)


def move_after(value: SSAValue, source: Block, target: Block) -> None:
    """Moves the ops of a block after the one that computes `value` to the end of another block."""
    ops = list(source.ops)
    start = ops.index(value.owner) + 1 if isinstance(value.owner, Operation) and value.owner in ops else 0
    for op in ops[start:]:
        op.detach()
        target.add_op(op)


def _less(value: SSAValue, limit: SSAValue, point: InsertPoint) -> SSAValue:
    op = arith.CmpiOp(value, limit, "slt")
    Rewriter.insert_op(op, point)
    return op.result

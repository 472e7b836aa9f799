"""Where blocks and loops stand in a function."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Pure, is_side_effect_free

from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.function import PrimFuncOp


def is_index_op(op: Operation) -> bool:
    """Whether the op only computes a value: it may move, and it goes when nothing uses it."""
    return not op.regions and bool(op.results) and (_is_always_pure(type(op)) or is_side_effect_free(op))


@cache
def _is_always_pure(kind: type[Operation]) -> bool:
    # xDSL 0.74 does not say that the first two are pure
    return kind in (arith.RemUIOp, arith.ExtSIOp) or kind.has_trait(Pure())


def statements(block: Block) -> list[Operation]:
    """The ops of a block that do more than compute a value."""
    return [op for op in block.ops if not is_index_op(op)]


def only_statement(block: Block) -> Operation | None:
    """The one op of a block that does more than compute values; `None` if there are none or several."""
    found = statements(block)
    return found[0] if len(found) == 1 else None


def blocks_in(root: Operation) -> list[BlockOp]:
    """All blocks in the regions of an op, in program order."""
    return [op for op in root.walk() if isinstance(op, BlockOp) and op is not root]


def scope_of(op: Operation) -> BlockOp | PrimFuncOp:
    """The innermost block or function around an op."""
    parent = op.parent_op()
    while not isinstance(parent, BlockOp | PrimFuncOp):
        if parent is None:
            raise ValueError("the op is in no function")
        parent = parent.parent_op()
    return parent


def ancestor_in(block: Block, op: Operation) -> Operation | None:
    """The op of `block` that is `op` or holds it."""
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op()
    return current


def nest_of(block: BlockOp) -> Operation:
    """The op right in the surrounding block or function, or the init there, that holds a block."""
    found = ancestor_in(scope_of(block).body.block, block)
    if isinstance(found, InitOp):
        found = ancestor_in(found.body.block, block)
    return block if found is None else found


def common_insert_point(ops: Sequence[Operation]) -> tuple[Block, list[Operation]]:
    """The innermost block that holds all of the ops, at least one, and the ops in it that are or hold them."""
    block = ops[0].parent
    while block is not None:
        tops = [top for op in ops if (top := ancestor_in(block, op)) is not None]
        if len(tops) == len(ops):
            return block, tops
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    raise ValueError("the ops have no common block")


def users_of(value: SSAValue) -> list[Operation]:
    """The ops that use a value."""
    return [use.operation for use in value.uses]


def unique_block_name(func: PrimFuncOp, name: str, own: BlockOp | None = None) -> str:
    """`name`, or with a number after it, such that no block of the function but `own` has it."""
    taken = {block.block_name.data for block in blocks_in(func) if block is not own}
    count, found = 0, name
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found

"""Copies of buffers close to the block that uses them."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from tir_dialect.analysis.structure import enclosing_block
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.schedule.accesses import Access, accesses_in
from tir_dialect.schedule.boxes import box_in, is_dense
from tir_dialect.schedule.buffers import Which, check_plain_uses, read_buffer, redirect, written_buffer
from tir_dialect.schedule.edits import nest_of, unique_block_name
from tir_dialect.schedule.handles import Block, is_inside
from tir_dialect.schedule.moves import shape_of
from tir_dialect.schedule.nests import allocate_like, copy_block, whole
from tir_dialect.schedule.program_order import describe, touches
from tir_dialect.schedule.renest import check_no_branch, check_plain_conditions
from tir_dialect.schedule.state import ScheduleState, primitive


@primitive
def cache_read(self: ScheduleState, block: Block, buffer: Which, scope: str = "global") -> Block:
    """Copies a buffer that a block reads, in front of the loops of the block, and lets it read the copy.

    rewrite:
        for i: C[i] = f(A[i])
        -> for x: A_local[x] = A[x]
           for i: C[i] = f(A_local[i])

    Move the copy where it is wanted by `compute_at`. Gives the block that copies.

    Refuses a buffer that changes in those loops, and one that the block sees as a whole.
    """
    op = block.op
    source = read_buffer(self, op, buffer)
    check_plain_uses(self, op, source)
    nest = nest_of(op)
    writer = next((inner for inner in nest.walk() if touches(inner, {source}, writes_only=True)), None)
    if writer is not None:
        raise self.error(f'{describe(writer)} writes buffer "{source.name_hint}" in the loops of block "{block.name}"')
    name = f"{source.name_hint or 'buffer'}_{scope}"
    point = InsertPoint.before(nest)
    cache = allocate_like(self, source, name, scope, point)
    copy = copy_block(self, unique_block_name(self.func, name), source, cache, whole(source), point)
    redirect(self, op, source, cache)
    return self.block(copy)


@primitive
def cache_write(self: ScheduleState, block: Block, buffer: Which, scope: str = "global") -> Block:
    """Lets a block write to a new buffer, and copies that to the old one behind the loops of the block.

    rewrite:
        for i: C[i] = f(A[i])
        -> for i: C_local[i] = f(A[i])
           for x: C[x] = C_local[x]

    Move the copy where it is wanted by `reverse_compute_at`. Gives the block that copies.

    Refuses a buffer that others write, that other blocks in those loops read, or of which the block writes scattered
    elements.
    """
    op = block.op
    target = written_buffer(self, op, buffer)
    check_plain_uses(self, op, target)
    check_plain_conditions(self, op)
    check_no_branch(self, op)
    nest = nest_of(op)
    stores = _own_stores(self, op, target, nest)
    box = box_in(self, stores, None, shape_of(target))
    if not is_dense(self, stores, None, box):
        raise self.error(f'block "{block.name}" writes scattered elements of buffer "{target.name_hint}"')
    name = f"{target.name_hint or 'buffer'}_{scope}"
    cache = allocate_like(self, target, name, scope, InsertPoint.before(nest))
    redirect(self, op, target, cache)
    copy = copy_block(self, unique_block_name(self.func, name), cache, target, box, InsertPoint.after(nest))
    return self.block(copy)


def _own_stores(self: ScheduleState, block: BlockOp, buffer: SSAValue, nest: Operation) -> list[Access]:
    found: list[Access] = []
    for access in accesses_in(self.space, self.func):
        if access.buffer is not buffer:
            continue
        if is_inside(access.op, block):
            found += [access] if access.is_store else []
        elif access.is_store or is_inside(access.op, nest):
            verb = "writes" if access.is_store else "reads"
            raise self.error(f'{describe(access.op)} {verb} buffer "{buffer.name_hint}", too')
    if enclosing_block(block) is not None and not found:
        raise self.error(f'block "{block.block_name.data}" does not store to buffer "{buffer.name_hint}"')
    return found

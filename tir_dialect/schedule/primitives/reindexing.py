"""Copies of buffers in the order in which a block runs over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.regions import ReadsOp, WritesOp
from tir_dialect.schedule.buffers import Which, check_plain_uses, read_buffer, written_buffer
from tir_dialect.schedule.clones import Cloner, check_cloneable
from tir_dialect.schedule.edits import nest_of, unique_block_name
from tir_dialect.schedule.handles import Block, is_inside
from tir_dialect.schedule.moves import iterator_extent
from tir_dialect.schedule.nests import insert_nest
from tir_dialect.schedule.program_order import describe, touches
from tir_dialect.schedule.renest import check_no_branch, check_plain_conditions
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.types import BufferType, IteratorKind


@dataclass(frozen=True)
class _Use:
    """All accesses of a block to a buffer, which are at the same indices, and the iterators in those."""

    block: BlockOp
    buffer: SSAValue
    accesses: tuple[LoadOp | StoreOp, ...]
    iterators: tuple[int, ...]

    @property
    def indices(self) -> Sequence[SSAValue]:
        return self.accesses[-1].indices


@primitive
def reindex(self: ScheduleState, block: Block, buffer: Which, access: Literal["read", "write"] = "read") -> Block:
    """Replaces a buffer by one with a dimension for each iterator in the indices at which a block accesses it.

    rewrite:
        for i, r: C[i] += A[2 * i + r]
        -> for i, r: A_reindex[i, r] = A[2 * i + r]
           for i, r: C[i] += A_reindex[i, r]

    With `access="write"` the copy comes behind the loops. Gives the block that copies.

    Refuses buffers that others write in the loops, that the block accesses at several places or under a condition, and,
    to write, that others write at all or read in the loops.
    """
    if access not in ("read", "write"):
        raise self.error(f'expected access "read" or "write", got "{access}"')
    op, nest = block.op, nest_of(block.op)
    if access == "read":
        use = _use(self, op, read_buffer(self, op, buffer))
        others = [inner for inner in nest.walk() if touches(inner, {use.buffer}, writes_only=True)]
    else:
        use = _use(self, op, written_buffer(self, op, buffer))
        check_plain_conditions(self, op)
        check_no_branch(self, op)
        others = [inner for inner in self.func.walk() if _competes(inner, use, nest)]
    if others:
        raise self.error(f'{describe(others[0])} uses buffer "{use.buffer.name_hint}", too')
    place = InsertPoint.before(nest) if access == "read" else InsertPoint.after(nest)
    return self.block(_reindex(self, use, InsertPoint.before(nest), place, access == "read"))


def _competes(op: Operation, use: _Use, nest: Operation) -> bool:
    """Whether an op outside of the block writes the buffer, or accesses it in the loops of the block."""
    return not is_inside(op, use.block) and touches(op, {use.buffer}, writes_only=not is_inside(op, nest))


def _use(self: ScheduleState, block: BlockOp, buffer: SSAValue) -> _Use:
    check_plain_uses(self, block, buffer)
    name, described = buffer.name_hint, block.block_name.data
    space = IndexSpace(block)
    found: list[LoadOp | StoreOp] = []
    places: set[tuple[Dim | None, ...]] = set()
    for op in block.body.walk():
        if not isinstance(op, LoadOp | StoreOp) or op.buffer is not buffer:
            continue
        if op.lanes is not None or not isinstance(op.parent_op(), BlockOp | InitOp):
            raise self.error(f'block "{described}" uses buffer "{name}" in vectors or under a condition')
        places.add(tuple(space.dim_of(index) for index in op.indices))
        found.append(op)
    if len(places) != 1 or None in next(iter(places)):
        raise self.error(f'block "{described}" uses buffer "{name}" at {len(places)} places, expected one of iterators')
    used = frozenset[str]().union(*(dim.symbols for dim in next(iter(places)) if dim is not None))
    names = [space.variable(value).dim.as_symbol or "" for value in block.body.block.args]
    for index in found[-1].indices:
        check_cloneable(self, block, index)
    return _Use(block, buffer, tuple(found), tuple(number for number, each in enumerate(names) if each in used))


def _reindex(self: ScheduleState, use: _Use, place: InsertPoint, copy_place: InsertPoint, is_read: bool) -> BlockOp:
    cache = _allocate(self, use, place)
    copy = _copy_block(self, use, cache, is_read)
    for op in use.accesses:
        indices = [use.block.body.block.args[number] for number in use.iterators]
        new = LoadOp(cache, indices) if isinstance(op, LoadOp) else StoreOp(op.value, cache, indices)
        new.location = op.location
        if isinstance(new, LoadOp) and isinstance(op, LoadOp):
            new.result.name_hint = op.result.name_hint
        Rewriter.replace_op(op, new)
    for op in list(use.block.body.block.ops):
        # what is loaded and stored says the same, of the new buffer
        if isinstance(op, ReadsOp | WritesOp):
            Rewriter.erase_op(op)
    extents = [iterator_extent(self, use.block, number) for number in use.iterators]
    ranges = [AxisRange(constant(0), extent) for extent in extents]
    hints = [f"ax{axis}" for axis in range(len(ranges))]
    insert_nest(self, copy, ranges, hints, copy_place, use.block.location)
    return copy


def _allocate(self: ScheduleState, use: _Use, place: InsertPoint) -> SSAValue:
    shape = [iterator_extent(self, use.block, number) for number in use.iterators]
    for extent in shape:
        if not extent.symbols <= set(self.func.symbol_names):
            raise self.error(f'an iterator of block "{use.block.block_name.data}" has the extent {extent}')
    op = AllocBufferOp(BufferType(shape, use.accesses[0].buffer_type.dtype))
    op.buffer.name_hint = f"{use.buffer.name_hint or 'buffer'}_reindex"
    Rewriter.insert_op(op, place)
    return op.buffer


def _copy_block(self: ScheduleState, use: _Use, cache: SSAValue, is_read: bool) -> BlockOp:
    """The block that copies an element; not yet in the function."""
    extents = [use.block.extents[number] for number in use.iterators]
    name = unique_block_name(self.func, f"{use.buffer.name_hint or 'buffer'}_reindex")
    hints = [f"vax{axis}" for axis in range(len(extents))]
    copy = BlockOp(name, [(IteratorKind.SPATIAL, extent, extent) for extent in extents], name_hints=hints)
    body, args = copy.body.block, copy.body.block.args
    old = use.block.body.block.args
    mapping: dict[SSAValue, SSAValue] = {old[number]: arg for number, arg in zip(use.iterators, args, strict=True)}
    indices = Cloner(body, mapping).values(list(use.indices))
    source, target = ((use.buffer, indices), (cache, args)) if is_read else ((cache, args), (use.buffer, indices))
    load = LoadOp(*source)
    body.add_ops([load, StoreOp(load.result, *target)])
    return copy

"""Copies of buffers in the order in which a block runs over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange
from tir_dialect.dims import Dim, symbol
from tir_dialect.ops.blocks import BlockOp, InitOp, ReadsOp, WritesOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.buffers import (
    Which,
    access_of,
    checked_scope,
    mapped_shape,
    name_with,
    read_buffer,
    written_buffer,
)
from tir_dialect.schedule.cache_placement import (
    check_complete,
    loop_around,
    unshared_insert_point,
    unwritten_insert_point,
)
from tir_dialect.schedule.edits import Materializer, unique_block_name
from tir_dialect.schedule.handles import Block, is_inside
from tir_dialect.schedule.index_map import IndexMap, IndexMapLike
from tir_dialect.schedule.legality.instances import Instances, check_new_instances, is_dense
from tir_dialect.schedule.legality.motion import check_plain_uses, describe, touches
from tir_dialect.schedule.nests import Cloner, check_cloneable, check_no_branch, check_plain_conditions, insert_nest
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.structure import sized_extent
from tir_dialect.types import BufferType, IteratorKind


@dataclass(frozen=True)
class _Use:
    """All accesses of a block to a buffer, which are at the same indices, and the iterators in those."""

    block: BlockOp
    buffer: SSAValue
    accesses: tuple[LoadOp | StoreOp, ...]
    iterators: tuple[int, ...]
    index_map: IndexMap
    """From those iterators to the indices of the new buffer."""
    shape: tuple[Dim, ...]
    scope: str = "global"
    suffix: str = "reindex"
    """Of the names of the new buffer and of the block that copies."""

    @property
    def indices(self) -> Sequence[SSAValue]:
        return self.accesses[-1].indices


@primitive
def reindex(self: ScheduleState, block: Block, buffer: Which, access: Literal["read", "write"] | None = None) -> Block:
    """Replaces a buffer that a block accesses by a copy with one dimension per iterator that occurs in its indices.

    rewrite:
        for i, r: C[i] += A[2 * i + r]
        -> for i, r: A_reindex[i, r] = A[2 * i + r]
           for i, r: C[i] += A_reindex[i, r]

    With `access="write"`, or for a buffer that the block writes, the copy comes after the loops. Returns the block
    that copies.

    Where others write the buffer in the loops, or read what the block writes, the copy is made further inside.

    Refuses:
    1. a block in a branch, or with a predicate other than the bounds of its iterators;
    2. an access other than "read" and "write";
    3. accesses of vectors, in branches or in blocks inside, at several positions, or at indices that come from memory;
    4. extents that come from memory or depend on a block around;
    5. to read, a buffer that others write in the innermost loop; to write, one that others write, or that is not
       started;
    6. loops that do not take the iterators through all values;
    7. to read, elements outside of the buffer; to write, elements that the block may not store.
    """
    if access not in ("read", "write", None):
        raise self.error(f'expected access "read" or "write", got "{access}"')
    reads = (access or access_of(block.op, buffer)) == "read"
    return _copy(self, block, buffer, reads, lambda use: use)


@primitive
def reindex_cache_read(
    self: ScheduleState, block: Block, read_buffer_index: Which, storage_scope: str, index_map: IndexMapLike
) -> Block:
    """Like `reindex` of a buffer that is read, where a map of the block's iterators gives the indices of the copy.

    rewrite:
        for i, r: C[i] += A[2 * i + r]
        -> for i, r: A_local[r, i] = A[2 * i + r]        # (vi, vr) -> (vr, vi)
           for i, r: C[i] += A_local[r, i]

    Refuses:
    1. an unknown scope;
    2. what `reindex` refuses;
    3. maps of other inputs than the iterators, over iterators that the access does not use, or that are not injective.
    """
    return _copy(self, block, read_buffer_index, True, lambda use: _mapped(self, use, index_map, storage_scope))


@primitive
def reindex_cache_write(
    self: ScheduleState, block: Block, write_buffer_index: Which, storage_scope: str, index_map: IndexMapLike
) -> Block:
    """Like `reindex` of a buffer that is written, where a map of the block's iterators gives the indices of the copy.

    rewrite:
        for i: C[2 * i] = f(i)
        -> for i: C_local[i // 4, i % 4] = f(i)          # (vi) -> (vi // 4, vi % 4)
           for i: C[2 * i] = C_local[i // 4, i % 4]

    Refuses:
    1. an unknown scope;
    2. what `reindex` refuses;
    3. maps of other inputs than the iterators, over iterators that the access does not use, or that are not injective.
    """
    return _copy(self, block, write_buffer_index, False, lambda use: _mapped(self, use, index_map, storage_scope))


def _copy(self: ScheduleState, block: Block, buffer: Which, reads: bool, mapped: Callable[[_Use], _Use]) -> Block:
    op = block.op
    # what no instance of the block touches may be outside of the buffer
    check_plain_conditions(self, op)
    check_no_branch(self, op)
    if reads:
        use = mapped(_use(self, op, read_buffer(self, op, buffer)))
        position = unwritten_insert_point(self, [op], use.buffer)
    else:
        use = mapped(_use(self, op, written_buffer(self, op, buffer)))
        position = _insert_point_after(self, use)
    loop = loop_around(position)
    instances = Instances(self, op, loop)
    _check_instances(self, use, instances, reads)
    ranges = instances.ranges(use.iterators)
    point = InsertPoint.before(position) if reads else InsertPoint.after(position)
    return self.block(_reindex(self, use, ranges, position, point, reads))


def _check_instances(self: ScheduleState, use: _Use, instances: Instances, reads: bool) -> None:
    """Refuses a block that does not take the iterators of a use through all values of their ranges.

    Loops that drive none of these may be empty: what is stored has to be stored then, too, what is loaded to be there.
    """
    block, numbers = use.block, use.iterators
    if not instances.take_all(numbers):
        raise self.error(f'the loops of block "{block.block_name.data}" do not take its iterators through all values')
    extents = instances.extents(range(len(block.iterators)))
    if reads:
        check_new_instances(self, instances, extents, numbers, [op for op in use.accesses if isinstance(op, LoadOp)])
    elif numbers:
        box = instances.box(numbers)
        stores = [replace(instances.as_access(numbers), op=op) for op in use.accesses if isinstance(op, StoreOp)]
        if not is_dense(self, stores, instances.around, box):
            raise self.error(f'block "{block.block_name.data}" may not store all elements that its iterators tell')


def _insert_point_after(self: ScheduleState, use: _Use) -> Operation:
    """The outermost op around the block after which what it writes can be copied."""
    block, buffer = use.block, use.buffer
    for op in self.func.walk():
        if not is_inside(op, block) and touches(op, {buffer}, writes_only=True):
            raise self.error(f'{describe(op)} uses buffer "{buffer.name_hint}", too')
    position = unshared_insert_point(block, buffer)
    check_complete(self, block, buffer, position)
    return position


def _use(self: ScheduleState, block: BlockOp, buffer: SSAValue) -> _Use:
    check_plain_uses(self, block, buffer)
    name, described = buffer.name_hint, block.block_name.data
    space = IndexSpace(block)
    found: list[LoadOp | StoreOp] = []
    positions: set[tuple[Dim | None, ...]] = set()
    for op in block.body.walk():
        if not isinstance(op, LoadOp | StoreOp) or op.buffer is not buffer:
            continue
        if isinstance(inner := op.parent_op(), BlockOp) and inner is not block:
            raise self.error(
                f'block "{described}" uses buffer "{name}" in block "{inner.block_name.data}", which is inside of it; '
                "name that block"
            )
        if op.lanes is not None or not isinstance(inner, BlockOp | InitOp):
            raise self.error(f'block "{described}" uses buffer "{name}" in vectors or under a condition')
        positions.add(tuple(space.dim_of(index) for index in op.indices))
        found.append(op)
    if len(positions) != 1 or None in next(iter(positions)):
        raise self.error(
            f'block "{described}" uses buffer "{name}" at {len(positions)} places, expected one of iterators'
        )
    used = frozenset[str]().union(*(dim.symbols for dim in next(iter(positions)) if dim is not None))
    names = [space.variable(value).dim.as_symbol or "" for value in block.body.block.args]
    for index in found[-1].indices:
        check_cloneable(self, block, index)
    iterators = tuple(number for number, each in enumerate(names) if each in used)
    identity = IndexMap(tuple(names[n] for n in iterators), tuple(symbol(names[n]) for n in iterators))
    shape = tuple(sized_extent(self, block, number) for number in iterators)
    return _Use(block, buffer, tuple(found), iterators, identity, shape)


def _mapped(self: ScheduleState, use: _Use, index_map: IndexMapLike, storage_scope: str) -> _Use:
    """The use with the copy at indices that a map of all iterators gives."""
    scope = checked_scope(self, storage_scope)
    args = use.block.body.block.args
    try:
        wanted = IndexMap.of(index_map, len(args))
    except ValueError as error:
        raise self.error(str(error)) from None
    self.record_as(index_map, wanted)
    if len(wanted.inputs) != len(args):
        raise self.error(f"expected an index map of {len(args)} iterators, got {wanted}")
    inputs = tuple(wanted.inputs[number] for number in use.iterators)
    own = IndexMap(inputs, wanted.outputs)
    if unknown := frozenset[str]().union(*(output.symbols for output in own.outputs)) - set(inputs):
        raise self.error(f'index map {wanted} uses "{min(unknown)}", which is not in the indices of the access')
    shape = tuple(mapped_shape(self, own, use.shape))
    return replace(use, index_map=own, shape=shape, scope=scope, suffix=storage_scope)


def _reindex(
    self: ScheduleState,
    use: _Use,
    ranges: Sequence[AxisRange],
    position: Operation,
    copy_point: InsertPoint,
    is_read: bool,
) -> BlockOp:
    insert_point = InsertPoint.before(position)
    op = AllocBufferOp(BufferType(use.shape, use.accesses[0].buffer_type.dtype, scope=use.scope))
    op.buffer.name_hint = name_with(use.buffer, use.suffix)
    Rewriter.insert_op(op, insert_point)
    cache = op.buffer
    copy = _copy_block(self, use, cache, is_read)
    for op in use.accesses:
        indices = _cache_indices(self, use, use.block, use.iterators, InsertPoint.before(op))
        new = LoadOp(cache, indices) if isinstance(op, LoadOp) else StoreOp(op.value, cache, indices)
        new.location = op.location
        if isinstance(new, LoadOp) and isinstance(op, LoadOp):
            new.result.name_hint = op.result.name_hint
        Rewriter.replace_op(op, new)
    for op in list(use.block.body.block.ops):
        # what is loaded and stored says the same, of the new buffer
        if isinstance(op, ReadsOp | WritesOp):
            Rewriter.erase_op(op)
    hints = [f"ax{axis}" for axis in range(len(ranges))]
    insert_nest(self, copy, ranges, hints, copy_point, use.block.location)
    return copy


def _cache_indices(
    self: ScheduleState, use: _Use, block: BlockOp, numbers: Iterable[int], point: InsertPoint
) -> list[SSAValue]:
    """The indices of the new buffer in an instance of a block that has the iterators of the access at these numbers."""
    space, args = IndexSpace(block), block.body.block.args
    emitter = Materializer(self.func, space, point)
    return [emitter.emit(index) for index in use.index_map.apply([space.variable(args[n]).dim for n in numbers])]


def _copy_block(self: ScheduleState, use: _Use, cache: SSAValue, is_read: bool) -> BlockOp:
    """The block that copies an element; not yet in the function."""
    extents = [use.block.extents[number] for number in use.iterators]
    name = unique_block_name(self.func, name_with(use.buffer, use.suffix))
    hints = [f"vax{axis}" for axis in range(len(extents))]
    copy = BlockOp(name, [(IteratorKind.SPATIAL, extent, extent) for extent in extents], name_hints=hints)
    body, args = copy.body.block, copy.body.block.args
    old = use.block.body.block.args
    mapping: dict[SSAValue, SSAValue] = {old[number]: arg for number, arg in zip(use.iterators, args, strict=True)}
    indices = Cloner(body, mapping).values(list(use.indices))
    cache_indices = _cache_indices(self, use, copy, range(len(args)), InsertPoint.at_end(body))
    source, target = (
        ((use.buffer, indices), (cache, cache_indices)) if is_read else ((cache, cache_indices), (use.buffer, indices))
    )
    load = LoadOp(*source)
    body.add_ops([load, StoreOp(load.result, *target)])
    return copy

"""Copies of buffers close to the block that uses them or inside of a loop, and tables of index computations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, i64
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.regions import AxisRange, read_buffers, written_buffers
from tir_dialect.analysis.structure import child_blocks, enclosing_block, enclosing_loops
from tir_dialect.dims import constant
from tir_dialect.ops.blocks import BlockOp, BufferViewOp, ReadsOp, WritesOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, RegionAxis, StoreOp
from tir_dialect.schedule.buffers import (
    Which,
    checked_scope,
    name_with,
    read_buffer,
    redirect,
    written_buffer,
)
from tir_dialect.schedule.cache_placement import (
    check_complete,
    loop_around,
    readers_beside,
    side_by_side,
    unshared_insert_point,
    unwritten_insert_point,
)
from tir_dialect.schedule.edits import before_all, is_index_op, scope_of, unique_block_name
from tir_dialect.schedule.handles import Block, Loop, is_inside
from tir_dialect.schedule.legality.accesses import Access, accesses_in, box_in, clipped
from tir_dialect.schedule.legality.instances import is_dense
from tir_dialect.schedule.legality.motion import (
    check_consumer,
    check_plain_uses,
    describe,
    is_certain,
    missing_in_copy,
    other_use,
)
from tir_dialect.schedule.nests import (
    allocate_like,
    check_no_branch,
    check_plain_conditions,
    copy_block,
    insert_nest,
    whole,
)
from tir_dialect.schedule.partial_writes import copy_only, written_where
from tir_dialect.schedule.primitives.computing_at import compute_at, reverse_compute_at
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.structure import iterator_extent, shape_of, sized_extent
from tir_dialect.types import BufferType, IteratorKind


@primitive
def cache_read(
    self: ScheduleState,
    block: Block,
    read_buffer_index: Which,
    storage_scope: str = "global",
    consumer_blocks: Sequence[Block | str] = (),
) -> Block:
    """Copies a buffer that a block reads before the loops of its readers, and redirects their reads to the copy.

    rewrite:
        for i: C[i] = f(A[i])
        -> for x: A_local[x] = A[x]
           for i: C[i] = f(A_local[i])

    Only `consumer_blocks` read the copy, which the block is one of only if it is named; without any, the block and all
    beside it that read the same values do. If the buffer is written in the loops, the copy is made further inside, of
    what the rest reads; consumers after these loops read it if the iterations together copy what they need. Move the
    copy where it is wanted by `compute_at`. Returns the block that copies.

    Refuses:
    1. an unknown scope, and a buffer that one of the consumers does not read;
    2. uses other than loads and stores, such as views and calls;
    3. a buffer that is written in the innermost loop of its readers, or by a reader;
    4. named consumers after the loops of the copy that read elements which are not copied, or have changed since.
    """
    scope = checked_scope(self, storage_scope)
    source = read_buffer(self, block.op, read_buffer_index)
    named = [self.block_named(each) if isinstance(each, str) else each for each in consumer_blocks]
    readers = list(dict.fromkeys(each.op for each in named)) or readers_beside(block.op, source)
    for reader in readers:
        if source not in read_buffers(reader):
            raise self.error(f'block "{reader.block_name.data}" does not read buffer "{source.name_hint}"')
        check_plain_uses(self, reader, source)
    near = side_by_side(self, readers, source)
    position = unwritten_insert_point(self, near, source)
    loop = loop_around(position)
    box = whole(source)
    if loop is not None:
        reads = [access for op in near for access in accesses_in(self.space, op) if access.buffer is source]
        box = clipped(self.space.prover, box_in(self, reads, loop, shape_of(source)), shape_of(source))
    others = [op for op in readers if op not in near] if named else None
    after = _readers_after(self, position, source, box, others)
    name = name_with(source, storage_scope)
    point = InsertPoint.before(position)
    cache = allocate_like(self, source, name, scope, before_all([position, *after]) if after else point)
    copy = copy_block(self, unique_block_name(self.func, name), source, cache, box, point)
    for reader in (*near, *after):
        redirect(self, reader, source, cache)
    return self.block(copy)


@primitive
def cache_write(
    self: ScheduleState,
    block: Block,
    write_buffer_index: Which,
    storage_scope: str = "global",
    consumer_blocks: Sequence[Block | str] = (),
) -> Block:
    """Redirects the writes of a block to a new buffer, which is copied to the old one after the loops of the block.

    rewrite:
        for i: C[i] = f(A[i])
        -> for i: C_local[i] = f(A[i])
           for x: C[x] = C_local[x]

    `consumer_blocks`, anywhere after the block, read the new buffer. If others read the old one in the loops, it is
    copied further inside. Where the block stores on conditions, each on one index, the copy has their disjunction. Move
    the copy where it is wanted by `reverse_compute_at`. Returns the block that copies.

    Refuses:
    1. an unknown scope, and a buffer that the block does not write, or not alone;
    2. uses other than loads and stores, such as views and calls;
    3. a block in a branch, or with a predicate other than the bounds of its iterators;
    4. updates of what the block has not started; and others that read the buffer in the loops of the reduction;
    5. scattered elements, unless the stores are on conditions each on one index;
    6. consumers that come before the block, do not read the buffer, or read elements that it may not have written.
    """
    scope = checked_scope(self, storage_scope)
    op = block.op
    target = written_buffer(self, op, write_buffer_index)
    consumers = [(self.block_named(each) if isinstance(each, str) else each).op for each in consumer_blocks]
    check_plain_uses(self, op, target)
    check_plain_conditions(self, op)
    check_no_branch(self, op)
    stores = _own_stores(self, op, target)
    position = unshared_insert_point(op, target, consumers)
    loop = loop_around(position)
    check_complete(self, op, target, position)
    box = box_in(self, stores, loop, shape_of(target))
    for consumer in consumers:
        check_consumer(self, op, consumer, stores)
    certain = [access for access in stores if is_certain(self, access, op)]
    where = None if is_dense(self, certain, loop, box) else written_where(self, stores, op, loop, box) or []
    if where == []:
        raise self.error(f'block "{block.name}" writes scattered elements of buffer "{target.name_hint}"')
    name = name_with(target, storage_scope)
    cache = allocate_like(self, target, name, scope, before_all([position, *consumers]))
    for user in (op, *consumers):
        redirect(self, user, target, cache)
    box = clipped(self.space.prover, box, shape_of(target))
    copy = copy_block(self, unique_block_name(self.func, name), cache, target, box, InsertPoint.after(position))
    if where is not None:
        copy_only(self, copy, where)
    return self.block(copy)


@primitive
def cache_inplace(
    self: ScheduleState, block: Block, read_buffer_index: Which, storage_scope: str = "global"
) -> tuple[Block, Block]:
    """Copies a buffer that a block updates, redirects the block to the copy, and copies it back afterwards.

    rewrite:
        for i: A[i] = f(A[i])
        -> for x: A_local[x] = A[x]
           for i: A_local[i] = f(A_local[i])
           for x: A[x] = A_local[x]

    The copies are made as far outside as nobody else uses the buffer. Returns the blocks that copy it there and back.

    Refuses:
    1. an unknown scope, and a buffer that the block does not both read and write;
    2. views of the buffer, and calls that take it where it has gaps.
    """
    scope = checked_scope(self, storage_scope)
    op = block.op
    buffer = read_buffer(self, op, read_buffer_index)
    if buffer not in written_buffers(op):
        raise self.error(f'block "{block.name}" does not write buffer "{buffer.name_hint}", use cache_read')
    check_plain_uses(self, op, buffer, calls=True)
    position = unshared_insert_point(op, buffer)
    loop = loop_around(position)
    box = whole(buffer)
    if loop is not None or enclosing_block(op) is not None:
        uses = [access for access in accesses_in(self.space, op) if access.buffer is buffer]
        box = clipped(self.space.prover, box_in(self, uses, loop, shape_of(buffer)), shape_of(buffer))
    name = name_with(buffer, storage_scope)
    points = InsertPoint.before(position), InsertPoint.after(position)
    cache = allocate_like(self, buffer, name, scope, points[0])
    there = copy_block(self, unique_block_name(self.func, name), buffer, cache, box, points[0])
    back = copy_block(self, unique_block_name(self.func, name), cache, buffer, box, points[1])
    redirect(self, op, buffer, cache)
    return self.block(there), self.block(back)


def _readers_after(
    self: ScheduleState,
    index: Operation,
    source: SSAValue,
    box: Sequence[AxisRange],
    named: Sequence[BlockOp] | None,
) -> list[BlockOp]:
    """The blocks after the loops of a copy that read it: those named, which have to find their elements in it.

    Without names, all that do.
    """
    if named is not None:
        for reader in named:
            if (missing := missing_in_copy(self, index, source, box, reader)) is not None:
                raise self.error(missing)
        return list(named)
    order = {op: position for position, op in enumerate(self.func.walk())}
    after = [op for op in order if isinstance(op, BlockOp) and order[op] > order[index] and not is_inside(op, index)]
    readers = [op for op in after if scope_of(op) is scope_of(index) and source in read_buffers(op)]
    plain = (op for op in readers if other_use(op, source) is None)
    return [op for op in plain if missing_in_copy(self, index, source, box, op) is None]


def _own_stores(self: ScheduleState, block: BlockOp, buffer: SSAValue) -> list[Access]:
    found: list[Access] = []
    everything = (access for op in scope_of(block).body.block.ops for access in accesses_in(self.space, op))
    for access in everything:
        if access.buffer is not buffer or not access.is_store:
            continue
        if not is_inside(access.op, block):
            raise self.error(f'{describe(access.op)} writes buffer "{buffer.name_hint}", too')
        found.append(access)
    return found


@primitive
def read_at(self: ScheduleState, loop: Loop, block: Block, read_buffer_index: Which, storage_scope: str) -> Block:
    """Copies what a block reads in each iteration of a loop: `cache_read`, then `compute_at` of the copy.

    rewrite:
        for i: for j: C[i, j] = f(A[i, j])
        -> for i:
             for x: A_local[i, x] = A[i, x]
             for j: C[i, j] = f(A_local[i, j])

    Returns the block that copies.

    Refuses:
    1. what `cache_read` refuses;
    2. copies that `compute_at` would not move into the loop.
    """

    def copied(schedule: ScheduleState) -> Block:
        copy = cache_read(schedule, block, read_buffer_index, storage_scope, [block])
        compute_at(schedule, copy, loop)
        return copy

    return _tried(self, copied)


@primitive
def write_at(self: ScheduleState, loop: Loop, block: Block, write_buffer_index: Which, storage_scope: str) -> Block:
    """Copies what a block writes in each iteration of a loop: `cache_write`, then `reverse_compute_at` of the copy.

    rewrite:
        for i: for j: C[i, j] = f(A[i, j])
        -> for i:
             for j: C_local[i, j] = f(A[i, j])
             for x: C[i, x] = C_local[i, x]

    Returns the block that copies.

    Refuses:
    1. what `cache_write` refuses;
    2. copies that `reverse_compute_at` would not move into the loop.
    """

    def copied(schedule: ScheduleState) -> Block:
        copy = cache_write(schedule, block, write_buffer_index, storage_scope)
        reverse_compute_at(schedule, copy, loop)
        return copy

    return _tried(self, copied)


def _tried(self: ScheduleState, action: Callable[[ScheduleState], Block]) -> Block:
    """What several primitives give, of which none runs here where another one would refuse."""
    self.as_refusal(lambda: action(self.copy()))
    return action(self)


CASTS = (arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, arith.SIToFPOp, arith.UIToFPOp)
QUOTIENTS = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
)


@primitive
def cache_index(self: ScheduleState, block: Block, storage_scope: str, cse_thresh: int = 0) -> tuple[Block, ...]:
    """Precomputes, before the loops of a block, the indices at which it reads and other functions of its iterators.

    rewrite:
        for i, j: C[i, j] = A[i // 4 + j // 4, j]
        -> for i, j: index0[i, j] = i // 4 + j // 4
           for i, j: C[i, j] = A[index0[i, j], j]

    There is a table for each value that is used more than `cse_thresh` times. Returns the blocks that fill them, none
    where there is nothing to compute. Indices of what is written stay, and quotients by what may be negative or 0.

    Refuses:
    1. an unknown scope;
    2. a block with blocks inside;
    3. extents that come from memory or depend on a block around.
    """
    op, scope = block.op, checked_scope(self, storage_scope)
    if child_blocks(op):
        raise self.error(f'expected a block without blocks inside, got "{block.name}"')
    tables = _Computed(op).tables(cse_thresh)
    for values in tables:
        for number in _iterators(op, values[0]):
            sized_extent(self, op, number)
    fillers = [_tabulate(self, op, values, scope, f"{number}") for number, values in enumerate(tables)]
    return tuple(self.block(filler) for filler in fillers)


class _Computed:
    """The values of a block that follow from its iterators by ops that may run for any of their values."""

    def __init__(self, block: BlockOp):
        self._block = block
        self._keys: dict[SSAValue, Hashable] = {value: value for value in block.body.block.args}
        for op in block.body.walk():
            if isinstance(op, BufferViewOp) or not is_index_op(op) or len(op.results) != 1:
                continue
            if not _may_fail(op) and self._is_known(op):
                # Equal for values that are equal.
                operands = tuple(self._keys.get(operand, operand) for operand in op.operands)
                parts = (*op.properties.items(), *op.attributes.items())
                self._keys[op.results[0]] = (
                    op.name,
                    tuple(sorted(parts, key=lambda part: part[0])),
                    op.results[0].type,
                    operands,
                )

    def _is_known(self, op: Operation) -> bool:
        return all(operand in self._keys or self._is_outside(operand) for operand in op.operands)

    def _is_outside(self, value: SSAValue) -> bool:
        owner = value.owner.parent_op() if isinstance(value.owner, IRBlock) else value.owner
        return owner is not None and not is_inside(owner, self._block)

    def tables(self, threshold: int) -> list[list[SSAValue]]:
        """Values to look up, those that are equal together."""
        found: dict[Hashable, list[SSAValue]] = {}
        counts: dict[Hashable, int] = {}
        for value, key in self._keys.items():
            uses = len(list(self.uses_elsewhere(value)))
            if uses and not _is_plain(value) and _iterators(self._block, value):
                found.setdefault(key, []).append(value)
                counts[key] = counts.get(key, 0) + uses
        return [values for key, values in found.items() if counts[key] > threshold]

    def uses_elsewhere(self, value: SSAValue) -> Iterator[Use]:
        """The uses that are not on the way to another such value, and that need not see where the value comes from."""
        for use in value.uses:
            op = use.operation
            on_the_way = len(op.results) == 1 and op.results[0] in self._keys
            if not on_the_way and not _is_index(use):
                yield use


def _may_fail(op: Operation) -> bool:
    if not isinstance(op, QUOTIENTS):
        return False
    divisor = op.operands[1].owner
    known = divisor.value if isinstance(divisor, arith.ConstantOp) else None
    return not isinstance(known, IntegerAttr) or known.value.data <= 0


def _is_plain(value: SSAValue) -> bool:
    """Whether a value is an iterator or a number, or one of another dtype."""
    while isinstance(owner := value.owner, CASTS):
        value = owner.operands[0]
    return not isinstance(owner, Operation) or not owner.operands


def _is_index(use: Use) -> bool:
    """Whether the use is an index of what is written, in which iterators have to be seen, or a declaration."""
    op = use.operation
    return isinstance(op, ReadsOp | WritesOp) or (isinstance(op, StoreOp) and use.index >= 2)


def _iterators(block: BlockOp, value: SSAValue) -> list[int]:
    """The numbers of the iterators that a value depends on."""
    found: set[SSAValue] = set()
    pending = [value]
    while pending:
        owner = (current := pending.pop()).owner
        found.add(current)
        pending += owner.operands if isinstance(owner, Operation) and is_inside(owner, block) else ()
    return [number for number, argument in enumerate(block.body.block.args) if argument in found]


def _tabulate(self: ScheduleState, block: BlockOp, values: Sequence[SSAValue], scope: str, suffix: str) -> BlockOp:
    """The block that fills the table of equal values, which are looked up from now on."""
    numbers = _iterators(block, values[0])
    ranges = [AxisRange(constant(0), iterator_extent(self, block, number)) for number in numbers]
    position = next(iter(enclosing_loops(block)), block)
    kind = values[0].type
    is_index = isinstance(kind, IndexType)
    allocation = AllocBufferOp(BufferType([each.extent for each in ranges], i64 if is_index else kind, scope=scope))
    table = allocation.buffer
    table.name_hint = f"index{suffix}"
    Rewriter.insert_op(allocation, InsertPoint.before(position))
    uses = [(value, list(_Computed(block).uses_elsewhere(value))) for value in values]
    filler = _filler(self, block, numbers, values[0], table)
    filler.block_name = StringAttr(unique_block_name(self.func, f"index_{suffix}"))
    arguments = [block.body.block.args[number] for number in numbers]
    for value, used in uses:
        # The value as an element of the table, right after where it was computed.
        owner = value.owner
        load = LoadOp(table, arguments)
        ops: list[Operation] = [load]
        if isinstance(value.type, IndexType):
            ops.append(arith.IndexCastOp(load.result, IndexType()))
        if isinstance(owner, Operation):
            Rewriter.insert_op(ops, InsertPoint.after(owner))
        found = ops[-1].results[0]
        found.name_hint = value.name_hint
        for use in used:
            use.operation.operands[use.index] = found
    if any(isinstance(op, ReadsOp) for op in block.body.block.ops):
        first = next(op for op in block.body.block.ops if isinstance(op, ReadsOp))
        Rewriter.insert_op(ReadsOp(table, [RegionAxis(each) for each in arguments]), InsertPoint.before(first))
    insert_nest(self, filler, ranges, [f"ax{axis}" for axis in range(len(ranges))], InsertPoint.before(position))
    return filler


def _filler(self: ScheduleState, block: BlockOp, numbers: Sequence[int], value: SSAValue, table: SSAValue) -> BlockOp:
    extents = [block.extents[number] for number in numbers]
    hints = [f"v{axis}" for axis in range(len(numbers))]
    filler = BlockOp("index", [(IteratorKind.SPATIAL, extent, extent) for extent in extents], name_hints=hints)
    filler.location = block.location
    body = filler.body.block
    mapping: dict[SSAValue, SSAValue] = {
        block.body.block.args[number]: argument for number, argument in zip(numbers, body.args, strict=True)
    }
    position = next(iter(enclosing_loops(block)), block)
    stored = _cloned(value, position, body, mapping)
    if isinstance(value.type, IndexType):
        cast = arith.IndexCastOp(stored, i64)
        body.add_op(cast)
        stored = cast.result
    body.add_op(StoreOp(stored, table, body.args))
    return filler


def _cloned(value: SSAValue, position: Operation, body: IRBlock, mapping: dict[SSAValue, SSAValue]) -> SSAValue:
    """The value, computed at the end of `body` as far as it is computed in `position`."""
    owner = value.owner
    if value in mapping or not isinstance(owner, Operation) or not is_inside(owner, position):
        return mapping.get(value, value)
    for operand in owner.operands:
        _cloned(operand, position, body, mapping)
    body.add_op(owner.clone(mapping))
    return mapping[value]

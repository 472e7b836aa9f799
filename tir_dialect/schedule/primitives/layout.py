"""The order in which the elements of allocated buffers are stored."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import enclosing_block
from tir_dialect.dims import Dim, product
from tir_dialect.dtypes import lookup
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.buffers import Which, any_buffer, retype
from tir_dialect.schedule.edits import is_index_op, unique_block_name
from tir_dialect.schedule.elementwise import own_allocation
from tir_dialect.schedule.handles import Block
from tir_dialect.schedule.index_map import IndexMap, IndexMapLike
from tir_dialect.schedule.mapped_shape import mapped_shape
from tir_dialect.schedule.materialize import Materializer
from tir_dialect.schedule.nests import insert_nest, whole
from tir_dialect.schedule.program_order import describe
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.te.emit.expansions import emit_constant
from tir_dialect.types import BufferType, IteratorKind


@dataclass(frozen=True)
class _Access:
    op: LoadOp | StoreOp
    space: IndexSpace
    indices: tuple[Dim, ...]


@primitive
def transform_layout(
    self: ScheduleState,
    block: Block,
    buffer: Which,
    index_map: IndexMapLike,
    pad_value: float | None = None,
) -> None:
    """Stores element `[i, j]` of an allocated buffer at the indices that a map gives, in all accesses.

    rewrite:
        B = alloc [n, m];                B[i, j] = ...; ... = B[i, j]
        -> B = alloc [ceildiv(n, 4), m, 4];  B[i // 4, j, i % 4] = ...; ... = B[i // 4, j, i % 4]

    The map is text, `"(i, j) -> (floordiv(i, 4), j, mod(i, 4))"`, or a function of dimensions. Elements that it leaves
    free are filled with `pad_value`, or are not defined.

    Refuses parameters, maps that send two elements to one place, and accesses by vectors, views, calls, or at indices
    that come from memory.
    """
    value = any_buffer(self, block.op, buffer)
    allocation = own_allocation(self, value)
    kind = allocation.buffer_type
    try:
        wanted = IndexMap.of(index_map, kind.rank)
    except ValueError as error:
        raise self.error(str(error)) from None
    if callable(pad_value):
        raise self.error("expected a number to pad with, got a function")
    self.record_as(index_map, wanted)
    shape = mapped_shape(self, wanted, kind.shape)
    accesses = [_access(self, use.operation, value) for use in value.uses]
    retype(allocation.buffer, BufferType(shape, kind.dtype, scope=kind.scope, align=kind.align))
    for access in accesses:
        _rewrite(self, access, wanted)
    if pad_value is not None and self.space.prover.equal(product(shape), product(kind.shape)) is not True:
        _fill(self, allocation, pad_value)


def _access(self: ScheduleState, op: object, buffer: SSAValue) -> _Access:
    if not isinstance(op, LoadOp | StoreOp) or op.lanes is not None:
        raise self.error(f'buffer "{buffer.name_hint}" has other uses than loads and stores of elements')
    block = enclosing_block(op)
    space = self.space if block is None else IndexSpace(block)
    indices = [space.dim_of(index) for index in op.indices]
    known = tuple(index for index in indices if index is not None)
    if len(known) != len(indices):
        raise self.error(f'{describe(op)} uses buffer "{buffer.name_hint}" at indices that come from memory')
    return _Access(op, space, known)


def _rewrite(self: ScheduleState, access: _Access, index_map: IndexMap) -> None:
    op = access.op
    emitter = Materializer(self.func, access.space, InsertPoint.before(op))
    for index, value in zip(access.indices, op.indices, strict=True):
        emitter.remember(index, value)
    indices = [emitter.emit(access.space.prover.simplify(index)) for index in index_map.apply(access.indices)]
    new = LoadOp(op.buffer, indices) if isinstance(op, LoadOp) else StoreOp(op.value, op.buffer, indices)
    new.location = op.location
    Rewriter.replace_op(op, new)


def _fill(self: ScheduleState, allocation: AllocBufferOp, number: float) -> None:
    """Stores a number to all elements of a buffer where it is allocated."""
    kind, buffer = allocation.buffer_type, allocation.buffer
    first = allocation.next_op
    while isinstance(first, AllocBufferOp) or (first is not None and is_index_op(first)):
        first = first.next_op
    if first is None:
        return
    point = InsertPoint.before(first)
    emitter = Materializer(self.func, self.space, point)
    extents = [emitter.emit(extent) for extent in kind.shape]
    hints = [f"ax{axis}" for axis in range(kind.rank)]
    name = unique_block_name(self.func, f"{buffer.name_hint or 'buffer'}_pad")
    block = BlockOp(name, [(IteratorKind.SPATIAL, each, each) for each in extents], name_hints=[f"v{h}" for h in hints])
    body = block.body.block

    def insert(op: Operation) -> SSAValue:
        body.add_op(op)
        return op.results[0]

    body.add_op(StoreOp(emit_constant(insert, number, lookup(kind.dtype).type), buffer, body.args))
    insert_nest(self, block, whole(buffer), hints, point, allocation.location)

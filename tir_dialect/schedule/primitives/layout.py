"""Changing the layout of buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import enclosing_block
from tir_dialect.dims import Dim, product
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.handles import Block
from tir_dialect.schedule.index_map import IndexMap, IndexMapLike
from tir_dialect.schedule.legality.elementwise import own_allocation
from tir_dialect.schedule.legality.motion import describe, kind_of
from tir_dialect.schedule.rewriting.buffers import Which, any_buffer, retype
from tir_dialect.schedule.rewriting.mapped_shape import mapped_shape
from tir_dialect.schedule.rewriting.materialize import Materializer
from tir_dialect.schedule.rewriting.padding_values import PadValue, fill, old_indices, pad_value_of
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class ElementAccess:
    """A load or store of an element, and its indices."""

    op: LoadOp | StoreOp
    space: IndexSpace
    indices: tuple[Dim, ...]


@primitive
def transform_layout(
    self: ScheduleState,
    block: Block,
    buffer: Which,
    index_map: IndexMapLike,
    pad_value: PadValue | None = None,
    *,
    assume_injective_transform: bool = False,
) -> None:
    """Changes the layout of a buffer: a map gives the new indices of element `[i, j]`, in all accesses.

    rewrite:
        B = alloc [n, m];                B[i, j] = ...; ... = B[i, j]
        -> B = alloc [ceildiv(n, 4), m, 4];  B[i // 4, j, i % 4] = ...; ... = B[i // 4, j, i % 4]

    The map is text, `"(i, j) -> (floordiv(i, 4), j, mod(i, 4))"`, or a function of dimensions. Elements that it leaves
    free are filled with `pad_value`, a number or a map from positions to one, or are not defined. Of a parameter this
    is another function, which takes the elements in the new order; what is free of one that is only read is the
    caller's. With `assume_injective_transform` the caller answers for that the map sends no two elements to one
    position where this cannot be shown.

    Refuses:
    1. a view, and a parameter of a function that others in the module call;
    2. accesses of vectors, views and calls, and indices that come from memory;
    3. maps of another number of indices, over other symbols than those of the function, of indices that may be
       negative, or that may not be injective;
    4. a `pad_value` that is no number of the dtype, nor a map of positions to one;
    5. a `pad_value` for a parameter that is read and written, or whose unused elements cannot be determined.
    """
    value = any_buffer(self, block.op, buffer)
    kind = _layout_of(self, value)
    try:
        wanted = IndexMap.of(index_map, kind.rank)
    except ValueError as error:
        raise self.error(str(error)) from None
    self.record_as(index_map, wanted)
    shape = mapped_shape(self, wanted, kind.shape, assume_injective=assume_injective_transform)
    padding = None if pad_value is None else pad_value_of(self, pad_value, len(shape), kind.dtype)
    accesses = buffer_accesses(self, value)
    fills = self.space.prover.equal(product(shape), product(kind.shape)) is not True
    free = None
    if padding is not None and fills and not isinstance(value.owner, AllocBufferOp):
        fills = _is_output(self, value)
        # what the function does not write is the caller's
        free = old_indices(self, wanted, kind.shape, shape, value.name_hint or "buffer") if fills else None
    value = retype(value, BufferType(shape, kind.dtype, scope=kind.scope, align=kind.align))
    move_accesses(self, accesses, wanted)
    if padding is not None and fills:
        fill(self, value, padding, free)


def _layout_of(self: ScheduleState, buffer: SSAValue) -> BufferType:
    """The type of an allocated buffer, or of a parameter of a function that nobody else calls; refuses others."""
    if buffer.owner is not self.func.body.block:
        return own_allocation(self, buffer).buffer_type
    module, name = self.func.parent_op(), self.func.sym_name.data
    for op in () if module is None else module.walk():
        if any(_names(attribute, name) for attribute in op.properties.values()) and op is not self.func:
            raise self.error(f"buffer \"{buffer.name_hint}\" is a parameter, and '{op.name}' calls the function")
    return SSAValue.get(buffer, type=BufferType).type


def _names(attribute: Attribute, name: str) -> bool:
    return isinstance(attribute, SymbolRefAttr) and attribute.root_reference.data == name


def _is_output(self: ScheduleState, buffer: SSAValue) -> bool:
    """Whether a parameter is written; refuses one that is read, too."""
    written = any(isinstance(use.operation, StoreOp) for use in buffer.uses)
    if written and any(isinstance(use.operation, LoadOp) for use in buffer.uses):
        raise self.error(f'buffer "{buffer.name_hint}" is a parameter that is read and written, so it cannot be filled')
    return written


def buffer_accesses(self: ScheduleState, buffer: SSAValue) -> list[ElementAccess]:
    """All accesses of a buffer; refuses one that is not of an element at known indices."""
    return [_access(self, use.operation, buffer) for use in buffer.uses]


def move_accesses(self: ScheduleState, accesses: Sequence[ElementAccess], index_map: IndexMap) -> None:
    """Sends accesses to the indices that a map gives."""
    for access in accesses:
        _rewrite(self, access, index_map)


def _access(self: ScheduleState, op: Operation, buffer: SSAValue) -> ElementAccess:
    if not isinstance(op, LoadOp | StoreOp) or op.lanes is not None:
        raise self.error(
            f'buffer "{buffer.name_hint}" is used by {kind_of(op)}, expected loads and stores of single elements'
        )
    block = enclosing_block(op)
    space = self.space if block is None else IndexSpace(block)
    indices = [space.dim_of(index) for index in op.indices]
    known = tuple(index for index in indices if index is not None)
    if len(known) != len(indices):
        raise self.error(f'{describe(op)} uses buffer "{buffer.name_hint}" at indices that come from memory')
    return ElementAccess(op, space, known)


def _rewrite(self: ScheduleState, access: ElementAccess, index_map: IndexMap) -> None:
    op = access.op
    emitter = Materializer(self.func, access.space, InsertPoint.before(op))
    for index, value in zip(access.indices, op.indices, strict=True):
        emitter.remember(index, value)
    mapped = index_map.apply(access.indices)
    # of what has no values anything is equal to anything, but the iterators have to stay in the indices
    if not any(variable.is_empty for variable in access.space.variables.values()):
        mapped = [access.space.prover.simplify(index) for index in mapped]
    indices = [emitter.emit(index) for index in mapped]
    new = LoadOp(op.buffer, indices) if isinstance(op, LoadOp) else StoreOp(op.value, op.buffer, indices)
    new.location = op.location
    Rewriter.replace_op(op, new)

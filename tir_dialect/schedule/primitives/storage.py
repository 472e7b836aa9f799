"""Allocated buffers: their memory scope, strides, and the dtype of an intermediate one."""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType, i1
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.dtypes import ElementType, byte_size, parse_dtype, scalar_type
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.ops.regions import BufferViewOp, MatchBufferOp, ReadsOp, WritesOp
from tir_dialect.schedule.handles import Block
from tir_dialect.schedule.legality.elementwise import own_allocation
from tir_dialect.schedule.legality.motion import kind_of
from tir_dialect.schedule.rewriting.buffers import Which, any_buffer, checked_scope, retype, written_buffer
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.te.emit_scalar import emit_cast
from tir_dialect.types import BufferType


@primitive
def set_scope(self: ScheduleState, block: Block, buffer_index: Which, storage_scope: str) -> None:
    """Changes the storage scope of an allocated buffer.

    rewrite:
        B = alloc [n]
        -> B = alloc [n] in "local"

    Scopes that only GPUs have are `global`.

    Refuses:
    1. an unknown scope;
    2. a parameter or view.
    """
    scope = checked_scope(self, storage_scope)
    value = any_buffer(self, block.op, buffer_index)
    allocation = own_allocation(self, value)
    retype(allocation.buffer, allocation.buffer_type.with_scope(scope))


@primitive
def storage_align(
    self: ScheduleState, block: Block, buffer_index: Which, axis: int, factor: int, offset: int = 0
) -> None:
    """Pads an allocated buffer so that the stride of an axis is `factor * k + offset`.

    rewrite:
        B = alloc [n, 30]
        -> B = alloc [n, 30] with strides [32, 1]

    Refuses:
    1. a parameter or view, and a buffer with views;
    2. an axis that is not there, and the last one;
    3. a factor below 1, and an offset that is not below the factor.
    """
    value = any_buffer(self, block.op, buffer_index)
    kind = own_allocation(self, value).buffer_type
    position = axis + kind.rank if axis < 0 else axis
    if not 0 <= position < kind.rank - 1:
        raise self.error(f"expected an axis of 0 to {kind.rank - 2}, got {axis}")
    if factor < 1 or not 0 <= offset < factor:
        raise self.error(f"expected a factor of at least 1 and an offset below it, got {factor} and {offset}")
    if any(isinstance(use.operation, BufferViewOp) for use in value.uses):
        raise self.error(f'buffer "{value.name_hint}" has views, align it before they are made')
    retype(
        value,
        BufferType(
            kind.shape, kind.dtype, strides=_aligned(kind, position, factor, offset), scope=kind.scope, align=kind.align
        ),
    )


def _aligned(kind: BufferType, axis: int, factor: int, offset: int) -> list[Dim]:
    strides: list[Dim] = list(kind.strides)
    step = constant(1) if not strides else strides[-1]
    for position in reversed(range(kind.rank)):
        if position == axis:
            step = ceildiv(step - offset, factor) * factor + offset
        strides[position] = step if position <= axis else strides[position]
        step = strides[position] * kind.shape[position]
    return strides


@primitive
def unsafe_set_dtype(self: ScheduleState, block: Block, buffer_index: Which, dtype: str) -> None:
    """Changes the dtype of the buffer that a block writes: stores convert to it, loads convert back.

    rewrite:
        B = alloc [n] of f32;     B[i] = x;       y = B[i]
        -> B = alloc [n] of f16;  B[i] = f16(x);  y = f32(B[i])

    The only primitive that may change results: values are rounded to the new dtype.

    Refuses:
    1. a parameter or view;
    2. an unknown dtype, and truth values;
    3. uses other than loads and stores of single elements.
    """
    allocation = own_allocation(self, written_buffer(self, block.op, buffer_index))
    try:
        target = parse_dtype(dtype)
    except ValueError as error:
        raise self.error(str(error)) from None
    kind = allocation.buffer_type
    if i1 in (kind.element_type, target):
        raise self.error(f"expected numbers, got elements of {kind.element_type} and the dtype {target}")
    _check_uses(self, allocation.buffer)
    _convert(allocation.buffer, kind, target)


def _check_uses(self: ScheduleState, buffer: SSAValue) -> None:
    for use in buffer.uses:
        op = use.operation
        if isinstance(op, MatchBufferOp):
            _check_uses(self, op.view)
        elif not isinstance(op, ReadsOp | WritesOp) and not _is_of_one_element(op):
            raise self.error(
                f'buffer "{buffer.name_hint}" is used by {kind_of(op)}, expected loads and stores of single elements'
            )


def _is_of_one_element(op: Operation) -> bool:
    if not isinstance(op, LoadOp | StoreOp):
        return False
    value = op.result if isinstance(op, LoadOp) else op.value
    return not isinstance(value.type, VectorType)


def _convert(buffer: SSAValue, kind: BufferType, target: ElementType) -> None:
    """Gives a buffer and its views the dtype, and converts at each access."""
    align = kind.align if kind.align > byte_size(kind.dtype) else 1
    align = max(align, byte_size(target))
    own = BufferType(kind.shape, target, strides=kind.strides, offset=kind.offset, scope=kind.scope, align=align)
    new = Rewriter.replace_value_with_new_type(buffer, own)
    for op in dict.fromkeys(use.operation for use in new.uses):
        if isinstance(op, MatchBufferOp):
            _convert(op.view, op.view_type, target)
        elif isinstance(op, StoreOp):
            value = _cast(InsertPoint.before(op), op.value, kind.element_type, target)
            op.operands[0] = value
        elif isinstance(op, LoadOp):
            _load_back(op, kind.element_type, target)


def _load_back(load: LoadOp, source: ElementType, target: ElementType) -> None:
    users = [(use.operation, use.index) for use in load.result.uses]
    result = Rewriter.replace_value_with_new_type(load.result, scalar_type(target))
    value = _cast(InsertPoint.after(load), result, target, source)
    for user, index in users:
        user.operands[index] = value


def _cast(point: InsertPoint, value: SSAValue, source: ElementType, target: ElementType) -> SSAValue:
    ops: list[Operation] = []

    def insert(op: Operation) -> SSAValue:
        ops.append(op)
        return op.results[0]

    result = emit_cast(insert, value, source, target)
    Rewriter.insert_op(ops, point)
    return result

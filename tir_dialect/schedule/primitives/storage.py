"""The memory scope and the strides of allocated buffers."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.ops.view import BufferViewOp
from tir_dialect.schedule.handles import Block
from tir_dialect.schedule.legality.elementwise import own_allocation
from tir_dialect.schedule.rewriting.buffers import Which, any_buffer, checked_scope, retype
from tir_dialect.schedule.state import ScheduleState, primitive
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
    _set_strides(value, kind, _aligned(kind, position, factor, offset))


def _aligned(kind: BufferType, axis: int, factor: int, offset: int) -> list[Dim]:
    strides: list[Dim] = list(kind.strides)
    step = constant(1) if not strides else strides[-1]
    for position in reversed(range(kind.rank)):
        if position == axis:
            step = ceildiv(step - offset, factor) * factor + offset
        strides[position] = step if position <= axis else strides[position]
        step = strides[position] * kind.shape[position]
    return strides


def _set_strides(value: SSAValue, kind: BufferType, strides: list[Dim]) -> None:
    retype(value, BufferType(kind.shape, kind.dtype, strides=strides, scope=kind.scope, align=kind.align))

"""Storages, tensors, views and kills."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import llvm
from xdsl.ir import Operation, SSAValue

from lowering.native.abi import I8, I32, I64, PAYLOAD, PTR, TENSOR_OFFSET
from lowering.native.function import FunctionLowering
from lowering.native.ops.constants import dtype_word
from lowering.native.values import Boxed, Number, Storage, Unboxed
from vm_dialect.ops.memory import AllocStorageOp, AllocTensorOp, KillOp, NewTensorOp, ReadCondOp, ViewOp

_DIRECT_SIZES = 4
"""So many sizes are passed in registers."""


def lower_alloc_storage(lowering: FunctionLowering, op: AllocStorageOp) -> None:
    """A block from the cache of this op; in a loop, the block of the round before goes back first."""
    emit, arena = lowering.emit, lowering.frame.new_arena()
    size = lowering.number(op.size)
    if op.parent in lowering.plan.cyclic:
        emit.call(lowering.runtime("vmrt_arena_give"), [arena.cache, emit.load(arena.place, PTR)], None)
        emit.store(emit.value(llvm.ZeroOp.create(result_types=[PTR])), arena.place)
    block = lowering.runtime_value("vmrt_arena_take", [arena.cache, size], PTR)
    lowering.check(emit.is_null(block))
    emit.store(block, arena.place)
    lowering.values[op.result] = Storage(block, size)


def lower_alloc_tensor(lowering: FunctionLowering, op: AllocTensorOp) -> None:
    """An address inside the block, after a check that the tensor ends inside it too."""
    emit, element = lowering.emit, op.result.type.element
    storage, offset, sizes = lowering.values[op.storage], lowering.number(op.offset), lowering.numbers(op.dims)
    if not isinstance(storage, Storage) or element is None:
        raise ValueError("expected a storage and a known dtype")
    place = [storage.size, offset, emit.integer(dtype_word(element), I32)]
    if len(sizes) <= _DIRECT_SIZES:
        ones = [emit.integer(1)] * (_DIRECT_SIZES - len(sizes))
        lowering.call("vmrt_place", [*place, *sizes, *ones])
    else:
        lowering.call("vmrt_check_placement", [*place, emit.integer(len(sizes)), lowering.word_array(sizes)])
    lowering.values[op.result] = Unboxed(emit.displaced(storage.block, offset), tuple(sizes))


def lower_new_tensor(lowering: FunctionLowering, op: NewTensorOp) -> None:
    """A new tensor object."""
    emit, element = lowering.emit, op.result.type.element
    if element is None:
        raise ValueError("expected a known dtype")
    slot, sizes = lowering.result_slot(op.result), lowering.numbers(op.dims)
    arguments = [slot, emit.integer(len(sizes)), lowering.word_array(sizes), emit.integer(dtype_word(element), I32)]
    data = lowering.runtime_value("vmrt_new_tensor", arguments, PTR)
    lowering.check(emit.is_null(data))
    tensor = emit.offset(emit.load(slot, PTR, PAYLOAD), TENSOR_OFFSET)
    lowering.values[op.result] = Boxed(slot, True, tensor, data)


def lower_view(lowering: FunctionLowering, op: ViewOp) -> None:
    """New sizes; a tensor object too if the view is kept by anybody."""
    emit, source = lowering.emit, lowering.tensor(op.tensor)
    sizes = lowering.numbers(op.dims)
    words, rank = lowering.word_array(sizes), emit.integer(len(sizes))
    lowering.call("vmrt_check_count", [_element_count(lowering, op.tensor), rank, words])
    if op.result in lowering.plan.unboxed:
        lowering.values[op.result] = Unboxed(lowering.data(op.tensor), tuple(sizes))
        return
    if isinstance(source, Unboxed):
        raise ValueError("a view that is kept stands on a tensor that is none")
    slot = lowering.result_slot(op.result)
    lowering.call("vmrt_view", [slot, source.address, rank, words])
    lowering.values[op.result] = lowering.object_at(slot, op.result, owned=True)


def _element_count(lowering: FunctionLowering, tensor: SSAValue) -> SSAValue:
    emit, found = lowering.emit, lowering.tensor(tensor)
    if isinstance(found, Boxed):
        return lowering.runtime_value("vmrt_element_count", [found.address], I64)
    count = emit.integer(1)
    for size in found.sizes:
        count = emit.value(llvm.MulOp(count, size))
    return count


def lower_read_cond(lowering: FunctionLowering, op: ReadCondOp) -> None:
    """One byte of memory."""
    emit = lowering.emit
    byte = emit.load(lowering.data(op.tensor), I8)
    lowering.values[op.result] = Number(emit.compare("ne", byte, emit.integer(0, I8)))


def lower_kill(lowering: FunctionLowering, op: KillOp) -> None:
    """Empties the value's slot, if it has one and no view stands on its memory."""
    found = lowering.values[op.value]
    if isinstance(found, Boxed) and found.owned and op.value not in lowering.plan.pinned:
        lowering.emit.call(lowering.runtime("vmrt_clear"), [found.address], None)


LOWERINGS: dict[type[Operation], Callable[[FunctionLowering, Any], None]] = {
    AllocStorageOp: lower_alloc_storage,
    AllocTensorOp: lower_alloc_tensor,
    NewTensorOp: lower_new_tensor,
    ViewOp: lower_view,
    ReadCondOp: lower_read_cond,
    KillOp: lower_kill,
}
"""Of the ops on memory."""

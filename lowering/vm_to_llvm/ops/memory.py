"""Storages, tensors, views and kills."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.rewriting import op_rewrite_pattern
from lowering.vm_to_llvm.abi import I8, I32, I64, PAYLOAD, PTR, TENSOR_OFFSET
from lowering.vm_to_llvm.ops.constants import dtype_word
from lowering.vm_to_llvm.state import FunctionState
from lowering.vm_to_llvm.values import Boxed, Number, Storage, Unboxed
from tir_dialect.new_ops import new_op
from vm_dialect.ops.memory import AllocStorageOp, AllocTensorOp, KillOp, NewTensorOp, ReadCondOp, ViewOp

_DIRECT_SIZES = 4
"""So many sizes are passed in registers."""


class LowerAllocStorage(RewritePattern):
    """A block from the cache of this op; in a loop, the block of the round before goes back first."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AllocStorageOp, state: FunctionState) -> None:
        emit, arena = state.emit, state.frame.new_arena()
        size = state.number(op.size)
        if op.parent in state.plan.cyclic:
            emit.call(state.runtime("vmrt_arena_give"), [arena.cache, emit.load(arena.pointer, PTR)], None)
            emit.store(emit.value(new_op(llvm.ZeroOp, (), (PTR,))), arena.pointer)
        block = state.runtime_value("vmrt_arena_take", [arena.cache, size], PTR)
        state.check(emit.is_null(block))
        emit.store(block, arena.pointer)
        state.values[op.result] = Storage(block, size)


class LowerAllocTensor(RewritePattern):
    """An address inside the block, after a check that the tensor ends inside it too."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AllocTensorOp, state: FunctionState) -> None:
        emit, element = state.emit, op.result.type.element
        storage, offset, sizes = state.values[op.storage], state.number(op.offset), state.numbers(op.dims)
        if not isinstance(storage, Storage) or element is None:
            raise ValueError("expected a storage and a known dtype")
        layout = [storage.size, offset, emit.integer(dtype_word(element), I32)]
        if len(sizes) <= _DIRECT_SIZES:
            ones = [emit.integer(1)] * (_DIRECT_SIZES - len(sizes))
            state.call("vmrt_place", [*layout, *sizes, *ones])
        else:
            state.call("vmrt_check_placement", [*layout, emit.integer(len(sizes)), state.word_array(sizes)])
        state.values[op.result] = Unboxed(emit.displaced(storage.block, offset), tuple(sizes))


class LowerNewTensor(RewritePattern):
    """A new tensor object."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: NewTensorOp, state: FunctionState) -> None:
        emit, element = state.emit, op.result.type.element
        if element is None:
            raise ValueError("expected a known dtype")
        slot, sizes = state.result_slot(op.result), state.numbers(op.dims)
        arguments = [slot, emit.integer(len(sizes)), state.word_array(sizes), emit.integer(dtype_word(element), I32)]
        data = state.runtime_value("vmrt_new_tensor", arguments, PTR)
        state.check(emit.is_null(data))
        tensor = emit.offset(emit.load(slot, PTR, PAYLOAD), TENSOR_OFFSET)
        state.values[op.result] = Boxed(slot, True, tensor, data)


class LowerView(RewritePattern):
    """New sizes; a tensor object too if the view is kept by anybody."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ViewOp, state: FunctionState) -> None:
        emit, source = state.emit, state.tensor(op.tensor)
        sizes = state.numbers(op.dims)
        words, rank = state.word_array(sizes), emit.integer(len(sizes))
        state.call("vmrt_check_count", [element_count(state, op.tensor), rank, words])
        if op.result in state.plan.unboxed:
            state.values[op.result] = Unboxed(state.data(op.tensor), tuple(sizes))
            return
        if isinstance(source, Unboxed):
            raise ValueError("a view that is kept stands on a tensor that is none")
        slot = state.result_slot(op.result)
        state.call("vmrt_view", [slot, source.address, rank, words])
        state.values[op.result] = state.object_at(slot, op.result, owned=True)


def element_count(state: FunctionState, tensor: SSAValue) -> SSAValue:
    """The number of elements of a tensor."""
    emit, found = state.emit, state.tensor(tensor)
    if isinstance(found, Boxed):
        return state.runtime_value("vmrt_element_count", [found.address], I64)
    count = emit.integer(1)
    for size in found.sizes:
        count = emit.value(llvm.MulOp(count, size))
    return count


class LowerReadCond(RewritePattern):
    """One byte of memory."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ReadCondOp, state: FunctionState) -> None:
        emit = state.emit
        byte = emit.load(state.data(op.tensor), I8)
        state.values[op.result] = Number(emit.compare("ne", byte, emit.integer(0, I8)))


class LowerKill(RewritePattern):
    """Empties the value's slot, if it has one and no view stands on its memory."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: KillOp, state: FunctionState) -> None:
        found = state.values[op.value]
        if isinstance(found, Boxed) and found.owned and op.value not in state.plan.pinned:
            state.emit.call(state.runtime("vmrt_clear"), [found.address], None)

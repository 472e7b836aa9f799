"""Storages, tensors, views and kills; shapes and dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.rewriting import op_rewrite_pattern
from lowering.vm_to_llvm.abi import I8, I32, I64, PAYLOAD, PTR, SHAPE, SHAPE_DATA, TENSOR_OFFSET
from lowering.vm_to_llvm.plan import SIZE_OF_TENSOR, Boxed, Number, Storage, Unboxed
from lowering.vm_to_llvm.state import FunctionState
from lowering.vm_to_llvm.values import dtype_word
from tir_dialect.fast_ops import new_op
from vm_dialect.ops.memory import (
    AllocStorageOp,
    AllocTensorOp,
    KillOp,
    MakeShapeOp,
    NewTensorOp,
    ReadCondOp,
    ReadIntOp,
    ShapeDimOp,
    ShapeOfOp,
    TensorDimOp,
    ViewOp,
)
from vm_dialect.types import ShapeType, TensorType

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


class LowerTensorDim(RewritePattern):
    """A register of an unboxed tensor; a load, checked unless the type tells the rank, of any other."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: TensorDimOp, state: FunctionState) -> None:
        emit, axis, found = state.emit, op.axis.value.data, state.tensor(op.tensor)
        if isinstance(found, Unboxed):
            state.values[op.result] = Number(found.sizes[axis], SIZE_OF_TENSOR)
        elif isinstance(op.tensor.type, TensorType) and op.tensor.type.rank is not None and found.tensor is not None:
            sizes = emit.load(found.tensor, PTR, SHAPE)
            state.values[op.result] = Number(emit.load(sizes, I64, 8 * axis), SIZE_OF_TENSOR)
        else:
            state.values[op.result] = Number(
                _checked_dim(state, "vmrt_tensor_dim", found.address, axis), SIZE_OF_TENSOR
            )


class LowerShapeDim(RewritePattern):
    """A load, checked unless the type tells the rank."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ShapeDimOp, state: FunctionState) -> None:
        emit, axis, address = state.emit, op.axis.value.data, state.any_at(op.shape, 0)
        if isinstance(op.shape.type, ShapeType) and op.shape.type.rank is not None:
            sizes = emit.load(emit.load(address, PTR, PAYLOAD), PTR, SHAPE_DATA)
            state.values[op.result] = Number(emit.load(sizes, I64, 8 * axis))
        else:
            state.values[op.result] = Number(_checked_dim(state, "vmrt_shape_dim", address, axis))


class LowerReadInt(RewritePattern):
    """A load after a check of the index."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ReadIntOp, state: FunctionState) -> None:
        state.values[op.result] = Number(
            _checked_dim(state, "vmrt_read_int", state.any_at(op.tensor, 0), op.index.value.data)
        )


def _checked_dim(state: FunctionState, name: str, address: SSAValue, axis: int) -> SSAValue:
    out = state.words.at_least(1)
    state.call(name, [out, address, state.emit.integer(axis)])
    return state.emit.load(out, I64)


class LowerShapeOf(RewritePattern):
    """A new shape object."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ShapeOfOp, state: FunctionState) -> None:
        found = state.tensor(op.tensor)
        if isinstance(found, Unboxed):
            _make_shape(state, op.result, found.sizes)
            return
        slot = state.result_slot(op.result)
        state.call("vmrt_shape_of", [slot, found.address])
        state.values[op.result] = Boxed(slot, owned=True)


class LowerMakeShape(RewritePattern):
    """A new shape object."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MakeShapeOp, state: FunctionState) -> None:
        _make_shape(state, op.result, state.numbers(op.dims))


def _make_shape(state: FunctionState, result: SSAValue, sizes: Sequence[SSAValue]) -> None:
    slot = state.result_slot(result)
    state.call("vmrt_make_shape", [slot, state.word_array(sizes), state.emit.integer(len(sizes))])
    state.values[result] = Boxed(slot, owned=True)

"""Shapes and dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.rewriting import op_rewrite_pattern
from lowering.vm_to_llvm.abi import I64, PAYLOAD, PTR, SHAPE, SHAPE_DATA
from lowering.vm_to_llvm.state import FunctionState
from lowering.vm_to_llvm.values import SIZE_OF_TENSOR, Boxed, Number, Unboxed
from vm_dialect.ops.shapes import MakeShapeOp, ReadIntOp, ShapeDimOp, ShapeOfOp, TensorDimOp
from vm_dialect.types import ShapeType, TensorType


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

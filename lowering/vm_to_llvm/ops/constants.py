"""Constants: numbers are registers, small values literals of the module, all others objects made at load."""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr
from xdsl.pattern_rewriter import RewritePattern

from lowering.rewriting import op_rewrite_pattern
from lowering.vm_to_llvm.abi import DTYPE, F64, I1, I64, NULL
from lowering.vm_to_llvm.state import FunctionState
from lowering.vm_to_llvm.values import Boxed, Interval, Number
from vm_dialect.dtypes import ElementType, element_type
from vm_dialect.ops.constants import ConstantTensorOp, ConstOp, DtypeOp, NullOp, StrOp


def dtype_word(element: ElementType) -> int:
    """The `DLDataType` of an element type as one integer of 32 bits: code, bits and one lane."""
    return element.code | element.bits << 8 | 1 << 16


class LowerConst(RewritePattern):
    """A number is a register."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ConstOp, state: FunctionState) -> None:
        emit, value = state.emit, op.value
        if isinstance(value, FloatAttr):
            state.values[op.result] = Number(emit.float(value.value.data, F64))
            return
        number = value.value.data
        state.values[op.result] = Number(
            emit.integer(number, I1 if value.type == I1 else I64), Interval(number, number)
        )


class LowerStr(RewritePattern):
    """A string is a literal if it is short."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: StrOp, state: FunctionState) -> None:
        address = state.object_address(state.shared.string(op.value.data.encode()))
        state.values[op.result] = Boxed(address, owned=False)


class LowerDtype(RewritePattern):
    """An element type is a literal."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: DtypeOp, state: FunctionState) -> None:
        literal = state.shared.literal(DTYPE, dtype_word(element_type(str(op.value))))
        state.values[op.result] = Boxed(state.emit.address(literal), owned=False)


class LowerNull(RewritePattern):
    """Null is a literal."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: NullOp, state: FunctionState) -> None:
        literal = state.shared.literal(NULL, 0)
        state.values[op.result] = Boxed(state.emit.address(literal), owned=False)


class LowerConstantTensor(RewritePattern):
    """A constant tensor is an object that the loader hands over."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ConstantTensorOp, state: FunctionState) -> None:
        address = state.object_address(state.shared.constant(op.symbol.root_reference.data))
        state.values[op.result] = state.object_at(address, op.result, owned=False)

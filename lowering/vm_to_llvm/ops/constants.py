"""Constants: numbers are registers, small values literals of the module, all others objects made at load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation

from lowering.vm_to_llvm.abi import DTYPE, I1, I64, NULL
from lowering.vm_to_llvm.intervals import Interval
from lowering.vm_to_llvm.state import FunctionState
from lowering.vm_to_llvm.values import Boxed, Number
from vm_dialect.dtypes import ElementType, element_type
from vm_dialect.ops.constants import ConstantTensorOp, ConstOp, DtypeOp, NullOp, StrOp


def dtype_word(element: ElementType) -> int:
    """The `DLDataType` of an element type as one integer of 32 bits: code, bits and one lane."""
    return element.code | element.bits << 8 | 1 << 16


def lower_const(state: FunctionState, op: ConstOp) -> None:
    """A number is a register."""
    emit, value = state.emit, op.value
    if isinstance(value, FloatAttr):
        state.values[op.result] = Number(emit.float(value.value.data))
        return
    number = value.value.data
    state.values[op.result] = Number(emit.integer(number, I1 if value.type == I1 else I64), Interval(number, number))


def lower_str(state: FunctionState, op: StrOp) -> None:
    """A string is a literal if it is short."""
    address = state.object_address(state.shared.string(op.value.data.encode()))
    state.values[op.result] = Boxed(address, owned=False)


def lower_dtype(state: FunctionState, op: DtypeOp) -> None:
    """An element type is a literal."""
    literal = state.shared.literal(DTYPE, dtype_word(element_type(str(op.value))))
    state.values[op.result] = Boxed(state.emit.address(literal), owned=False)


def lower_null(state: FunctionState, op: NullOp) -> None:
    """Null is a literal."""
    literal = state.shared.literal(NULL, 0)
    state.values[op.result] = Boxed(state.emit.address(literal), owned=False)


def lower_constant_tensor(state: FunctionState, op: ConstantTensorOp) -> None:
    """A constant tensor is an object that the loader hands over."""
    address = state.object_address(state.shared.constant(op.symbol.root_reference.data))
    state.values[op.result] = state.object_at(address, op.result, owned=False)


LOWERINGS: dict[type[Operation], Callable[[FunctionState, Any], None]] = {
    ConstOp: lower_const,
    StrOp: lower_str,
    DtypeOp: lower_dtype,
    NullOp: lower_null,
    ConstantTensorOp: lower_constant_tensor,
}
"""Of the constants."""

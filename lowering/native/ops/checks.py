"""Checks: what passes is inline or one call, what fails is formatted by the run-time support."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import llvm
from xdsl.ir import Operation, SSAValue

from lowering.native.abi import BOOL, F64, FLOAT, FUNCTION, I32, I64, INT, PAYLOAD, PTR
from lowering.native.function import FunctionLowering
from lowering.native.ops.constants import dtype_word
from lowering.native.runtime_text import format_string
from lowering.native.values import Boxed, Number
from vm_dialect import messages
from vm_dialect.ops.checks import (
    AssertOp,
    CheckBoolOp,
    CheckFloatOp,
    CheckFuncOp,
    CheckIntOp,
    CheckOp,
    CheckShapeOp,
    CheckTensorOp,
    CheckTupleOp,
)


def lower_check_tensor(lowering: FunctionLowering, op: CheckTensorOp) -> None:
    """The `DLTensor` of the value; a value of the frame is copied, since it may be killed before its tensor."""
    emit, kind = lowering.emit, op.result.type
    address = lowering.any_at(op.value, 0)
    rank = emit.integer(-1 if kind.rank is None else kind.rank)
    dtype = emit.integer(0 if kind.element is None else dtype_word(kind.element), I32)
    arguments = [address, rank, dtype, lowering.text(op.subject_text)]
    tensor = lowering.runtime_value("vmrt_check_tensor", arguments, PTR)
    lowering.check(emit.is_null(tensor))
    address = _keep(lowering, op, address)
    lowering.values[op.result] = lowering.tensor_at(address, tensor, owned=lowering.frame.holds(op.result))


def lower_check_shape(lowering: FunctionLowering, op: CheckShapeOp) -> None:
    """Kind and rank."""
    address = lowering.any_at(op.value, 0)
    rank = lowering.emit.integer(-1 if op.result.type.rank is None else op.result.type.rank)
    lowering.call("vmrt_check_shape", [address, rank, lowering.text(op.subject_text)])
    _keep_object(lowering, op, address)


def lower_check_tuple(lowering: FunctionLowering, op: CheckTupleOp) -> None:
    """Kind and number of fields."""
    size = op.size.value.data
    template = format_string(messages.wrong_size(op.subject_text, size))
    address = lowering.any_at(op.value, 0)
    message = lowering.emit.address(lowering.shared.text(template))
    subject = lowering.text(op.subject_text)
    lowering.call("vmrt_check_tuple", [address, lowering.emit.integer(size), message, subject])
    _keep_object(lowering, op, address)


def lower_check_func(lowering: FunctionLowering, op: CheckFuncOp) -> None:
    """Kind."""
    address = lowering.any_at(op.value, 0)
    _check_kind(lowering, op, address, FUNCTION, "function")
    _keep_object(lowering, op, address)


def lower_check_int(lowering: FunctionLowering, op: CheckIntOp) -> None:
    """Kind; the payload is the integer."""
    address = lowering.any_at(op.value, 0)
    _check_kind(lowering, op, address, INT, "int")
    lowering.values[op.result] = Number(lowering.emit.load(address, I64, PAYLOAD))


def lower_check_bool(lowering: FunctionLowering, op: CheckBoolOp) -> None:
    """Kind; the payload is 0 or 1."""
    emit, address = lowering.emit, lowering.any_at(op.value, 0)
    _check_kind(lowering, op, address, BOOL, "bool")
    lowering.values[op.result] = Number(emit.compare("ne", emit.load(address, I64, PAYLOAD), emit.integer(0)))


def lower_check_float(lowering: FunctionLowering, op: CheckFloatOp) -> None:
    """Kind; an integer is converted."""
    emit, address = lowering.emit, lowering.any_at(op.value, 0)
    is_integer = emit.compare("eq", emit.load(address, I32), emit.integer(INT, I32))
    convert, check, join = emit.new_block(), emit.new_block(), emit.new_block([F64])
    emit.branch_if(is_integer, convert, check)
    emit.start(convert)
    emit.branch(join, emit.value(llvm.SIToFPOp(emit.load(address, I64, PAYLOAD), F64)))
    emit.start(check)
    _check_kind(lowering, op, address, FLOAT, "float")
    emit.branch(join, emit.load(address, F64, PAYLOAD))
    emit.start(join)
    lowering.values[op.result] = Number(join.args[0])


def lower_assert(lowering: FunctionLowering, op: AssertOp) -> None:
    """A branch to a call that formats the message."""
    emit = lowering.emit
    failing, following = emit.new_block(), emit.new_block()
    emit.branch_if(lowering.number(op.condition), following, failing)
    emit.start(failing)
    message = emit.address(lowering.shared.text(format_string(op.message.data)))
    integers = lowering.numbers(op.values)
    lowering.raise_error("ValueError", message, integers)
    emit.branch(lowering.exit, lowering.place())
    emit.start(following)


def _check_kind(lowering: FunctionLowering, op: CheckOp, address: SSAValue, kind: int, name: str) -> None:
    """Compares the type index."""
    emit = lowering.emit
    differs = emit.compare("ne", emit.load(address, I32), emit.integer(kind, I32))
    message = emit.address(lowering.shared.text(format_string(messages.wrong_kind("{subject}", name))))
    lowering.fail_if(differs, "vmrt_fail_kind", [address, message, lowering.text(op.subject_text)])


def _keep(lowering: FunctionLowering, op: CheckOp, address: SSAValue) -> SSAValue:
    """Where the checked value stays: where it is, if it is borrowed, else in a slot of its own."""
    (result,) = op.results
    if not lowering.frame.holds(result):
        return address
    slot = lowering.result_slot(result)
    lowering.call("vmrt_assign", [slot, address])
    return slot


def _keep_object(lowering: FunctionLowering, op: CheckOp, address: SSAValue) -> None:
    (result,) = op.results
    lowering.values[result] = Boxed(_keep(lowering, op, address), owned=lowering.frame.holds(result))


LOWERINGS: dict[type[Operation], Callable[[FunctionLowering, Any], None]] = {
    CheckTensorOp: lower_check_tensor,
    CheckShapeOp: lower_check_shape,
    CheckTupleOp: lower_check_tuple,
    CheckFuncOp: lower_check_func,
    CheckIntOp: lower_check_int,
    CheckBoolOp: lower_check_bool,
    CheckFloatOp: lower_check_float,
    AssertOp: lower_assert,
}
"""Of the checks."""

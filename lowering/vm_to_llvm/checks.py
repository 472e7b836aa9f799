"""Checks: the fast path is inline or one call; errors are formatted by the runtime."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.rewriting import op_rewrite_pattern
from lowering.vm_to_llvm.abi import BOOL, F64, FLOAT, FUNCTION, I32, I64, INT, PAYLOAD, PTR
from lowering.vm_to_llvm.memory import element_count
from lowering.vm_to_llvm.plan import Boxed, Number
from lowering.vm_to_llvm.runtime_builder import format_string
from lowering.vm_to_llvm.state import FunctionState
from lowering.vm_to_llvm.values import dtype_word
from vm_dialect import messages
from vm_dialect.ops.checks import (
    AssertOp,
    CheckApartOp,
    CheckBoolOp,
    CheckFloatOp,
    CheckFuncOp,
    CheckIntOp,
    CheckOp,
    CheckShapeOp,
    CheckTensorOp,
    CheckTupleOp,
)
from vm_dialect.types import TensorType


class LowerCheckTensor(RewritePattern):
    """The `DLTensor` of the value; a value of the frame is copied, since it may be killed before its tensor."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CheckTensorOp, state: FunctionState) -> None:
        emit, kind = state.emit, op.result.type
        address = state.any_at(op.value, 0)
        rank = emit.integer(-1 if kind.rank is None else kind.rank)
        dtype = emit.integer(0 if kind.element is None else dtype_word(kind.element), I32)
        arguments = [address, rank, dtype, state.text(op.subject_text)]
        tensor = state.runtime_value("vmrt_check_tensor", arguments, PTR)
        state.check(emit.is_null(tensor))
        address = _keep(state, op, address)
        state.values[op.result] = state.tensor_at(address, tensor, owned=state.frame.holds(op.result))


class LowerCheckShape(RewritePattern):
    """Kind and rank."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CheckShapeOp, state: FunctionState) -> None:
        address = state.any_at(op.value, 0)
        rank = state.emit.integer(-1 if op.result.type.rank is None else op.result.type.rank)
        state.call("vmrt_check_shape", [address, rank, state.text(op.subject_text)])
        _keep_object(state, op, address)


class LowerCheckTuple(RewritePattern):
    """Kind and number of fields."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CheckTupleOp, state: FunctionState) -> None:
        size = op.size.value.data
        template = format_string(messages.wrong_size(op.subject_text, size))
        address = state.any_at(op.value, 0)
        message = state.emit.address(state.shared.text(template))
        subject = state.text(op.subject_text)
        state.call("vmrt_check_tuple", [address, state.emit.integer(size), message, subject])
        _keep_object(state, op, address)


class LowerCheckFunc(RewritePattern):
    """Kind."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CheckFuncOp, state: FunctionState) -> None:
        address = state.any_at(op.value, 0)
        _check_kind(state, op, address, FUNCTION, "function")
        _keep_object(state, op, address)


class LowerCheckInt(RewritePattern):
    """Kind; the payload is the integer."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CheckIntOp, state: FunctionState) -> None:
        address = state.any_at(op.value, 0)
        _check_kind(state, op, address, INT, "int")
        state.values[op.result] = Number(state.emit.load(address, I64, PAYLOAD))


class LowerCheckBool(RewritePattern):
    """Kind; the payload is 0 or 1."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CheckBoolOp, state: FunctionState) -> None:
        emit, address = state.emit, state.any_at(op.value, 0)
        _check_kind(state, op, address, BOOL, "bool")
        state.values[op.result] = Number(emit.compare("ne", emit.load(address, I64, PAYLOAD), emit.integer(0)))


class LowerCheckFloat(RewritePattern):
    """Kind; an integer is converted."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CheckFloatOp, state: FunctionState) -> None:
        emit, address = state.emit, state.any_at(op.value, 0)
        is_integer = emit.compare("eq", emit.load(address, I32), emit.integer(INT, I32))
        convert, check, join = emit.new_block(), emit.new_block(), emit.new_block([F64])
        emit.branch_if(is_integer, convert, check)
        emit.start(convert)
        emit.branch(join, emit.value(llvm.SIToFPOp(emit.load(address, I64, PAYLOAD), F64)))
        emit.start(check)
        _check_kind(state, op, address, FLOAT, "float")
        emit.branch(join, emit.load(address, F64, PAYLOAD))
        emit.start(join)
        state.values[op.result] = Number(join.args[0])


class LowerAssert(RewritePattern):
    """A branch to a call that formats the message."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AssertOp, state: FunctionState) -> None:
        emit = state.emit
        failing, following = emit.new_block(), emit.new_block()
        emit.branch_if(state.number(op.condition), following, failing)
        emit.start(failing)
        message = emit.address(state.shared.text(format_string(op.message.data)))
        integers = state.numbers(op.values)
        state.raise_error("ValueError", message, integers)
        emit.branch(state.exit, state.location_offset())
        emit.start(following)


class LowerCheckApart(RewritePattern):
    """One call on the addresses and bytes of both."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CheckApartOp, state: FunctionState) -> None:
        message = state.emit.address(state.shared.text(format_string(op.message.data)))
        state.call("vmrt_check_apart", [*_bytes(state, op.first), *_bytes(state, op.second), message])


def _bytes(state: FunctionState, tensor: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Where the memory of a tensor of known dtype begins, and how many bytes it has."""
    element = tensor.type.element if isinstance(tensor.type, TensorType) else None
    if element is None:
        raise ValueError(f"expected a tensor of known dtype, got a value of type {tensor.type}")
    size = state.emit.integer(element.itemsize)
    return state.data(tensor), state.emit.value(llvm.MulOp(element_count(state, tensor), size))


def _check_kind(state: FunctionState, op: CheckOp, address: SSAValue, kind: int, name: str) -> None:
    """Compares the type index."""
    emit = state.emit
    differs = emit.compare("ne", emit.load(address, I32), emit.integer(kind, I32))
    message = emit.address(state.shared.text(format_string(messages.wrong_kind("{subject}", name))))
    state.fail_if(differs, "vmrt_fail_kind", [address, message, state.text(op.subject_text)])


def _keep(state: FunctionState, op: CheckOp, address: SSAValue) -> SSAValue:
    """Where the checked value stays: where it is, if it is borrowed, else in a slot of its own."""
    (result,) = op.results
    if not state.frame.holds(result):
        return address
    slot = state.result_slot(result)
    state.call("vmrt_assign", [slot, address])
    return slot


def _keep_object(state: FunctionState, op: CheckOp, address: SSAValue) -> None:
    (result,) = op.results
    state.values[result] = Boxed(_keep(state, op, address), owned=state.frame.holds(result))

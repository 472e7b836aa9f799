"""Calls of functions, kernels, packed functions and closures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import llvm
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from lowering.diagnostics import fail
from lowering.native.abi import ANY_BYTES, BODY_PREFIX, F64, I1, I16, I32, I64, PAYLOAD
from lowering.native.function import FunctionLowering
from lowering.native.plan import is_number
from lowering.native.symbols import ENTRY_PREFIX
from lowering.native.values import Boxed, Number
from vm_dialect.ops.calls import CallClosureOp, CallKernelOp, CallOp, CallPackedOp, MakeClosureOp
from vm_dialect.types import TensorType


def lower_call(lowering: FunctionLowering, op: CallOp) -> None:
    """A direct call; objects are borrowed by the callee, or moved if it takes them by value."""
    callee = op.callee.root_reference.data
    if callee in lowering.facts.tail_targets:
        _call_by_value(lowering, op, callee)
        return
    arguments = [
        lowering.number(value) if kind in (I64, I1, F64) else lowering.any_at(value, cell)
        for cell, (value, kind) in enumerate(zip(op.arguments, _parameters(lowering, callee), strict=True))
    ]
    target = _result_address(lowering, op.result)
    lowering.check(lowering.emit.status(BODY_PREFIX + callee, [target, *arguments]))
    _bind_result(lowering, op.result, target)


def _parameters(lowering: FunctionLowering, callee: str) -> Sequence[Attribute]:
    return lowering.facts.parameters[callee]


def _call_by_value(lowering: FunctionLowering, op: CallOp, callee: str) -> None:
    """Copies of objects go along as pairs of registers; a tail call leaves the frame before."""
    emit = lowering.emit
    arguments: list[SSAValue] = []
    copies = lowering.frame.temporary_slots(len(op.arguments))
    for index, (value, kind) in enumerate(zip(op.arguments, _parameters(lowering, callee), strict=True)):
        if kind in (I64, I1, F64):
            arguments.append(lowering.number(value))
            continue
        place = emit.offset(copies, index * ANY_BYTES)
        lowering.call("vmrt_assign", [place, lowering.any_at(value, index)])
        arguments += [emit.load(place, I64), emit.load(place, I64, PAYLOAD)]
        emit.store(emit.integer(0), place)
    name = BODY_PREFIX + callee
    if op in lowering.facts.tail_calls:
        lowering.give_back()
        call = llvm.CallOp(name, emit.arguments[0], *arguments, return_type=I32, calling_convention=_TAIL)
        call.TailCallKind = llvm.TailCallKindAttr(llvm.TailCallKind.MUST_TAIL)
        emit.return_(emit.value(call))
        return
    target = _result_address(lowering, op.result)
    lowering.check(emit.status(name, [target, *arguments], "tailcc"))
    _bind_result(lowering, op.result, target)


_TAIL = llvm.CallingConventionAttr("tailcc")


def _result_address(lowering: FunctionLowering, result: SSAValue | None) -> SSAValue:
    """Where the callee puts its result; a number is taken from there at once."""
    if result is not None and is_number(result):
        scratch = lowering.scratch.at_least(1)
        lowering.emit.store(lowering.emit.integer(0), scratch)
        return scratch
    return lowering.result_slot(result)


def _bind_result(lowering: FunctionLowering, result: SSAValue | None, address: SSAValue) -> None:
    if result is None:
        return
    emit = lowering.emit
    if not is_number(result):
        lowering.values[result] = lowering.object_at(address, result, owned=True)
    elif result.type == I1:
        lowering.values[result] = Number(emit.compare("ne", emit.load(address, I64, PAYLOAD), emit.integer(0)))
    else:
        lowering.values[result] = Number(emit.load(address, result.type, PAYLOAD))


def lower_call_kernel(lowering: FunctionLowering, op: CallKernelOp) -> None:
    """A direct call on sizes, data pointers and scalars."""
    arguments = lowering.numbers(op.sizes)
    for value in op.arguments:
        arguments.append(lowering.data(value) if isinstance(value.type, TensorType) else lowering.number(value))
    name = op.callee.root_reference.data
    kernel = lowering.facts.kernels.get(name) or lowering.shared.kernel(name, [value.type for value in arguments])
    if len(kernel.parameters) != len(arguments):
        message = f"@{name} expects {len(kernel.parameters)} arguments, got {len(arguments)}"
        fail(op, message, "pass the kernel's sizes, then its tensors and scalars")
    converted = [_convert(lowering, op, *pair) for pair in zip(arguments, kernel.parameters, strict=True)]
    symbol = lowering.shared.declare(kernel.symbol, kernel.function_type)
    lowering.check(lowering.emit.status(symbol, converted))


def _convert(lowering: FunctionLowering, op: CallKernelOp, argument: SSAValue, kind: Attribute) -> SSAValue:
    """A scalar as the kernel takes it: integers are cut off, floats rounded."""
    emit, given = lowering.emit, argument.type
    if given == kind:
        return argument
    if isa(kind, IntegerType) and given == I64:
        width = IntegerType(kind.width.data)
        return argument if width == I64 else emit.value(llvm.TruncOp(argument, width))
    if isa(kind, IntegerType) and given == I1:
        return emit.value(llvm.ZExtOp(argument, IntegerType(kind.width.data)))
    if isinstance(kind, Float16Type | Float32Type) and given == F64:
        return emit.value(llvm.FPTruncOp(argument, kind))
    if isinstance(kind, BFloat16Type) and given == F64:
        return lowering.runtime_value("vmrt_bf16", [argument], I16)
    fail(op, f"@{op.callee.root_reference.data} expects an argument of type {kind}, got {given}")


def lower_call_packed(lowering: FunctionLowering, op: CallPackedOp) -> None:
    """A call through tvm-ffi of a function that was found at load."""
    callee = lowering.object_address(lowering.shared.packed_function(op.function.data))
    _call_function(lowering, callee, op.arguments, op.result)


def lower_call_closure(lowering: FunctionLowering, op: CallClosureOp) -> None:
    """A call through tvm-ffi of a value."""
    _call_function(lowering, lowering.any_at(op.closure, len(op.arguments)), op.arguments, op.result)


def _call_function(
    lowering: FunctionLowering, callee: SSAValue, values: Sequence[SSAValue], result: SSAValue | None
) -> None:
    slot = lowering.result_slot(result)
    arguments = lowering.cell_array(values)
    lowering.call("vmrt_call", [slot, callee, arguments, lowering.emit.integer(len(values), I32)])
    if result is not None:
        lowering.values[result] = Boxed(slot, owned=True)


def lower_make_closure(lowering: FunctionLowering, op: MakeClosureOp) -> None:
    """A function object that holds the captured values and enters the function from outside."""
    emit, slot = lowering.emit, lowering.result_slot(op.result)
    entry = emit.address(ENTRY_PREFIX + op.callee.root_reference.data)
    captured = lowering.cell_array(op.captured)
    lowering.call("vmrt_make_closure", [slot, entry, captured, emit.integer(len(op.captured))])
    lowering.values[op.result] = Boxed(slot, owned=True)


LOWERINGS: dict[type[Operation], Callable[[FunctionLowering, Any], None]] = {
    CallOp: lower_call,
    CallKernelOp: lower_call_kernel,
    CallPackedOp: lower_call_packed,
    CallClosureOp: lower_call_closure,
    MakeClosureOp: lower_make_closure,
}
"""Of the calls."""

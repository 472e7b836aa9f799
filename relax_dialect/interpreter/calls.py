"""Functions, closures, packed functions and PrimFuncs: made, called and returned from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from relax_dialect.interpreter.machine import Frame, Function, TailCall, ends, runs
from relax_dialect.interpreter.runtime_values import Shape, Value
from relax_dialect.ops.call_packed import CallDPSPackedOp, CallPackedOp, CallPurePackedOp
from relax_dialect.ops.call_tir import CallTIRInplaceOp, CallTIROp, DestinationPassing
from relax_dialect.ops.calls import CallClosureOp, CallOp, ExternFuncOp, MakeClosureOp
from relax_dialect.ops.control_flow import IfOp, YieldOp
from relax_dialect.ops.prim_func import explicit_symbols, find_prim_func
from relax_dialect.ops.structure import ClosureOp, FuncOp, ReturnOp
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.base import as_struct_infos
from relax_dialect.struct_info.subtype import Verdict, is_subtype
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.interpreter import run_prim_func


@runs(CallOp)
def call(frame: Frame, op: CallOp) -> TailCall | None:
    """A call of a function of the module."""
    function, arguments = frame.interpreter.function(op.callee.string_value()), frame.get_all(op.arguments)
    if is_returned(op, op.result):
        return TailCall(function, arguments)
    result = function(*arguments)
    frame.check(result, op.result.type, f"result of @{op.callee.string_value()}")
    frame.set(op.result, result)
    return None


@runs(CallClosureOp)
def call_closure(frame: Frame, op: CallClosureOp) -> TailCall | None:
    """A call of a function value."""
    function, arguments = frame.get(op.callee), frame.get_all(op.arguments)
    if isinstance(function, Function) and is_returned(op, op.result):
        return TailCall(function, arguments)
    result = function(*arguments)
    frame.check(result, op.result.type, "result of a function value")
    frame.set(op.result, result)
    return None


def is_returned(op: Operation, result: SSAValue) -> bool:
    """Whether the function returns the result of `op` as it is, certainly of the declared type, and does nothing else.
    """
    terminator, parent = op.next_op, op.parent_op()
    if terminator is None or tuple(terminator.operands) != (result,):
        return False
    if isinstance(terminator, YieldOp) and isinstance(parent, IfOp):
        return is_returned(parent, parent.res[0])
    if not isinstance(terminator, ReturnOp) or not isinstance(parent, FuncOp | ClosureOp):
        return False
    (actual,) = as_struct_infos((result.type,))
    return is_subtype(actual, parent.function_type.ret, prover_at(op)) is Verdict.YES


@ends(ReturnOp)
def return_(frame: Frame, op: ReturnOp) -> Value:
    """The result, checked against what the function declares."""
    value = frame.get(op.value)
    parent = op.parent_op()
    if not isinstance(parent, FuncOp | ClosureOp):
        return value
    declared = parent.function_type.ret
    (actual,) = as_struct_infos((op.value.type,))
    if is_subtype(actual, declared, prover_at(op)) is not Verdict.YES:
        frame.check(value, declared, "result")
    return value


@runs(ClosureOp)
def closure(frame: Frame, op: ClosureOp) -> None:
    """A function value that captures the frame as it is now."""
    captured = Frame(frame.interpreter, frame.function, dict(frame.values), dict(frame.symbols))
    frame.set(op.result, Function(frame.interpreter, op, captured))


@runs(MakeClosureOp)
def make_closure(frame: Frame, op: MakeClosureOp) -> None:
    """A function of the module with its first arguments given."""
    function = frame.interpreter.function(op.callee.string_value())
    captured = frame.get_all(op.captured)
    frame.set(op.result, lambda *arguments: function(*captured, *arguments))


@runs(ExternFuncOp)
def extern_func(frame: Frame, op: ExternFuncOp) -> None:
    """A packed function as a value."""
    frame.set(op.result, frame.interpreter.packed_function(op.symbol.data))


@runs(CallPackedOp, CallPurePackedOp)
def call_packed(frame: Frame, op: CallPackedOp | CallPurePackedOp) -> None:
    """A call of a packed function; what it gives has to be what the program says."""
    name = op.symbol.data
    result = frame.interpreter.packed_function(name)(*frame.get_all(op.arguments))
    if op.result is not None:
        frame.check(result, op.result.type, f'result of the packed function "{name}"')
        frame.set(op.result, result)


@runs(CallDPSPackedOp)
def call_dps_packed(frame: Frame, op: CallDPSPackedOp) -> None:
    """A call of a packed function that writes its results into new tensors."""
    outputs = _allocate(frame, op, [-1] * len(op.res))
    frame.interpreter.packed_function(op.symbol.data)(*frame.get_all(op.arguments), *outputs)
    _set_results(frame, op.res, outputs)


@runs(CallTIROp, CallTIRInplaceOp)
def call_tir(frame: Frame, op: CallTIROp | CallTIRInplaceOp) -> None:
    """A call of a PrimFunc that writes its results."""
    func = find_prim_func(op, op.callee)
    if func is None:
        raise ValueError(f"'{op.name}' is in no module")
    targets = op.targets if isinstance(op, CallTIRInplaceOp) else [-1] * len(op.res)
    outputs = _allocate(frame, op, targets)
    fresh = [output for output, target in zip(outputs, targets, strict=True) if target < 0]
    explicit = [dim.evaluate(frame.symbols) for dim in op.tir_dims]
    symbols = dict(zip(explicit_symbols(func), explicit, strict=True))
    run_prim_func(func, [*frame.get_all(op.arguments), *fresh], symbols)
    _set_results(frame, op.res, outputs)


def _allocate(frame: Frame, op: DestinationPassing, targets: Sequence[int]) -> list[np.ndarray[Any, Any]]:
    """The tensors for the results: arguments that are written in place, or new ones."""
    outputs: list[np.ndarray[Any, Any]] = []
    for index, (result, target) in enumerate(zip(op.res, targets, strict=True)):
        info: TensorType = result.type
        if target >= 0:
            outputs.append(frame.get(op.arguments[target]))
        elif info.dtype is not None:
            shape = _result_shape(frame, op, info, index)
            outputs.append(np.zeros(shape, numpy_dtype(info.dtype)))
    return outputs


def _result_shape(frame: Frame, op: DestinationPassing, info: TensorType, index: int) -> tuple[int, ...]:
    if op.shapes:
        shape: Shape = frame.get(op.shapes[index])
        return tuple(shape)
    return tuple(dim.evaluate(frame.symbols) for dim in info.known_dims or ())


def _set_results(frame: Frame, results: Sequence[SSAValue], values: Sequence[Value]) -> None:
    for result, value in zip(results, values, strict=True):
        frame.check(value, result.type, "result of a call")
        frame.set(result, value)

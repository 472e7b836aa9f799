"""Calls of PrimFuncs that return new tensors, and of packed functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from relax_dialect.interpreter.conform import evaluate
from relax_dialect.interpreter.frame import Frame, runs, where
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.call_tir import (
    CallDPSPackedOp,
    CallPackedOp,
    CallPurePackedOp,
    CallTIRInplaceOp,
    CallTIROp,
    DestinationPassing,
)
from relax_dialect.ops.callees import find_prim_func, given_symbols
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.interpreter import run_prim_func


@runs(CallTIROp, CallTIRInplaceOp)
def call_tir(frame: Frame, op: CallTIROp | CallTIRInplaceOp) -> None:
    """A call of a PrimFunc that writes its results."""
    func = find_prim_func(op, op.callee)
    if func is None:
        raise ValueError(f"'{op.name}' is in no module")
    targets = op.targets if isinstance(op, CallTIRInplaceOp) else [-1] * len(op.res)
    outputs = allocate(frame, op, targets)
    fresh = [output for output, target in zip(outputs, targets, strict=True) if target < 0]
    explicit = [evaluate(dim, frame.symbols) for dim in op.tir_dims]
    symbols = dict(zip(given_symbols(func, len(explicit)), explicit, strict=True))
    run_prim_func(func, [*frame.get_all(op.arguments), *fresh], symbols)
    set_results(frame, op.res, outputs)


def allocate(frame: Frame, op: DestinationPassing, targets: Sequence[int]) -> list[Array]:
    """The tensors for the results: arguments that are written in place, or new ones."""
    outputs: list[Array] = []
    for index, (result, target) in enumerate(zip(op.res, targets, strict=True)):
        info: TensorType = result.type
        if target >= 0:
            outputs.append(frame.get(op.arguments[target]))
        elif info.dtype is not None:
            outputs.append(np.zeros(_result_shape(frame, op, info, index), numpy_dtype(info.dtype)))
    return outputs


def _result_shape(frame: Frame, op: DestinationPassing, info: TensorType, index: int) -> tuple[int, ...]:
    if op.shapes:
        shape: Shape = frame.get(op.shapes[index])
        return tuple(shape)
    return tuple(evaluate(dim, frame.symbols) for dim in info.known_dims or ())


def set_results(frame: Frame, results: Sequence[SSAValue], values: Sequence[Array]) -> None:
    """The results of a call, which have to be of their types."""
    for result, value in zip(results, values, strict=True):
        frame.set_checked(result, value, "result of a call")


@runs(CallPackedOp, CallPurePackedOp)
def call_packed(frame: Frame, op: CallPackedOp | CallPurePackedOp) -> None:
    """A call of a packed function; what it gives has to be what the program says."""
    name = op.symbol.data
    result = frame.interpreter.packed_function(name)(*frame.get_all(op.arguments))
    if op.result is not None:
        frame.set_checked(op.result, result, f'result of the packed function "{name}"{where(op)}')


@runs(CallDPSPackedOp)
def call_dps_packed(frame: Frame, op: CallDPSPackedOp) -> None:
    """A call of a packed function that writes its results into new tensors."""
    outputs = allocate(frame, op, [-1] * len(op.res))
    frame.interpreter.packed_function(op.symbol.data)(*frame.get_all(op.arguments), *outputs)
    set_results(frame, op.res, outputs)

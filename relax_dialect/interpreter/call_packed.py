"""Calls of packed functions."""

from __future__ import annotations

from relax_dialect.interpreter.call_tir import allocate, set_results
from relax_dialect.interpreter.frame import Frame, runs, where
from relax_dialect.ops.call_packed import CallDPSPackedOp, CallPackedOp, CallPurePackedOp


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

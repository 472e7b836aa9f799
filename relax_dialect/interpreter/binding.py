"""Checks of types that bind symbols."""

from __future__ import annotations

from relax_dialect.interpreter.conform import Contract, argument_names
from relax_dialect.interpreter.frame import Frame, runs, where
from relax_dialect.ops.binding import CheckArgsOp, MatchCastOp
from relax_dialect.struct_info.base import as_struct_infos


@runs(MatchCastOp)
def match_cast(frame: Frame, op: MatchCastOp) -> None:
    """Checks the value and binds symbols."""
    value = frame.get(op.value)
    position = f"{frame.function}: {op.subject}{where(op)}"
    bound = frame.bind(op, lambda: Contract(as_struct_infos((op.result.type,)), [position], tuple(op.symbols)), [value])
    frame.set(op.result, value)
    for name, witness in op.result_witnesses.items():
        frame.set(witness, bound[name])


@runs(CheckArgsOp)
def check_args(frame: Frame, op: CheckArgsOp) -> None:
    """Checks the arguments and binds the symbols of the function."""
    values = frame.get_all(op.arguments)
    bound = frame.bind(op, lambda: _contract(op), values)
    for result, value in zip(op.values, values, strict=True):
        frame.set(result, value)
    for name, witness in op.result_witnesses.items():
        frame.set(witness, bound[name])


def _contract(op: CheckArgsOp) -> Contract:
    names = [name.data for name in op.arg_names]
    positions = argument_names(op.function.data, names, op.captured_count)
    return Contract(as_struct_infos(value.type for value in op.values), positions, tuple(op.symbols), op.captured_count)

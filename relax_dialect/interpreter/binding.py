"""Checks of types that bind symbols, and of dimensions."""

from __future__ import annotations

from relax_dialect.interpreter.conform import Contract, argument_names, evaluate
from relax_dialect.interpreter.frame import Frame, runs, where
from relax_dialect.ops.binding import CheckArgsOp, GuardOp, MatchCastOp, Relation
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


@runs(GuardOp)
def guard(frame: Frame, op: GuardOp) -> None:
    """Checks two dimensions."""
    left, right = evaluate(op.lhs.data, frame.symbols), evaluate(op.rhs.data, frame.symbols)
    relation = op.relation.data
    holds = left <= right if relation is Relation.AT_MOST else left == right
    if relation is Relation.BROADCAST:
        holds = holds or 1 in (left, right)
    if not holds:
        text, dims = op.check.facts
        facts = text.format(*(evaluate(dim, frame.symbols) for dim in dims))
        raise ValueError(f"{frame.function}: {op.message.data}{where(op)}: {facts}")
    frame.set(op.result, frame.get(op.value))

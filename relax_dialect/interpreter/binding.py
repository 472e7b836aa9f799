"""`match_cast`, guards and dataflow regions."""

from __future__ import annotations

from relax_dialect.interpreter.conform import conform
from relax_dialect.interpreter.machine import Frame, ends, runs
from relax_dialect.interpreter.runtime_values import Value
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.dataflow import DataflowOp, OutputOp
from relax_dialect.ops.guard import GuardOp, Relation
from relax_dialect.struct_info.base import as_struct_infos


@runs(MatchCastOp)
def match_cast(frame: Frame, op: MatchCastOp) -> None:
    """Checks the value and binds symbols."""
    value = frame.get(op.value)
    declared = as_struct_infos((op.result.type,))
    binds = {symbol.symbol.data for symbol in op.symbols}
    known = {name: number for name, number in frame.symbols.items() if name not in binds}
    bound = conform([value], declared, op.symbols, known, [f"{frame.function}: match_cast"])
    frame.symbols.update(bound)
    frame.set(op.result, value)
    for name, witness in op.result_witnesses.items():
        frame.set(witness, bound[name])


@runs(GuardOp)
def guard(frame: Frame, op: GuardOp) -> None:
    """Checks two dimensions."""
    left, right = op.lhs.data.evaluate(frame.symbols), op.rhs.data.evaluate(frame.symbols)
    relation = op.relation.data
    holds = left <= right if relation is Relation.AT_MOST else left == right
    if relation is Relation.BROADCAST:
        holds = holds or 1 in (left, right)
    if not holds:
        facts = f"{op.lhs.data} = {left}, {op.rhs.data} = {right}"
        raise ValueError(f"{frame.function}: expected {op.message.data}: {facts}")
    frame.set(op.result, frame.get(op.value))


@runs(DataflowOp)
def dataflow(frame: Frame, op: DataflowOp) -> None:
    """The region's ops, then its outputs."""
    outputs = frame.interpreter.run_block(frame, op.body.block)
    for result, value in zip(op.results, outputs, strict=True):
        frame.set(result, value)


@ends(OutputOp)
def output(frame: Frame, op: OutputOp) -> tuple[Value, ...]:
    """The outputs."""
    return tuple(frame.get_all(op.values))

"""What functions consist of: closures, dataflow regions, returns, and checks of types that bind symbols."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from relax_dialect.interpreter.conform import Contract, argument_names, evaluate
from relax_dialect.interpreter.frame import Frame, ends, runs, where
from relax_dialect.interpreter.machine import Function
from relax_dialect.interpreter.runtime_values import Value
from relax_dialect.ops.binding import CheckArgsOp, GuardOp, MatchCastOp, Relation
from relax_dialect.ops.dataflow import DataflowOp, FusedOp, OutputOp
from relax_dialect.ops.structure import ClosureOp, FuncOp, ReturnOp
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.base import StructInfo, as_struct_infos
from relax_dialect.struct_info.match import Verdict, is_subtype


@runs(ClosureOp)
def closure(frame: Frame, op: ClosureOp) -> None:
    """A function value that captures what it uses, as it is now, and all symbols."""
    used = frame.interpreter.remember(op, lambda: outer_values(op), "captures")
    values = {value: frame.values[value] for value in used}
    captured = Frame(frame.interpreter, frame.function, values, dict(frame.symbols))
    frame.set(op.result, Function(frame.interpreter, op, captured))


def outer_values(op: Operation) -> tuple[SSAValue, ...]:
    """The values that the regions of an op use and that are defined outside of it."""
    found: dict[SSAValue, None] = {}
    inside: set[SSAValue] = set()
    for inner in op.walk():
        inside.update(argument for region in inner.regions for block in region.blocks for argument in block.args)
        if inner is not op:
            found.update(dict.fromkeys(inner.operands))
            inside.update(inner.results)
    return tuple(value for value in found if value not in inside)


@ends(ReturnOp)
def return_(frame: Frame, op: ReturnOp) -> Value:
    """The result, checked against what the function declares."""
    value = frame.get(op.value)
    parent = op.parent_op()
    if isinstance(parent, FuncOp | ClosureOp):
        declared = parent.function_type.ret
        if frame.interpreter.remember(op, lambda: _verdict(op, declared)) is not Verdict.YES:
            frame.check(value, declared, f"result{where(op)}")
    return value


def _verdict(op: ReturnOp, declared: StructInfo) -> Verdict:
    """Whether the result is known to be of the declared type."""
    (actual,) = as_struct_infos((op.value.type,))
    return is_subtype(actual, declared, prover_at(op))


@runs(DataflowOp)
def dataflow(frame: Frame, op: DataflowOp) -> None:
    """The region's ops, then its outputs."""
    outputs = frame.run_block(op.body.block)
    for result, value in zip(op.results, outputs, strict=True):
        frame.set(result, value)


@ends(OutputOp)
def output(frame: Frame, op: OutputOp) -> tuple[Value, ...]:
    """The outputs."""
    return tuple(frame.get_all(op.values))


@runs(FusedOp)
def fused(frame: Frame, op: FusedOp) -> None:
    """The region's ops, then what it yields."""
    for result, value in zip(op.res, frame.run_block(op.body.block), strict=True):
        frame.set(result, value)


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

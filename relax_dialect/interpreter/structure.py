"""Closures and the return of functions."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from relax_dialect.interpreter.frame import Frame, ends, runs, where
from relax_dialect.interpreter.functions import Function
from relax_dialect.interpreter.runtime_values import Value
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

"""Branches."""

from __future__ import annotations

from relax_dialect.interpreter.frame import Frame, TailCall, ends, runs
from relax_dialect.interpreter.runtime_values import Array, Value
from relax_dialect.ops.control_flow import IfOp, YieldOp


def truth(value: bool | Array) -> bool:
    """The condition that a prim value or a scalar tensor holds."""
    return bool(value)


@runs(IfOp)
def if_(frame: Frame, op: IfOp) -> TailCall | None:
    """One of the two regions, which may end in a call that replaces the function."""
    region = op.then_region if truth(frame.get(op.condition)) else op.else_region
    values = frame.run_block(region.block)
    if isinstance(values, TailCall):
        return values
    for result, value in zip(op.res, values, strict=True):
        frame.set(result, value)
    for name, result in op.result_witnesses.items():
        frame.symbols[name] = frame.get(result)
    return None


@ends(YieldOp)
def yield_(frame: Frame, op: YieldOp) -> tuple[Value, ...]:
    """What the region gives."""
    return tuple(frame.get_all(op.operands))

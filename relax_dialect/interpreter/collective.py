"""Collective operators in a group of one worker: its own tensor."""

from __future__ import annotations

from relax_dialect.interpreter.frame import Frame, runs
from relax_dialect.interpreter.operand_checks import make_checks
from relax_dialect.ops.collective import (
    AllGatherOp,
    AllReduceOp,
    BroadcastFromWorker0Op,
    CollectiveOp,
    ScatterFromWorker0Op,
    several_workers,
)


def own_tensor(frame: Frame, op: CollectiveOp) -> None:
    """The tensor itself; `ValueError` for an exchange between several workers."""
    make_checks(frame, op)
    if (reason := several_workers(op)) is not None:
        raise ValueError(f"'{op.name}' op {reason}")
    frame.set_checked(op.result, frame.get(op.x), f"result of '{op.name}'")


for _op in (AllReduceOp, AllGatherOp, BroadcastFromWorker0Op, ScatterFromWorker0Op):
    runs(_op)(own_tensor)

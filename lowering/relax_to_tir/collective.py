"""Collective operators in a group of one worker: its own tensor."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from lowering.diagnostics import fail
from lowering.relax_to_tir.context import rewrites
from relax_dialect.ops.collective import (
    AllGatherOp,
    AllReduceOp,
    BroadcastFromWorker0Op,
    CollectiveOp,
    ScatterFromWorker0Op,
    several_workers,
)


def own_tensor(op: CollectiveOp, rewriter: PatternRewriter) -> Sequence[SSAValue]:
    """The tensor itself; fails at an exchange between several workers."""
    if (reason := several_workers(op)) is not None:
        fail(op, reason, "build with num_workers = 1")
    return (op.x,)


for _op in (AllReduceOp, AllGatherOp, BroadcastFromWorker0Op, ScatterFromWorker0Op):
    rewrites(_op)(own_tensor)

"""Tensors that workers share, in a process that is the only worker: all of them is here."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from lowering.diagnostics import fail
from lowering.relax_to_tir.collective import own_tensor
from lowering.relax_to_tir.context import rewrites
from relax_dialect.ops.distributed import (
    AnnotateShardingOp,
    GlobalViewOp,
    LocalViewOp,
    PlacementOp,
    RedistributeOp,
    RedistributeReplicaToShardOp,
    missing_parts,
)

rewrites(RedistributeReplicaToShardOp)(own_tensor)


def whole_tensor(op: PlacementOp, rewriter: PatternRewriter) -> Sequence[SSAValue]:
    """The tensor itself."""
    return (op.x,)


def view(op: PlacementOp, rewriter: PatternRewriter) -> Sequence[SSAValue]:
    """The tensor itself; fails where it is a part, or made of parts."""
    if (reason := missing_parts(op)) is not None:
        fail(op, reason, "build with a mesh of one worker, or call the function on tensors as a whole")
    return (op.x,)


for _op in (AnnotateShardingOp, RedistributeOp):
    rewrites(_op)(whole_tensor)
for _op in (LocalViewOp, GlobalViewOp):
    rewrites(_op)(view)

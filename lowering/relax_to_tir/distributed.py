"""Tensors that workers share, in a process that is the only worker: all of them is here. Several are refused."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

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
    """The tensor itself; fails where several workers share it, or each of several has it."""
    workers = prod(op.mesh.get_values())
    if workers > 1:
        reason = missing_parts(op) or f"has a copy for each of {workers} workers, but a program runs as one"
        fail(
            op,
            f"{reason}: no code is made for the parts of tensors, and nothing moves them between workers",
            "build with a mesh of one worker, or call the function on tensors as a whole, without placements",
        )
    return (op.x,)


for _op in (AnnotateShardingOp, RedistributeOp, LocalViewOp, GlobalViewOp):
    rewrites(_op)(whole_tensor)

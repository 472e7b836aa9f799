"""How tensors may be made on several workers.

C1: `full`, `zeros` and `ones` along every dimension, and so the ones that are like another tensor.
C2: `tril` and `triu` along every dimension but the last two.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, dims, named, shards
from relax_dialect.ops.creation import (
    FullLikeOp,
    FullOp,
    OnesLikeOp,
    OnesOp,
    TrilOp,
    TriuOp,
    ZerosLikeOp,
    ZerosOp,
)


@shards(FullOp, ZerosOp, OnesOp)
def of_shape(op: FullOp | ZerosOp | OnesOp) -> Factors:
    """C1; a value is a tensor of rank 0, or none."""
    return Factors([() for _ in op.operands], [named("d", len(dims(op.result)))])


@shards(FullLikeOp, ZerosLikeOp, OnesLikeOp)
def like(op: FullLikeOp | ZerosLikeOp | OnesLikeOp) -> Factors:
    """C1."""
    labels = named("d", len(dims(op.operands[0])))
    return Factors([labels, *(() for _ in op.operands[1:])], [labels])


@shards(TrilOp, TriuOp)
def triangle(op: TrilOp | TriuOp) -> Factors:
    """C2."""
    rank = len(dims(op.x))
    labels = named("d", rank, [rank - 2, rank - 1])
    return Factors([labels], [labels])

"""How tensors may be sorted on several workers.

O1: `sort`, `argsort` and `topk` along every dimension but their axis.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, dims, named, shards
from relax_dialect.ops.sorting import ArgsortOp, SortOp, TopkOp


@shards(SortOp, ArgsortOp, TopkOp)
def along_axis(op: SortOp | ArgsortOp | TopkOp) -> Factors:
    """O1."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank] if rank else [])
    return Factors([labels], [labels for _ in op.results])

"""How tensors may be searched and sorted on several workers.

O1: `sort`, `argsort` and `topk` along every dimension but their axis.

S1: `where` along every dimension of the result, as binary operators.
S2: `argmax` and `argmin` along every dimension that stays.
S3: `bucketize` along every dimension of the values; all workers have the boundaries.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, dims, named, shards
from lowering.distributed.rules.binary import elementwise
from relax_dialect.ops.sorting import ArgmaxOp, ArgminOp, ArgsortOp, BucketizeOp, SortOp, TopkOp, WhereOp


@shards(SortOp, ArgsortOp, TopkOp)
def along_axis(op: SortOp | ArgsortOp | TopkOp) -> Factors:
    """O1."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank] if rank else [])
    return Factors([labels], [labels for _ in op.results])


shards(WhereOp)(elementwise)  # S1


@shards(ArgmaxOp, ArgminOp)
def position_of_extremum(op: ArgmaxOp | ArgminOp) -> Factors | None:
    """S2."""
    if op.axis is None:
        return None
    rank = len(dims(op.x))
    axis = op.axis.value.data % rank
    labels = named("d", rank, [axis])
    return Factors([labels], [labels if op.keepdims is not None else (*labels[:axis], *labels[axis + 1 :])])


@shards(BucketizeOp)
def bucketize(op: BucketizeOp) -> Factors:
    """S3."""
    labels = named("d", len(dims(op.x)))
    return Factors([labels, (None,)], [labels])

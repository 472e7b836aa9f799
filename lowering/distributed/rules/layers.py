"""How small layers may be shared.

Y1: `dropout`, which leaves a tensor as it is, along every dimension.
Y2: `batch_flatten` along the batch.
Y3: `pixel_shuffle` along every dimension but the last three.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, Labels, dims, named, shards
from lowering.distributed.rules.unary import elementwise
from relax_dialect.ops.layers import BatchFlattenOp, DropoutOp, PixelShuffleOp

shards(DropoutOp)(elementwise)  # Y1


@shards(BatchFlattenOp)
def batch_flatten(op: BatchFlattenOp) -> Factors:
    """Y2."""
    return Factors([("n", *(None,) * (len(dims(op.x)) - 1))], [("n", None)])


@shards(PixelShuffleOp)
def pixel_shuffle(op: PixelShuffleOp) -> Factors:
    """Y3."""
    rank = len(dims(op.x))
    labels: Labels = named("d", rank, range(rank - 3, rank))
    return Factors([labels], [labels])

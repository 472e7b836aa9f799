"""How normalisations may be shared.

N1: layer and RMS normalisation along every dimension but those over which they normalise; all workers have the weights.
N2: group and instance normalisation along the first dimension, if they do not normalise over it.
N3: batch normalisation along every dimension; the one of its axis is that of the statistics and weights, too.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, dims, named, shards
from relax_dialect.ops.normalization import BatchNormOp, GroupNormOp, InstanceNormOp, LayerNormOp, RMSNormOp


@shards(LayerNormOp, RMSNormOp)
def over_axes(op: LayerNormOp | RMSNormOp) -> Factors:
    """N1."""
    rank = len(dims(op.x))
    labels = named("d", rank, [axis % rank for axis in op.axes.get_values()])
    return Factors([labels, *((None,) * len(dims(weight)) for weight in op.operands[1:])], [labels])


@shards(GroupNormOp, InstanceNormOp)
def over_channels(op: GroupNormOp | InstanceNormOp) -> Factors:
    """N2."""
    rank = len(dims(op.x))
    whole = {axis % rank for axis in (*op.axes.get_values(), op.channel_axis.value.data)}
    labels = named("d", rank, sorted({*range(1, rank), *whole}))
    return Factors([labels, *((None,) * len(dims(weight)) for weight in op.operands[1:])], [labels])


@shards(BatchNormOp)
def by_statistics(op: BatchNormOp) -> Factors:
    """N3."""
    rank = len(dims(op.x))
    axis, labels = op.axis.value.data % rank, named("d", rank)
    return Factors([labels, *((f"d{axis}",) for _ in op.operands[1:])], [labels])

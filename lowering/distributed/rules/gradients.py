"""How gradients of pooling may be shared.

GR1: along the batch and the channels, which data, gradient and result have.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, shards
from lowering.distributed.rules.pooling import images
from relax_dialect.ops.gradients import AvgPool2dBackwardOp, MaxPool2dBackwardOp, PoolGradientOp


@shards(MaxPool2dBackwardOp, AvgPool2dBackwardOp)
def gradient(op: PoolGradientOp) -> Factors:
    """GR1."""
    data, out = op.layouts
    shared = ("N", "C") if data.blocks == out.blocks else ("N",)
    return Factors([images(data, shared), images(out, shared)], [images(data, shared)])

"""How pooling and its gradients may be shared.

P1: along the batch and the channels. Spatial dimensions are needed as a whole: windows reach into the tiles of others.

GR1: along the batch and the channels, which data, gradient and result have.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, Labels, shards
from relax_dialect.ops import pooling
from relax_dialect.ops.layouts import Layout
from relax_dialect.ops.pooling import AvgPool2dBackwardOp, MaxPool2dBackwardOp, PoolBase, PoolGradientOp


def pool(op: PoolBase) -> Factors:
    """P1; channels in blocks are shared if operand and result have the same ones."""
    data, out = op.layouts
    shared = ("N", "C") if data.blocks == out.blocks else ("N",)
    return Factors([images(data, shared)] * len(op.operands), [images(out, shared)])


def images(layout: Layout, shared: tuple[str, ...] = ("N", "C")) -> Labels:
    """The factors of batch and channels, and none of other dimensions."""
    return tuple(letter.lower() if letter in shared else None for letter in layout.letters)


for _op in vars(pooling).values():
    if isinstance(_op, type) and issubclass(_op, PoolBase) and "name" in vars(_op):
        shards(_op)(pool)


@shards(MaxPool2dBackwardOp, AvgPool2dBackwardOp)
def gradient(op: PoolGradientOp) -> Factors:
    """GR1."""
    data, out = op.layouts
    shared = ("N", "C") if data.blocks == out.blocks else ("N",)
    return Factors([images(data, shared), images(out, shared)], [images(data, shared)])

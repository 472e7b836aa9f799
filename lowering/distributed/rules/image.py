"""How images may be resized and sampled on several workers.

IM1: along the batch and the channels.

Z1: along every other dimension.

SM1: `grid_sample` along the batch, the channels of the image, and the spatial dimensions of the grid.
SM2: `affine_grid` along the batch.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, dims, named, shards
from lowering.distributed.rules.pooling import images
from relax_dialect.ops.image import AffineGridOp, GridSampleOp, Resize1dOp, Resize2dOp
from relax_dialect.ops.layouts import Layout


@shards(Resize2dOp)
def resize(op: Resize2dOp) -> Factors:
    """IM1; the size is that of the spatial dimensions."""
    labels = images(Layout("NCHW" if op.layout is None else op.layout.data))
    return Factors([labels, ()], [labels])


@shards(Resize1dOp)
def resize_axis(op: Resize1dOp) -> Factors:
    """Z1."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank])
    return Factors([labels], [labels])


@shards(GridSampleOp)
def grid_sample(op: GridSampleOp) -> Factors:
    """SM1."""
    spatial = len(dims(op.x)) - 2
    positions = named("s", spatial)
    return Factors([("n", "c", *(None,) * spatial), ("n", *positions, None)], [("n", "c", *positions)])


@shards(AffineGridOp)
def affine_grid(op: AffineGridOp) -> Factors:
    """SM2."""
    return Factors([("n", None, None), ()], [("n", *(None,) * (len(dims(op.result)) - 1))])

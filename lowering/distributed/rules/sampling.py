"""How images may be sampled on several workers.

SM1: `grid_sample` along the batch, the channels of the image, and the spatial dimensions of the grid.
SM2: `affine_grid` along the batch.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, dims, named, shards
from relax_dialect.ops.sampling import AffineGridOp, GridSampleOp


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

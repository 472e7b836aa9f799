"""How regions of images may be pooled on several workers.

RV1: `roi_align` and `roi_pool` along the regions, and along the channels of the images.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, shards
from relax_dialect.ops.vision import ROIAlignOp, ROIPoolOp


@shards(ROIAlignOp, ROIPoolOp)
def by_region(op: ROIAlignOp | ROIPoolOp) -> Factors:
    """RV1; a region may be of any image, so all workers have the batch."""
    return Factors([(None, "c", None, None), ("r", None), ("r",)], [("r", "c", None, None)])

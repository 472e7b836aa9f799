"""How boxes may be selected, and regions of images pooled, on several workers.

RV1: `roi_align` and `roi_pool` along the regions, and along the channels of the images.

DT1: `get_valid_counts` and `box_nms` along the batch.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, dims, shards
from relax_dialect.ops.vision import BoxNMSOp, GetValidCountsOp, ROIAlignOp, ROIPoolOp


@shards(ROIAlignOp, ROIPoolOp)
def by_region(op: ROIAlignOp | ROIPoolOp) -> Factors:
    """RV1; a region may be of any image, so all workers have the batch."""
    return Factors([(None, "c", None, None), ("r", None), ("r",)], [("r", "c", None, None)])


@shards(GetValidCountsOp, BoxNMSOp)
def by_batch(op: GetValidCountsOp | BoxNMSOp) -> Factors:
    """DT1: the first dimension of all operands and results."""
    operands, results = (
        [(("n", *(None,) * (len(dims(value)) - 1))) for value in values]
        for values in (tuple(op.operands), tuple(op.results))
    )
    return Factors(operands, results)

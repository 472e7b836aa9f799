"""How boxes may be selected on several workers.

DT1: `get_valid_counts` and `box_nms` along the batch.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, Labels, dims, shards
from relax_dialect.ops.detection import BoxNMSOp, GetValidCountsOp


@shards(GetValidCountsOp, BoxNMSOp)
def by_batch(op: GetValidCountsOp | BoxNMSOp) -> Factors:
    """DT1: the first dimension of all operands and results."""
    operands, results = (
        [_batch(len(dims(value))) for value in values] for values in (tuple(op.operands), tuple(op.results))
    )
    return Factors(operands, results)


def _batch(rank: int) -> Labels:
    return ("n", *(None,) * (rank - 1))

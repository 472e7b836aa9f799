"""How convolutions with moved windows may be shared.

DF1: `deform_conv2d` along the batch, and, of one group, along the filters.
DF2: `col2im` along the batch.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, Labels, dims, shards
from relax_dialect.ops.deformable import Col2ImOp, DeformConv2dOp


@shards(DeformConv2dOp)
def deform_conv2d(op: DeformConv2dOp) -> Factors:
    """DF1; channels have offsets in common, and are needed as a whole."""
    batch: Labels = ("n", None, None, None)
    filters = "o" if op.groups.value.data == 1 else None
    return Factors([batch, (filters, None, None, None), batch, batch], [("n", filters, None, None)])


@shards(Col2ImOp)
def col2im(op: Col2ImOp) -> Factors:
    """DF2."""
    labels = [("n", *(None,) * (len(dims(value)) - 1)) for value in (op.x, op.result)]
    return Factors([labels[0], ()], [labels[1]])

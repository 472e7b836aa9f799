"""How images may be resized on several workers.

IM1: along the batch and the channels.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, shards
from lowering.distributed.rules.pooling import images
from relax_dialect.ops.image import Resize2dOp
from relax_dialect.ops.layouts import Layout


@shards(Resize2dOp)
def resize(op: Resize2dOp) -> Factors:
    """IM1; the size is that of the spatial dimensions."""
    labels = images(Layout("NCHW" if op.layout is None else op.layout.data))
    return Factors([labels, ()], [labels])

"""How resizing along one dimension may be shared.

Z1: along every other dimension.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, dims, named, shards
from relax_dialect.ops.resizing import Resize1dOp


@shards(Resize1dOp)
def resize(op: Resize1dOp) -> Factors:
    """Z1."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank])
    return Factors([labels], [labels])

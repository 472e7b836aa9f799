"""How elements may be taken on several workers.

I1: `take` along every dimension of the tensor but its axis, and along every dimension of the indices.
I2: `strided_slice` along every dimension that it does not cut.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, dims, named, shards
from relax_dialect.ops.indexing import StridedSliceOp, TakeOp


@shards(TakeOp)
def take(op: TakeOp) -> Factors:
    """I1."""
    x, indices = len(dims(op.x)), named("i", len(dims(op.indices)))
    axis = 0 if op.axis is None else op.axis.value.data % x
    labels = named("d", x, [axis])
    return Factors([labels, indices], [(*labels[:axis], *indices, *labels[axis + 1 :])])


@shards(StridedSliceOp)
def strided_slice(op: StridedSliceOp) -> Factors:
    """I2."""
    rank = len(dims(op.x))
    labels = named("d", rank, [axis % rank for axis in op.axes.get_values()])
    return Factors([labels], [labels])

"""How tensors may be indexed by tensors on several workers.

X1: `index_tensor` along the dimensions of the indices, and along those of the slices.
X2: `index_put` along the dimensions of the slices.
X3: `slice_scatter` along every dimension but its axis.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, Labels, broadcast, dims, named, shards
from relax_dialect.ops.advanced_indexing import IndexPutOp, IndexTensorOp, SliceScatterOp


@shards(IndexTensorOp)
def index_tensor(op: IndexTensorOp) -> Factors:
    """X1; an index that is broadcast along a dimension is needed as a whole there."""
    count, rank, shape = len(op.indices), len(dims(op.x)), dims(op.result)
    positions, slices = shape[: len(shape) - rank + count], named("d", rank - count)
    indices, taken = broadcast([dims(index) for index in op.indices], positions, "i")
    return Factors([(*(None,) * count, *slices), *indices], [(*taken, *slices)])


@shards(IndexPutOp)
def index_put(op: IndexPutOp) -> Factors:
    """X2; values that are broadcast along a dimension are needed as a whole there."""
    count, values = len(op.indices), dims(op.values)
    slices = dims(op.x)[count:]
    own = values[max(0, len(values) - len(slices)) :]
    (put,), labels = broadcast([own], slices)
    x: Labels = (*(None,) * count, *labels)
    indices: list[Labels] = [(None,) * len(dims(index)) for index in op.indices]
    return Factors([x, (*(None,) * (len(values) - len(own)), *put), *indices], [x])


@shards(SliceScatterOp)
def slice_scatter(op: SliceScatterOp) -> Factors:
    """X3."""
    rank = len(dims(op.x))
    labels = named("d", rank, [op.axis.value.data % rank])
    return Factors([labels, labels], [labels])

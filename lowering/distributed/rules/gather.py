"""How elements may be gathered and scattered on several workers.

G1: `gather_elements` along the axis of the indices, and along other dimensions that are as large in both operands.
G2: `gather_nd` along its batches, the dimensions of the indices, and those of the slices.
G3: `scatter_elements` along every dimension but its axis that is as large in all operands.
G4: `scatter_nd` along the dimensions of the slices.
G5: `one_hot` along the dimensions of the indices.

X1: `index_tensor` along the dimensions of the indices, and along those of the slices.
X2: `index_put` along the dimensions of the slices.
X3: `slice_scatter` along every dimension but its axis.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, Labels, broadcast, dims, named, shards
from relax_dialect.ops.gather import (
    GatherElementsOp,
    GatherNDOp,
    IndexPutOp,
    IndexTensorOp,
    OneHotOp,
    ScatterElementsOp,
    ScatterNDOp,
    SliceScatterOp,
)


@shards(GatherElementsOp)
def gather_elements(op: GatherElementsOp) -> Factors:
    """G1."""
    x, indices = dims(op.x), dims(op.indices)
    axis = op.axis.value.data % len(x)
    common = [at for at, pair in enumerate(zip(x, indices, strict=True)) if at != axis and pair[0] == pair[1]]
    labels = tuple(f"d{at}" if at in common else None for at in range(len(x)))
    taken = tuple("i" if at == axis else label for at, label in enumerate(labels))
    return Factors([labels, taken], [taken])


@shards(GatherNDOp)
def gather_nd(op: GatherNDOp) -> Factors | None:
    """G2; how many coordinates there are has to be known."""
    batches, rank, shape = op.batch_dims.value.data, len(dims(op.x)), dims(op.indices)
    count = shape[-1].constant_value if shape[-1] is not None else None
    if count is None:
        return None
    batch, slices = named("b", batches), named("d", rank - batches - count)
    positions = (*batch, *named("i", len(shape) - 1 - batches))
    return Factors([(*batch, *(None,) * count, *slices), (*positions, None)], [(*positions, *slices)])


@shards(ScatterElementsOp)
def scatter_elements(op: ScatterElementsOp) -> Factors:
    """G3."""
    rank = len(dims(op.x))
    axis = op.axis.value.data % rank if rank else 0
    labels: Labels = tuple(
        f"d{at}" if at != axis and len(set(sizes)) == 1 else None
        for at, sizes in enumerate(zip(dims(op.x), dims(op.indices), dims(op.updates), strict=True))
    )
    return Factors([labels, labels, labels], [labels])


@shards(ScatterNDOp)
def scatter_nd(op: ScatterNDOp) -> Factors | None:
    """G4; how many coordinates there are has to be known."""
    rank, shape = len(dims(op.x)), dims(op.indices)
    count = shape[-1].constant_value if shape[-1] is not None else None
    if count is None:
        return None
    slices = named("d", rank - count)
    x: Labels = (*(None,) * count, *slices)
    return Factors([x, (None,) * len(shape), (*(None,) * (len(shape) - 1), *slices)], [x])


@shards(OneHotOp)
def one_hot(op: OneHotOp) -> Factors:
    """G5."""
    labels, rank = named("i", len(dims(op.indices))), len(dims(op.result))
    axis = op.axis.value.data % rank
    return Factors([labels, (), ()], [(*labels[:axis], None, *labels[axis:])])


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

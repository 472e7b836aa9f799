"""Operators whose positions are tensors that broadcast, and writes into slices. Positions out of range: see
`gather`.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.gather import scattered
from lowering.relax_to_tir.indices import axes, axis_of, broadcast_load, clamped, from_front
from lowering.relax_to_tir.kernel import Kernel
from relax_dialect.ops.advanced_indexing import IndexPutOp, IndexTensorOp, SliceScatterOp
from relax_dialect.ops.indexing import slice_index
from tir_dialect import te
from tir_dialect.dims import Dim, broadcast, constant


def _broadcast_shape(indices: Sequence[te.Tensor]) -> tuple[Dim, ...]:
    """The shape to which index tensors broadcast."""
    rank = max(tensor.ndim for tensor in indices)
    shape = [constant(1)] * rank
    for tensor in indices:
        for axis, extent in enumerate(tensor.shape, rank - tensor.ndim):
            shape[axis] = extent if shape[axis] is extent else broadcast(shape[axis], extent)
    return tuple(shape)


@legalizes(IndexTensorOp)
def index_tensor(kernel: Kernel, op: IndexTensorOp) -> te.Tensor:
    """The slice at the position that the index tensors name."""
    x, indices = kernel.tensor(op.x), [kernel.tensor(each) for each in op.indices]
    shape = kernel.shape(op.result)
    rank = len(shape) - x.ndim + len(indices)

    def element(*i: te.Expr) -> te.Expr:
        pairs = zip(indices, x.shape, strict=False)
        loads = ((broadcast_load(tensor, shape[:rank], i[:rank]), extent) for tensor, extent in pairs)
        return x[(*(clamped(from_front(load, extent), extent) for load, extent in loads), *i[rank:])]

    return te.compute(shape, element, name="index_tensor")


@legalizes(IndexPutOp)
def index_put(kernel: Kernel, op: IndexPutOp) -> te.Tensor:
    """The slices at the positions that the index tensors name, written or added to in order."""
    x, values = kernel.tensor(op.x), kernel.tensor(op.values)
    indices = [kernel.tensor(each) for each in op.indices]
    outer = _broadcast_shape(indices)
    shape = (*outer, *x.shape[len(indices) :])

    def position(i: Sequence[te.Expr]) -> tuple[te.Expr, ...]:
        pairs = zip(indices, x.shape, strict=False)
        loads = (from_front(broadcast_load(tensor, outer, i[: len(outer)]), extent) for tensor, extent in pairs)
        return (*loads, *i[len(outer) :])

    return scattered(
        x,
        [*indices, values],
        shape,
        position,
        lambda i: broadcast_load(values, shape, i),
        "update" if op.accumulate is None else "add",
        range(len(outer)),
        "index_put",
    )


@legalizes(SliceScatterOp)
def slice_scatter(kernel: Kernel, op: SliceScatterOp) -> te.Tensor:
    """A copy, then the source instead of it."""
    x, source = kernel.tensor(op.x), kernel.tensor(op.source)
    axis, step = axis_of(op.axis, x.ndim), op.step.value.data
    first = slice_index(x.shape[axis], op.start.data, step)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("copy", *axes(x.shape)) as i:
            b.store(outs[0], i, x[i])
        with b.block("slice_scatter", *axes(source.shape)) as i:
            b.store(outs[0], (*i[:axis], i[axis] * step + first, *i[axis + 1 :]), source[i])

    return te.extern([(x.shape, x.dtype)], list(dict.fromkeys((x, source))), body, name="slice_scatter")[0]

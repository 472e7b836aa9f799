"""Sorting along an axis, lane by lane."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.indices import axes, axis_of, without
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.merge_sort import Lane, ascending, descending, merge_sort, select_first
from relax_dialect.ops.sorting import ArgsortOp, SortOp, TopkOp
from tir_dialect import te
from tir_dialect.dims import Dim, minimum

MANY = 64
"""Up to so many elements are selected one by one rather than sorted out."""


@legalizes(SortOp)
def sort(kernel: Kernel, op: SortOp) -> te.Tensor:
    """The elements in order."""
    x = kernel.tensor(op.x)
    axis = axis_of(op.axis, x.ndim)
    order = descending if op.descending is not None else ascending

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("sort", *axes(without(x.shape, axis))) as i:
            lane = merge_sort(b, x.shape[axis], lambda r: x[(*i[:axis], r, *i[axis:])], order, indices=False)
            with b.for_range(0, x.shape[axis], "r") as r:
                b.store(outs[0], (*i[:axis], r, *i[axis:]), lane.key(r))

    return te.extern([(x.shape, x.dtype)], [x], body, name="sort")[0]


@legalizes(ArgsortOp)
def argsort(kernel: Kernel, op: ArgsortOp) -> te.Tensor:
    """The positions in order."""
    x, dtype = kernel.tensor(op.x), str(kernel.dtype(op.result))
    axis = axis_of(op.axis, x.ndim)
    order = descending if op.descending is not None else ascending

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("argsort", *axes(without(x.shape, axis))) as i:
            lane = merge_sort(b, x.shape[axis], lambda r: x[(*i[:axis], r, *i[axis:])], order)
            with b.for_range(0, x.shape[axis], "r") as r:
                b.store(outs[0], (*i[:axis], r, *i[axis:]), te.cast(lane.index(r), dtype))

    return te.extern([(x.shape, dtype)], [x], body, name="argsort")[0]


@legalizes(TopkOp)
def topk(kernel: Kernel, op: TopkOp) -> Sequence[te.Tensor]:
    """The first elements of an order, and their positions."""
    x = kernel.tensor(op.x)
    axis = axis_of(op.axis, x.ndim)
    shape, kind = kernel.shape(op.res[0]), op.ret_type.data
    outputs = [(shape, str(kernel.dtype(result))) for result in op.res]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("topk", *axes(without(x.shape, axis))) as i:
            lane = _first(b, x, axis, i, shape[axis], op)
            # Relax checks that there are as many as asked for; the kernel called on its own must not rely on that.
            with b.for_range(0, minimum(shape[axis], x.shape[axis]), "r") as r:
                target = (*i[:axis], r, *i[axis:])
                if kind != "indices":
                    b.store(outs[0], target, lane.key(r))
                if kind != "values":
                    b.store(outs[-1], target, te.cast(lane.index(r), outs[-1].dtype))

    return te.extern(outputs, [x], body, name="topk")


def _first(b: te.ExternBuilder, x: te.Tensor, axis: int, i: Sequence[te.Expr], count: Dim, op: TopkOp) -> Lane:
    order = ascending if op.smallest is not None else descending
    few = count.constant_value

    def load(r: te.Expr) -> te.Expr:
        return x[(*i[:axis], r, *i[axis:])]

    if few is not None and 0 < few <= MANY:
        return select_first(b, x.shape[axis], load, order, few)
    return merge_sort(b, x.shape[axis], load, order)

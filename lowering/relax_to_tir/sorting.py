"""Sorting along an axis, lane by lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import IndexType

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.indices import axes, axis_of, without
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.scalars import is_float_expr
from relax_dialect.ops.sorting import ArgsortOp, SortOp, TopkOp
from tir_dialect import te
from tir_dialect.dims import Dim, minimum
from tir_dialect.dtypes import is_bool

Order: TypeAlias = Callable[[te.ExternBuilder, te.Expr, te.Expr], te.Expr]
"""Whether the second of two elements has to come before the first; statements that find out go to the builder."""


def ascending(b: te.ExternBuilder, first: te.Expr, second: te.Expr) -> te.Expr:
    """Whether the second is less than the first."""
    return less(second, first)


def descending(b: te.ExternBuilder, first: te.Expr, second: te.Expr) -> te.Expr:
    """Whether the second is greater than the first."""
    return less(first, second)


def less(x: te.Expr, y: te.Expr) -> te.Expr:
    """Whether `x` is less than `y`; NaN is greater than every number."""
    if not isinstance(x.dtype, IndexType) and is_bool(x.dtype):
        return te.logical_and(y, te.logical_not(x))
    if is_float_expr(x):
        return te.logical_or(x < y, te.logical_and(te.isnan(y), te.logical_not(te.isnan(x))))
    return x < y


@dataclass(frozen=True)
class Lane:
    """Elements in order, and the indices that they come from; `side` is the half of the buffers in which they are."""

    keys: te.Tensor
    indices: te.Tensor | None
    side: te.Tensor

    def key(self, index: te.Expr) -> te.Expr:
        """The element with this rank."""
        return self.keys[self.side[()], index]

    def index(self, rank: te.Expr) -> te.Expr:
        """Where the element with this rank comes from, as `i64`."""
        if self.indices is None:
            raise ValueError("the indices were not sorted along")
        return self.indices[self.side[()], rank]


def merge_sort(
    b: te.ExternBuilder, length: Dim, load: Callable[[te.Expr], te.Expr], order: Order, *, indices: bool = True
) -> Lane:
    """Sorts `load(0)`, `load(1)`, ... `load(length - 1)`."""
    first = te.cast(length, "index")
    keys = b.alloc((2, length), load(first).dtype, "keys")
    origins = b.alloc((2, length), "i64", "places") if indices else None
    lane = Lane(keys, origins, b.alloc((), "i64", "side"))
    width = b.alloc((), "i64", "width")
    b.store(lane.side, (), 0)
    with b.for_range(0, length, "i") as i:
        b.store(keys, (0, i), load(i))
        if origins is not None:
            b.store(origins, (0, i), te.cast(i, "i64"))
    b.store(width, (), 1)
    size = te.cast(first, "i64")
    with b.while_(width[()] < size):
        pairs = te.cast((size + 2 * width[()] - 1) // (2 * width[()]), "index")
        with b.for_range(0, pairs, "pair") as pair:
            start = b.let(te.cast(pair, "i64") * 2 * width[()], "start")
            middle = b.let(te.minimum(start + width[()], size), "middle")
            end = b.let(te.minimum(middle + width[()], size), "end")
            _merge(b, lane, start, middle, end, order)
        b.store(lane.side, (), 1 - lane.side[()])
        b.store(width, (), 2 * width[()])
    return lane


def _merge(b: te.ExternBuilder, lane: Lane, start: te.Expr, middle: te.Expr, end: te.Expr, order: Order) -> None:
    """Merges two runs that lie side by side into the other half of the buffers."""
    side = lane.side[()]
    left, right = b.alloc((), "i64", "left"), b.alloc((), "i64", "right")
    takes_right = b.alloc((), "i1", "takes_right")
    b.store(left, (), start)
    b.store(right, (), middle)
    with b.for_range(start, end, "rank") as rank:
        b.store(takes_right, (), left[()] >= middle)
        with b.if_(te.logical_and(left[()] < middle, right[()] < end)):
            b.store(takes_right, (), order(b, lane.keys[side, left[()]], lane.keys[side, right[()]]))
        with b.if_(takes_right[()]):
            _move(b, lane, right, rank)
        with b.else_():
            _move(b, lane, left, rank)


def _move(b: te.ExternBuilder, lane: Lane, source: te.Tensor, rank: te.Expr) -> None:
    """The element at `source`, which then points at the next one, gets its rank in the other half."""
    side = lane.side[()]
    for buffer in (lane.keys, lane.indices):
        if buffer is not None:
            b.store(buffer, (1 - side, rank), buffer[side, source[()]])
    b.store(source, (), source[()] + 1)


def select_first(
    b: te.ExternBuilder, length: Dim, load: Callable[[te.Expr], te.Expr], order: Order, count: int
) -> Lane:
    """The first `count` elements in order: each element is put among the best ones so far, if it belongs there.

    For few elements out of many: of random data, nearly all need one comparison.
    """
    keys = b.alloc((1, count), load(te.cast(length, "index")).dtype, "keys")
    lane = Lane(keys, b.alloc((1, count), "i64", "places"), b.alloc((), "i64", "side"))
    found, at = b.alloc((), "i64", "found"), b.alloc((), "i64", "at")
    b.store(lane.side, (), 0)
    b.store(found, (), 0)
    with b.for_range(0, length, "i") as i:
        key = b.let(load(i), "key")
        belongs = te.if_then_else(found[()] < count, te.const(True, "i1"), order(b, keys[0, count - 1], key))
        with b.if_(belongs):
            b.store(at, (), te.minimum(found[()], count - 1))
            with b.while_(te.if_then_else(at[()] > 0, order(b, keys[0, at[()] - 1], key), False)):
                _shift(b, lane, at[()])
                b.store(at, (), at[()] - 1)
            _put(b, lane, at[()], key, te.cast(i, "i64"))
            b.store(found, (), te.minimum(found[()] + 1, count))
    return lane


def _shift(b: te.ExternBuilder, lane: Lane, at: te.Expr) -> None:
    _put(b, lane, at, lane.keys[0, at - 1], lane.index(at - 1))


def _put(b: te.ExternBuilder, lane: Lane, at: te.Expr, key: te.Expr, position: te.Expr) -> None:
    b.store(lane.keys, (0, at), key)
    if lane.indices is not None:
        b.store(lane.indices, (0, at), position)


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

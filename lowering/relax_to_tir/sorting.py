"""Searching, sorting and counting. What has a size that depends on data is counted by one kernel and filled by a
second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import IndexType

from lowering.relax_to_tir.elementwise import is_float_expr, truth, widen
from lowering.relax_to_tir.kernel import (
    Kernel,
    axes,
    axis_of,
    broadcast_load,
    legalizes,
    put,
    ravel,
    sizes,
    unravel,
    without,
)
from relax_dialect.ops.sorting import (
    ArgmaxOp,
    ArgminOp,
    ArgReductionOp,
    ArgsortOp,
    BucketizeOp,
    NonzeroOp,
    SortOp,
    TopkOp,
    UniqueOp,
    WhereOp,
)
from tir_dialect import te
from tir_dialect.dims import Dim, constant, minimum, product
from tir_dialect.dtypes import is_bool
from tir_dialect.te.expr import DType

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
            # Merges two runs that lie side by side into the other half of the buffers.
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
        b.store(lane.side, (), 1 - lane.side[()])
        b.store(width, (), 2 * width[()])
    return lane


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
            lane = _first_of_lane(b, x, axis, i, shape[axis], op)
            # Relax checks that there are as many as asked for; the kernel called on its own must not rely on that.
            with b.for_range(0, minimum(shape[axis], x.shape[axis]), "r") as r:
                target = (*i[:axis], r, *i[axis:])
                if kind != "indices":
                    b.store(outs[0], target, lane.key(r))
                if kind != "values":
                    b.store(outs[-1], target, te.cast(lane.index(r), outs[-1].dtype))

    return te.extern(outputs, [x], body, name="topk")


def _first_of_lane(b: te.ExternBuilder, x: te.Tensor, axis: int, i: Sequence[te.Expr], count: Dim, op: TopkOp) -> Lane:
    order = ascending if op.smallest is not None else descending
    few = count.constant_value

    def load(r: te.Expr) -> te.Expr:
        return x[(*i[:axis], r, *i[axis:])]

    if few is not None and 0 < few <= MANY:
        return select_first(b, x.shape[axis], load, order, few)
    return merge_sort(b, x.shape[axis], load, order)


Pair: TypeAlias = tuple[te.Expr, te.Expr]


@legalizes(WhereOp)
def where(kernel: Kernel, op: WhereOp) -> te.Tensor:
    """Elements of one or the other."""
    shape = kernel.shape(op.result)
    condition, x, y = (kernel.tensor(operand) for operand in op.operands)

    def element(*i: te.Expr) -> te.Expr:
        return te.select(*(broadcast_load(tensor, shape, i) for tensor in (condition, x, y)))

    return te.compute(shape, element, name="where")


def is_nan(x: te.Expr) -> te.Expr:
    """Whether a number is NaN; an integer never is."""
    return te.isnan(x) if is_float_expr(x) else te.const(False, "i1")


def _first(better: Callable[[te.Expr, te.Expr], te.Expr], worst: Callable[[DType], te.Expr], name: str) -> te.Reducer:
    """The best value and its position; NaN is better than all numbers, and of equals the first one counts."""

    def combine(a: Pair, b: Pair) -> Pair:
        earlier = b[1] < a[1]
        takes = te.logical_or(better(b[0], a[0]), te.logical_and(a[0] == b[0], earlier))
        if is_float_expr(b[0]):
            takes = te.select(te.isnan(b[0]), te.logical_or(te.logical_not(te.isnan(a[0])), earlier), takes)
        return te.select(takes, b[0], a[0]), te.select(takes, b[1], a[1])

    def identity(value: DType, position: DType) -> Pair:
        return worst(value), te.max_value(position)

    return te.comm_reducer(combine, identity, name=name)


FIRST_GREATEST = _first(lambda a, b: a > b, te.min_value, "argmax")
"""The greatest value and the position where it is first."""

_ARGMIN = _first(lambda a, b: a < b, te.max_value, "argmin")


@legalizes(ArgmaxOp)
def argmax(kernel: Kernel, op: ArgmaxOp) -> te.Tensor:
    """The first position of the greatest element."""
    return _arg_reduction(kernel, op, FIRST_GREATEST)


@legalizes(ArgminOp)
def argmin(kernel: Kernel, op: ArgminOp) -> te.Tensor:
    """The first position of the least element."""
    return _arg_reduction(kernel, op, _ARGMIN)


def _arg_reduction(kernel: Kernel, op: ArgReductionOp, reducer: te.Reducer) -> te.Tensor:
    x = kernel.tensor(op.x)
    reduced = tuple(range(x.ndim)) if op.axis is None else (axis_of(op.axis, x.ndim),)
    keep = op.keepdims is not None
    variables = [te.reduce_axis(x.shape[axis], f"r{axis}") for axis in reduced]
    position = te.cast(ravel(variables, [x.shape[axis] for axis in reduced]), "i64")

    def element(*i: te.Expr) -> te.Expr:
        outer = without(i, *reduced) if keep else i
        value = widen(x[put(outer, reduced, variables)])
        return reducer((value, position), variables)[1] if variables else te.const(0, "i64")

    return te.compute(kernel.shape(op.result), element, name=reducer.name)


@legalizes(BucketizeOp)
def bucketize(kernel: Kernel, op: BucketizeOp) -> te.Tensor:
    """Binary search for each element."""
    x, boundaries, dtype = kernel.tensor(op.x), kernel.tensor(op.boundaries), str(kernel.dtype(op.result))
    right = op.right is not None

    def before(boundary: te.Expr, value: te.Expr) -> te.Expr:
        """Whether the interval of `value` begins at or after `boundary`."""
        less = boundary <= value if right else boundary < value
        # NaN is beyond all boundaries that are numbers.
        beyond = is_nan(value) if right else te.logical_and(is_nan(value), te.logical_not(is_nan(boundary)))
        return te.logical_or(less, beyond)

    def search(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("bucketize", *axes(x.shape)) as i:
            low, high = b.alloc((), "i64", "low"), b.alloc((), "i64", "high")
            b.store(low, (), 0)
            b.store(high, (), te.cast(te.cast(boundaries.shape[0], "index"), "i64"))
            with b.while_(low[()] < high[()]):
                middle = b.let((low[()] + high[()]) // 2, "middle")
                with b.if_(before(widen(boundaries[middle]), widen(x[i]))):
                    b.store(low, (), middle + 1)
                with b.else_():
                    b.store(high, (), middle)
            b.store(outs[0], i, te.cast(low[()], dtype))

    return te.extern([(x.shape, dtype)], [x, boundaries], search, name="bucketize")[0]


@sizes(NonzeroOp)
def nonzero_count(kernel: Kernel, op: NonzeroOp) -> te.Tensor:
    """How many elements are not zero."""
    x = kernel.tensor(op.x)
    variables = [te.reduce_axis(extent, f"r{axis}") for axis, extent in enumerate(x.shape)]
    one = te.cast(truth(x[tuple(variables)]), "i64")
    return te.compute((1,), lambda *i: te.sum(one, variables) if variables else one, name="nonzero_count")


@legalizes(NonzeroOp)
def nonzero(kernel: Kernel, op: NonzeroOp) -> te.Tensor:
    """The positions of these elements, one after the other."""
    x = kernel.tensor(op.x)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        found = b.alloc((), "i64", "found")
        b.store(found, (), 0)
        with b.block("nonzero", *axes(x.shape, range(x.ndim))) as i, b.if_(truth(x[i])):
            for axis, position in enumerate(i):
                b.store(outs[0], (axis, found[()]), te.cast(position, "i64"))
            b.store(found, (), found[()] + 1)

    return te.extern([(kernel.shape(op.result), "i64")], [x], body, name="nonzero")[0]


class _Slices:
    """What `unique` tells apart: the elements of a tensor, or its slices along an axis."""

    def __init__(self, x: te.Tensor, axis: int | None):
        self.x = x
        self.axis = axis
        self.count = product(x.shape) if axis is None else x.shape[axis]
        """How many there are."""
        self.inner: Sequence[Dim] = () if axis is None else without(x.shape, axis)
        """The shape of one of them."""

    def element(self, position: te.Expr, index: Sequence[te.Expr] = ()) -> te.Expr:
        """An element of the slice at a position."""
        at = te.cast(position, "index")
        return self.x[unravel(at, self.x.shape) if self.axis is None else put(index, [self.axis], [at])]

    def order(self, b: te.ExternBuilder, first: te.Expr, second: te.Expr) -> te.Expr:
        """Whether the slice at the second position is less than that at the first, in lexicographic order."""
        if not self.inner:
            return less(self.element(second), self.element(first))
        size = te.cast(te.cast(product(self.inner), "index"), "i64")
        at, decided, result = b.alloc((), "i64", "at"), b.alloc((), "i1", "decided"), b.alloc((), "i1", "less")
        b.store(at, (), 0)
        b.store(decided, (), False)
        b.store(result, (), False)
        with b.while_(te.logical_and(at[()] < size, te.logical_not(decided[()]))):
            index = unravel(te.cast(at[()], "index"), self.inner)
            x, y = (b.let(self.element(position, index)) for position in (first, second))
            b.store(result, (), less(y, x))
            b.store(decided, (), te.logical_or(less(x, y), result[()]))
            b.store(at, (), at[()] + 1)
        return result[()]


def _slices(kernel: Kernel, op: UniqueOp) -> _Slices:
    x = kernel.tensor(op.x)
    return _Slices(x, None if op.axis is None else axis_of(op.axis, x.ndim))


@sizes(UniqueOp)
def unique_count(kernel: Kernel, op: UniqueOp) -> Sequence[te.Tensor]:
    """How many are different; kept: the positions in the order of their elements, and the number of each one's
    group.
    """
    slices = _slices(kernel, op)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        count, positions, groups = outs
        if slices.inner:
            lane = merge_sort(b, slices.count, lambda i: te.cast(i, "i64"), slices.order, indices=False)
            position = lane.key
        else:
            lane = merge_sort(b, slices.count, slices.element, ascending)
            position = lane.index
        b.store(count, 0, 0)
        with b.for_range(0, slices.count, "rank") as rank:
            b.store(positions, rank, position(rank))
            with b.if_(rank > 0):
                # In order, a slice that is greater than the one before it is a new one.
                differs = slices.order(b, position(rank), positions[rank - 1])
                b.store(count, 0, count[0] + te.cast(differs, "i64"))
            b.store(groups, rank, count[0])
        if op.unsorted is not None:
            # Numbers groups of equal slices, which are in ascending order, in the order of their first occurrences.
            group_of, numbers = b.alloc((slices.count,), "i64", "group_of"), b.alloc((slices.count,), "i64", "numbers")
            known = b.alloc((), "i64", "known")
            with b.for_range(0, slices.count, "rank") as rank:
                b.store(group_of, positions[rank], groups[rank])
                b.store(numbers, rank, -1)
            b.store(known, (), 0)
            with b.for_range(0, slices.count, "place") as index:
                group = b.let(group_of[index], "group")
                with b.if_(numbers[group] < 0):
                    b.store(numbers, group, known[()])
                    b.store(known, (), known[()] + 1)
            with b.for_range(0, slices.count, "rank") as rank:
                b.store(groups, rank, numbers[groups[rank]])
        b.store(count, 0, te.if_then_else(te.cast(slices.count, "index") > 0, count[0] + 1, 0))

    length = (slices.count,)
    return te.extern([((1,), "i64"), (length, "i64"), (length, "i64")], [slices.x], body, name="unique_sizes")


@legalizes(UniqueOp)
def unique(kernel: Kernel, op: UniqueOp) -> Sequence[te.Tensor]:
    """The first slice of each group, and what else is asked for."""
    slices, positions, groups = _slices(kernel, op), kernel.kept(0), kernel.kept(1)
    flags = (op.return_index, op.return_inverse, op.return_counts)
    outputs = [(kernel.shape(result), str(kernel.dtype(result))) for result in op.res]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        rest = iter(outs[1:])
        index, inverse, counts = (None if flag is None else next(rest) for flag in flags)
        with b.block("unique", *axes((slices.count,), [0])) as (rank,):
            group, position = b.let(groups[rank], "group"), b.let(positions[rank], "place")
            with b.if_(te.if_then_else(rank > 0, groups[rank - 1] != group, te.const(True, "i1"))):
                with b.for_range(0, product(slices.inner) if slices.inner else constant(1), "j") as j:
                    at = unravel(j, slices.inner)
                    target = (group,) if slices.axis is None else put(at, [slices.axis], [group])
                    b.store(outs[0], target, slices.element(position, at))
                if index is not None:
                    b.store(index, group, position)
                if counts is not None:
                    b.store(counts, group, 0)
            if inverse is not None:
                b.store(inverse, position, group)
            if counts is not None:
                b.store(counts, group, counts[group] + 1)

    return te.extern(outputs, [slices.x, positions, groups], body, name="unique")

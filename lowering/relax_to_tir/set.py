"""Operators whose results have sizes that depend on data: a first kernel counts, a second one fills."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.relax_to_tir.context import legalizes, sizes
from lowering.relax_to_tir.indices import axes, axis_of, put, unravel, without
from lowering.relax_to_tir.kernel import Kernel
from lowering.relax_to_tir.scalars import truth
from lowering.relax_to_tir.sorting import ascending, less, merge_sort
from relax_dialect.ops.set import NonzeroOp, UniqueOp
from tir_dialect import te
from tir_dialect.dims import Dim, constant, product


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
            _number_by_occurrence(b, slices.count, positions, groups)
        b.store(count, 0, te.if_then_else(te.cast(slices.count, "index") > 0, count[0] + 1, 0))

    length = (slices.count,)
    return te.extern([((1,), "i64"), (length, "i64"), (length, "i64")], [slices.x], body, name="unique_sizes")


def _number_by_occurrence(b: te.ExternBuilder, count: Dim, positions: te.Tensor, groups: te.Tensor) -> None:
    """Numbers groups of equal slices, which are in ascending order, in the order of their first occurrences."""
    group_of, numbers = b.alloc((count,), "i64", "group_of"), b.alloc((count,), "i64", "numbers")
    known = b.alloc((), "i64", "known")
    with b.for_range(0, count, "rank") as rank:
        b.store(group_of, positions[rank], groups[rank])
        b.store(numbers, rank, -1)
    b.store(known, (), 0)
    with b.for_range(0, count, "place") as index:
        group = b.let(group_of[index], "group")
        with b.if_(numbers[group] < 0):
            b.store(numbers, group, known[()])
            b.store(known, (), known[()] + 1)
    with b.for_range(0, count, "rank") as rank:
        b.store(groups, rank, numbers[groups[rank]])


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

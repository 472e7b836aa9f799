"""Reductions over axes, and running sums and products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from lowering.relax_to_tir.elementwise import narrow, number, widen
from lowering.relax_to_tir.kernel import Kernel, axes_of, axis_of, legalizes, put, unravel, without
from lowering.relax_to_tir.kernel import axes as blocks
from lowering.relax_to_tir.sorting import ascending, merge_sort
from relax_dialect.ops.reduction import (
    CumprodOp,
    CumsumOp,
    MaxOp,
    MeanOp,
    MedianOp,
    MinOp,
    ProdOp,
    ReductionOp,
    ScanOp,
    StdOp,
    SumOp,
    VarianceOp,
)
from tir_dialect import te
from tir_dialect.dims import Dim, product

Element: TypeAlias = Callable[[tuple[te.Expr, ...]], te.Expr]
"""An expression for an index."""

Reduce: TypeAlias = Callable[[te.Expr, Sequence[te.IterVar]], te.Expr]


def over(shape: Sequence[Dim], axes: Sequence[int], element: Element, reduce: Reduce) -> Element:
    """The reduction of `element` over the axes of `shape`, for an index into the other axes."""
    variables = [te.reduce_axis(shape[axis], f"r{axis}") for axis in axes]

    def reduced(outer: tuple[te.Expr, ...]) -> te.Expr:
        value = element(put(outer, axes, variables))
        return reduce(value, variables) if variables else value

    return reduced


def result(kernel: Kernel, op: ReductionOp, axes: Sequence[int], element: Element, name: str) -> te.Tensor:
    """The result of a reduction op whose value at an index into the other axes is `element`."""
    x = kernel.tensor(op.x)
    keep = op.keepdims is not None
    return te.compute(
        kernel.shape(op.result), lambda *i: narrow(element(without(i, *axes) if keep else i), x), name=name
    )


def mean_of(shape: Sequence[Dim], axes: Sequence[int], element: Element, name: str) -> te.Tensor:
    """The arithmetic mean over axes as a tensor over the others."""
    reduced = over(shape, axes, element, te.sum)
    count = product([shape[axis] for axis in axes])

    def mean(*i: te.Expr) -> te.Expr:
        total = reduced(i)
        return total / te.cast(te.cast(count, "index"), total.dtype)

    return te.compute(without(shape, *axes), mean, name=name)


_REDUCERS: dict[type[ReductionOp], tuple[Reduce, str]] = {
    SumOp: (te.sum, "sum"),
    ProdOp: (te.prod, "prod"),
    MaxOp: (te.max, "max"),
    MinOp: (te.min, "min"),
}


@legalizes(*_REDUCERS)
def reduction(kernel: Kernel, op: ReductionOp) -> te.Tensor:
    """A reduction of the elements as they are."""
    x = kernel.tensor(op.x)
    axes = axes_of(op.axes, x.ndim)
    reduce, name = _REDUCERS[type(op)]
    return result(kernel, op, axes, over(x.shape, axes, lambda i: widen(x[i]), reduce), name)


@legalizes(MeanOp)
def mean(kernel: Kernel, op: MeanOp) -> te.Tensor:
    """The sum, divided by how many there are."""
    x = kernel.tensor(op.x)
    axes = axes_of(op.axes, x.ndim)
    means = mean_of(x.shape, axes, lambda i: widen(x[i]), "means")
    return result(kernel, op, axes, lambda i: means[i], "mean")


@legalizes(VarianceOp)
def variance(kernel: Kernel, op: VarianceOp) -> te.Tensor:
    """The mean of the squared distances."""
    axes, variances = _variances(kernel, op)
    return result(kernel, op, axes, lambda i: variances[i], "variance")


@legalizes(StdOp)
def std(kernel: Kernel, op: StdOp) -> te.Tensor:
    """The square root of the variance."""
    axes, variances = _variances(kernel, op)
    return result(kernel, op, axes, lambda i: te.sqrt(variances[i]), "std")


def _variances(kernel: Kernel, op: ReductionOp) -> tuple[Sequence[int], te.Tensor]:
    x = kernel.tensor(op.x)
    axes = axes_of(op.axes, x.ndim)
    return axes, variance_of(x.shape, axes, lambda i: widen(x[i]))[1]


def variance_of(shape: Sequence[Dim], axes: Sequence[int], element: Element) -> tuple[te.Tensor, te.Tensor]:
    """The means and the variances over axes, as tensors over the others."""
    means = mean_of(shape, axes, element, "means")

    def square(i: tuple[te.Expr, ...]) -> te.Expr:
        distance = element(i) - means[without(i, *axes)]
        return distance * distance

    return means, mean_of(shape, axes, square, "variances")


@legalizes(MedianOp)
def median(kernel: Kernel, op: MedianOp) -> te.Tensor:
    """The middle of the sorted elements; NaN if there is one, or none at all."""
    x = kernel.tensor(op.x)
    axes = axes_of(op.axes, x.ndim)
    outer, inner = without(x.shape, *axes), [x.shape[axis] for axis in axes]
    count, wide = product(inner), widen(te.const(0, x.dtype))
    nan = te.const(math.nan, wide.dtype)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("median", *blocks(outer)) as i:
            lane = merge_sort(b, count, lambda r: widen(x[put(i, axes, unravel(r, inner))]), ascending, indices=False)
            size = te.cast(count, "index")
            middle = (lane.key((size - 1) // 2) + lane.key(size // 2)) / 2
            last = te.if_then_else(size > 0, lane.key(size - 1), nan)
            b.store(outs[0], i, te.if_then_else(te.isnan(last), nan, middle))

    (medians,) = te.extern([(outer, wide.dtype)], [x], body, name="medians")
    return result(kernel, op, axes, lambda i: medians[i], "median")


@legalizes(CumsumOp)
def cumsum(kernel: Kernel, op: CumsumOp) -> te.Tensor:
    """Running sums."""
    return _scan(kernel, op, lambda a, b: a + b, 0, "cumsum")


@legalizes(CumprodOp)
def cumprod(kernel: Kernel, op: CumprodOp) -> te.Tensor:
    """Running products."""
    return _scan(kernel, op, lambda a, b: a * b, 1, "cumprod")


def _scan(
    kernel: Kernel, op: ScanOp, combine: Callable[[te.Expr, te.Expr], te.Expr], start: int, name: str
) -> te.Tensor:
    """Each element from the one before it, in the order of the axis."""
    x, shape, dtype = kernel.tensor(op.x), kernel.shape(op.result), str(kernel.dtype(op.result))
    axis = 0 if op.axis is None else axis_of(op.axis, x.ndim)
    exclusive = op.exclusive is not None

    def element(i: Sequence[te.Expr]) -> te.Expr:
        return widen(te.cast(x[unravel(i[0], x.shape) if op.axis is None else tuple(i)], dtype))

    def scan(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        (y,) = outs
        with b.block(name, *blocks(shape, [axis])) as i:
            before = (*i[:axis], i[axis] - 1, *i[axis + 1 :])
            first = number(start, y[i]) if exclusive else element(i)
            b.store(y, i, te.if_then_else(i[axis] > 0, combine(y[before], element(before if exclusive else i)), first))

    wide = str(widen(te.const(0, dtype)).dtype)
    (sums,) = te.extern([(shape, wide)], [x], scan, name=name)
    return sums if wide == dtype else te.compute(shape, lambda *i: te.cast(sums[i], dtype), name=f"{name}_narrow")

"""Reductions and running sums; searching, sorting and counting.

16-bit floats are accumulated in `f32`. NaN is greater than every number; equal elements keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relax_dialect.interpreter.operators import (
    DimValues,
    computes,
    computes_all,
    computes_in,
    integer,
    integers,
    result_dtype,
    wide,
)
from relax_dialect.interpreter.runtime_values import Array
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
from tir_dialect.dtypes import numpy_dtype


@computes(SumOp, ProdOp, MaxOp, MinOp)
def reduction(op: ReductionOp, x: Array) -> Array:
    """NumPy's reduction, in the dtype of the operand."""
    w, is_extremum = wide(x), isinstance(op, MaxOp | MinOp)
    if is_extremum and x.size == 0:
        return np.zeros(np.shape(np.sum(w, axis=integers(op.axes), keepdims=op.keepdims is not None)), x.dtype)
    options = {} if is_extremum else {"dtype": w.dtype}
    found = op.EVALUATE(w, axis=integers(op.axes), keepdims=op.keepdims is not None, **options)
    return np.asarray(found).astype(x.dtype, copy=False)


@computes(MeanOp, VarianceOp, StdOp, MedianOp)
def average(op: ReductionOp, x: Array) -> Array:
    """NumPy's average; NaN of no elements. NumPy has no median over several axes if there are no others."""
    w, axes, keepdims = wide(x), integers(op.axes), op.keepdims is not None
    if x.size == 0:
        return np.full(np.shape(np.sum(w, axis=axes, keepdims=keepdims)), np.nan, x.dtype)
    return np.asarray(op.EVALUATE(w, axis=axes, keepdims=keepdims)).astype(x.dtype, copy=False)


@computes(CumsumOp, CumprodOp)
def scan(op: ScanOp, x: Array) -> Array:
    """NumPy's running sum or product, in the dtype of the result."""
    dtype = result_dtype(op, x)
    start = 1 if isinstance(op, CumprodOp) else 0
    axis = integer(op.axis)
    w = wide(x.astype(dtype, copy=False))
    if axis is None:
        w, axis = w.reshape(-1), 0
    if op.exclusive is not None:
        first = np.full_like(np.take(w, range(min(1, w.shape[axis])), axis), start)
        w = np.concatenate([first, np.take(w, range(max(w.shape[axis] - 1, 0)), axis)], axis)
    return np.asarray(op.EVALUATE(w, axis=axis, dtype=w.dtype)).astype(dtype, copy=False)


def order(x: Array, axis: int, descending: bool) -> Array:
    """The positions along the axis from which a stable sort takes the elements."""
    w = wide(x)
    if not descending:
        return np.argsort(w, axis=axis, kind="stable")
    # Ascending from the back is descending with equal elements in order.
    positions = np.argsort(np.flip(w, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(positions, axis)


@computes(SortOp)
def sort(op: SortOp, x: Array) -> Array:
    """The elements in order."""
    axis = op.axis.value.data
    return np.take_along_axis(x, order(x, axis, op.descending is not None), axis)


@computes(ArgsortOp)
def argsort(op: ArgsortOp, x: Array) -> Array:
    """The positions in order."""
    return order(x, op.axis.value.data, op.descending is not None).astype(numpy_dtype(op.dtype))


@computes_in(TopkOp)
def topk(dims: DimValues, op: TopkOp, x: Array) -> Sequence[Array]:
    """The first `k` positions of an order, and the elements there."""
    axis = op.axis.value.data
    positions = np.take(order(x, axis, op.smallest is None), range(dims(op.k)), axis)
    values = np.take_along_axis(x, positions, axis)
    indices = positions.astype(numpy_dtype(op.dtype))
    return {"both": (values, indices), "values": (values,), "indices": (indices,)}[op.ret_type.data]


@computes(WhereOp)
def where(op: WhereOp, condition: Array, x: Array, y: Array) -> Array:
    """NumPy's `where`."""
    return np.where(condition, x, y)


@computes(ArgmaxOp, ArgminOp)
def argreduction(op: ArgReductionOp, x: Array) -> Array:
    """The first position of an extreme; NaN counts as one."""
    if x.size == 0:
        return np.zeros(np.shape(np.sum(x, axis=integer(op.axis), keepdims=op.keepdims is not None)), np.int64)
    found = getattr(np, op.NUMPY_NAME)(wide(x), axis=integer(op.axis), keepdims=op.keepdims is not None)
    return np.asarray(found, np.int64)


@computes(BucketizeOp)
def bucketize(op: BucketizeOp, x: Array, boundaries: Array) -> Array:
    """Binary search, halving the same intervals whatever the values, so that it says something of any boundaries."""
    sought, ends = wide(x), wide(boundaries)
    low, high = np.zeros(x.shape, np.int64), np.full(x.shape, len(ends), np.int64)
    while np.any(open_ := low < high):
        middle = (low + high) // 2
        beyond = _is_beyond(ends[np.where(open_, middle, 0)], sought, op.right is not None)
        low, high = np.where(open_ & beyond, middle + 1, low), np.where(open_ & ~beyond, middle, high)
    return low.astype(result_dtype(op, x))


def _is_beyond(boundary: Array, value: Array, right: bool) -> Array:
    """Whether the interval of a value begins at or after a boundary; NaN is beyond all that are numbers."""
    if right:
        return (boundary <= value) | np.isnan(value)
    return (boundary < value) | (np.isnan(value) & ~np.isnan(boundary))


@computes_all(UniqueOp)
def unique(op: UniqueOp, x: Array) -> Sequence[Array]:
    """NumPy's `unique`: all NaN are one."""
    wanted = (op.return_index, op.return_inverse, op.return_counts)
    values, *extra = _unique(x, integer(op.axis), op.unsorted is None)
    parts = [part for part, flag in zip(extra, wanted, strict=True) if flag is not None]
    return [values, *(part.astype(np.int64).reshape(-1) for part in parts)]


def _unique(x: Array, axis: int | None, is_sorted: bool) -> Sequence[Array]:
    found = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    if is_sorted:
        return found
    values, index, inverse, counts = found
    order = np.argsort(index)
    return np.take(values, order, axis or 0), index[order], np.argsort(order)[inverse], counts[order]


@computes(NonzeroOp)
def nonzero(op: NonzeroOp, x: Array) -> Array:
    """The indices of the elements that are not zero, as columns."""
    return np.array(np.nonzero(np.atleast_1d(x)), np.int64)[: x.ndim]

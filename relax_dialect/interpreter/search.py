"""Choice and search."""

from __future__ import annotations

import numpy as np

from relax_dialect.interpreter.operators import computes, result_dtype, wide
from relax_dialect.interpreter.properties import integer
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.search import ArgmaxOp, ArgminOp, ArgReductionOp, BucketizeOp, WhereOp


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

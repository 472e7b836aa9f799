"""Reductions and running sums; 16-bit floats are accumulated in `f32`."""

from __future__ import annotations

import numpy as np

from relax_dialect.interpreter.operators import computes, integer, integers, result_dtype, wide
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

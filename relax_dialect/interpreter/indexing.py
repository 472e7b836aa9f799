"""Take and slices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relax_dialect.interpreter.operators import DimValues, computes, computes_in, integer, integers
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.indexing import (
    DynamicStridedSliceOp,
    StridedSliceOp,
    TakeOp,
    slice_index,
    slice_length,
    taken_indices,
)
from tir_dialect.attributes import DimAttr
from tir_dialect.dims import constant


@computes(TakeOp)
def take(op: TakeOp, x: Array, indices: Array) -> Array:
    """Slices at indices."""
    axis, mode = integer(op.axis) or 0, op.mode.data
    if x.size == 0:
        return np.zeros((*x.shape[:axis], *indices.shape, *x.shape[axis:][1:]), x.dtype)
    return np.take(x, taken_indices(indices, x.shape[axis], mode), axis)


@computes_in(StridedSliceOp)
def strided_slice(dims: DimValues, op: StridedSliceOp, x: Array) -> Sequence[Array]:
    """Every `stride`th position from `begin` before `end`, as the type of the result counts them."""
    axes = integers(op.axes) or ()
    strides = integers(op.strides) or (1,) * len(axes)
    for axis, begin, end, stride in zip(axes, op.begin, op.end, strides, strict=True):
        length, inbound = constant(x.shape[axis]), op.assume_inbound is not None
        count = slice_length(length, begin.data, end.data, stride, inbound)
        first = begin.data if inbound else slice_index(length, begin.data, stride)
        size = 0 if count is None else dims(DimAttr(count))
        x = np.take(x, dims(DimAttr(first)) + stride * np.arange(size), axis)
    return (x,)


@computes(DynamicStridedSliceOp)
def dynamic_strided_slice(op: DynamicStridedSliceOp, x: Array, begin: Array, end: Array, strides: Array) -> Array:
    """Python's slices."""
    return x[tuple(slice(*map(int, position)) for position in zip(begin, end, strides, strict=True))]

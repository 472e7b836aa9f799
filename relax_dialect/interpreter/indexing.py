"""Take, slices, gather and scatter. A negative index counts from the back.

Where an index of gather or scatter is out of range, the nearest element is read, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relax_dialect.interpreter.operators import DimValues, computes, computes_in, integer, integers, result_dtype, wide
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.gather import (
    GatherElementsOp,
    GatherNDOp,
    IndexPutOp,
    IndexTensorOp,
    OneHotOp,
    ScatterElementsOp,
    ScatterNDOp,
    SliceScatterOp,
)
from relax_dialect.ops.indexing import (
    DynamicStridedSliceOp,
    StridedSliceOp,
    TakeOp,
    slice_index,
    slice_length,
    taken_indices,
)
from tir_dialect.dims import constant
from tir_dialect.types import DimAttr


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


_COMBINE: dict[str, Callable[[Any, Any, Any], None]] = {
    "add": np.add.at,
    "mul": np.multiply.at,
    "max": np.maximum.at,
    "min": np.minimum.at,
}


@computes(GatherElementsOp)
def gather_elements(op: GatherElementsOp, x: Array, indices: Array) -> Array:
    """The element at the position of each index, but along the axis at the index."""
    return x[nearest(open_indices(indices, op.axis.value.data), x.shape)]


def nearest(positions: tuple[Array, ...], shape: Sequence[int]) -> tuple[Array, ...]:
    """Positions, of which those out of range are the nearest that there is."""
    return tuple(taken_indices(each, extent, "fast") for each, extent in zip(positions, shape, strict=False))


def open_indices(indices: Array, axis: int) -> tuple[Array, ...]:
    """The coordinates of each element of `indices`, the one along the axis being the index."""
    coordinates: list[Array] = list(np.indices(indices.shape, sparse=True))
    coordinates[axis] = indices
    return tuple(coordinates)


@computes(GatherNDOp)
def gather_nd(op: GatherNDOp, x: Array, indices: Array) -> Array:
    """Slices at coordinates, for each of the batches."""
    positions = nearest(coordinates(indices, op.batch_dims.value.data), x.shape)
    return x[positions] if positions else np.broadcast_to(x, (*indices.shape[:-1], *x.shape)).copy()


def coordinates(indices: Array, batch: int) -> tuple[Array, ...]:
    """The coordinates in the last dimension of `indices`, after those of the batch."""
    outer = indices.shape[:-1]
    batches = np.indices(outer)[:batch] if outer else ()
    return (*batches, *(indices[..., index] for index in range(indices.shape[-1])))


@computes(ScatterElementsOp)
def scatter_elements(op: ScatterElementsOp, x: Array, indices: Array, updates: Array) -> Array:
    """The elements at the positions of indices changed, in order of the updates."""
    return scatter(x, open_indices(indices, op.axis.value.data), updates, op.reduction.data)


@computes(ScatterNDOp)
def scatter_nd(op: ScatterNDOp, x: Array, indices: Array, updates: Array) -> Array:
    """The slices at coordinates changed, in order of the updates."""
    return scatter(x, coordinates(indices, 0), updates, op.reduction.data)


def scatter(x: Array, indices: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    """A copy of `x` with updates at positions; of equal positions the last one counts, or all are combined."""
    result = wide(x).copy()
    indices = tuple(np.broadcast_arrays(*indices))
    found = nearest(indices, x.shape)
    inside = np.ones(indices[0].shape, bool)
    for each, at, extent in zip(indices, found, x.shape, strict=False):
        inside &= (extent > 0) & ((each == at) | (each == at - extent))
    written = tuple(each[inside] for each in found)
    updates = np.broadcast_to(updates, (*inside.shape, *x.shape[len(indices) :]))[inside]
    if reduction == "update":
        result[written] = updates
    else:
        _COMBINE[reduction](result, written, wide(updates))
    return result.astype(x.dtype)


@computes_in(OneHotOp)
def one_hot(dims: DimValues, op: OneHotOp, indices: Array, on: float, off: float) -> Sequence[Array]:
    """`on` at the index, `off` elsewhere."""
    axis = op.axis.value.data
    hot = np.expand_dims(indices, axis) == _along(np.arange(dims(op.depth)), axis, indices.ndim + 1)
    dtype = result_dtype(op, np.asarray(on))
    return (np.where(hot, np.array(on, dtype), np.array(off, dtype)),)


def _along(vector: Array, axis: int, rank: int) -> Array:
    shape = [1] * rank
    shape[axis] = -1
    return vector.reshape(shape)


@computes(IndexTensorOp)
def index_tensor(op: IndexTensorOp, x: Array, *indices: Array) -> Array:
    """NumPy's indexing; where an index is out of range, the nearest one."""
    return x[nearest(indices, x.shape)]


@computes(IndexPutOp)
def index_put(op: IndexPutOp, x: Array, values: Array, *indices: Array) -> Array:
    """A copy with values written, of equal positions the last one, or added."""
    return scatter(x, indices, values, "update" if op.accumulate is None else "add")


@computes_in(SliceScatterOp)
def slice_scatter(dims: DimValues, op: SliceScatterOp, x: Array, source: Array) -> Sequence[Array]:
    """A copy with a slice replaced."""
    axis, step = op.axis.value.data % x.ndim, op.step.value.data
    first = dims(DimAttr(slice_index(constant(x.shape[axis]), op.start.data, step)))
    result = x.copy()
    positions = np.array(range(first, first + step * source.shape[axis], step), np.int64)
    result[(slice(None),) * axis + (positions,)] = source
    return (result,)

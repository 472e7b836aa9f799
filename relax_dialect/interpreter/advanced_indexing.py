"""Operators whose positions are tensors that broadcast, and writes into slices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relax_dialect.interpreter.gather import nearest, scatter
from relax_dialect.interpreter.operators import DimValues, computes, computes_in
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.advanced_indexing import IndexPutOp, IndexTensorOp, SliceScatterOp
from relax_dialect.ops.indexing import slice_index
from tir_dialect.attributes import DimAttr
from tir_dialect.dims import constant


@computes(IndexTensorOp)
def index_tensor(op: IndexTensorOp, x: Array, *indices: Array) -> Array:
    """NumPy's indexing; where an index is out of range, the nearest one."""
    return x[nearest(indices, x.shape)]


@computes(IndexPutOp)
def index_put(op: IndexPutOp, x: Array, values: Array, *indices: Array) -> Array:
    """A copy with values written, of equal places the last one, or added."""
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

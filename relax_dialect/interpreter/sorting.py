"""Sorting along an axis. NaN is greater than every number; equal elements keep their order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relax_dialect.interpreter.operators import DimValues, computes, computes_in, wide
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.sorting import ArgsortOp, SortOp, TopkOp
from tir_dialect.dtypes import numpy_dtype


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

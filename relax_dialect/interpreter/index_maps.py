"""Tensors whose elements go where an index map says."""

from __future__ import annotations

import numpy as np

from relax_dialect.interpreter.operators import computes, element
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.index_maps import MapIndicesOp, mapped, mapped_shape
from tir_dialect.dims import constant


@computes(MapIndicesOp)
def map_indices(op: MapIndicesOp, x: Array) -> Array:
    """Each element put into its position between copies of the value."""
    index_map = op.index_map.data
    shape = [dim.evaluate({}) for dim in mapped_shape(index_map, [constant(length) for length in x.shape])]
    result = np.full(shape, element(op.pad_value.value.data, op, x))
    result[mapped(index_map, list(np.indices(x.shape)))] = x
    return result

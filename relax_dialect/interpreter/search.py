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
    """The first place of an extreme; NaN counts as one."""
    found = getattr(np, op.NUMPY_NAME)(wide(x), axis=integer(op.axis), keepdims=op.keepdims is not None)
    return np.asarray(found, np.int64)


@computes(BucketizeOp)
def bucketize(op: BucketizeOp, x: Array, boundaries: Array) -> Array:
    """NumPy's `searchsorted`."""
    side = "left" if op.right is None else "right"
    return np.asarray(np.searchsorted(wide(boundaries), wide(x), side)).astype(result_dtype(op, x))

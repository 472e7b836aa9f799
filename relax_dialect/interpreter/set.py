"""Operators whose results have shapes that depend on data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relax_dialect.interpreter.operators import computes, computes_all
from relax_dialect.interpreter.properties import integer
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.set import NonzeroOp, UniqueOp


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

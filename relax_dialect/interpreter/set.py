"""Operators whose results have shapes that depend on data."""

from __future__ import annotations

from typing import Any

import numpy as np

from relax_dialect.interpreter.machine import Frame, runs
from relax_dialect.interpreter.operators import computes
from relax_dialect.ops.set import NonzeroOp, UniqueOp


@runs(UniqueOp)
def unique(frame: Frame, op: UniqueOp) -> None:
    """NumPy's `unique`."""
    flags = [flag is not None for flag in (op.return_index, op.return_inverse, op.return_counts)]
    axis = None if op.axis is None else op.axis.value.data
    found: Any = np.unique(frame.get(op.x), *flags, axis=axis)
    values, *extra = found if isinstance(found, tuple) else (found,)
    parts = [values, *(part.astype(np.int64).reshape(-1) for part in extra)]
    for result, part in zip(op.res, parts, strict=True):
        frame.check(part, result.type, "result of 'relax.unique'")
        frame.set(result, part)


@computes(NonzeroOp)
def nonzero(op: NonzeroOp, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The places of the elements that are not zero, as columns."""
    return np.array(np.nonzero(np.atleast_1d(x)), np.int64)[: x.ndim]

"""Sums of products by letters, for operands of any size."""

from __future__ import annotations

import numpy as np

from relax_dialect.interpreter.runtime_values import Array


def einsum(subscripts: str, *operands: Array) -> Array:
    """NumPy's `einsum`, also for operands without elements.

    NumPy (2.4) takes a factor that is the same along the sum, as its stride 0 says, out of it: of an operand without
    elements it multiplies an empty sum by whatever lies at its address, which may be no number. Zeros of the same shape
    stand for all operands then: the result is zero, or has no elements.
    """
    if not all(operand.size for operand in operands):
        operands = tuple(np.broadcast_to(np.zeros((), operand.dtype), operand.shape) for operand in operands)
    return np.asarray(np.einsum(subscripts, *operands))

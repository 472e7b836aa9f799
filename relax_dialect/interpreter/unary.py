"""Unary elementwise operators: the scalar function of the op, on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from relax_dialect.interpreter.operators import computes
from relax_dialect.ops import unary
from relax_dialect.ops.unary import UnaryOp


def elementwise(op: UnaryOp, *operands: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """NumPy's function, with IEEE results instead of warnings and the dtype that the op declares."""
    with np.errstate(all="ignore"):
        result = np.asarray(op.SCALAR.evaluate(*operands))
    dtype = bool if op.SCALAR.predicate else operands[0].dtype
    return result.astype(dtype, copy=False)


for _op in vars(unary).values():
    if isinstance(_op, type) and issubclass(_op, UnaryOp) and "name" in vars(_op):
        computes(_op)(elementwise)

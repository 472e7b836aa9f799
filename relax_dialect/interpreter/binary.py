"""Binary and ternary elementwise operators: the scalar function of the op, on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from relax_dialect.interpreter.operators import computes
from relax_dialect.ops import binary
from relax_dialect.ops.binary import BroadcastOp


def elementwise(op: BroadcastOp, *operands: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """NumPy's function, with IEEE results instead of warnings and the dtype that the op declares."""
    with np.errstate(all="ignore"):
        result = np.asarray(op.SCALAR.evaluate(*operands))
    dtype = bool if op.SCALAR.predicate else operands[0].dtype
    return result.astype(dtype, copy=False)


for _op in vars(binary).values():
    if isinstance(_op, type) and issubclass(_op, BroadcastOp) and "name" in vars(_op):
        computes(_op)(elementwise)

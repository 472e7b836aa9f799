"""Linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from relax_dialect.interpreter.operators import computes
from relax_dialect.ops.linear_algebra import MatmulOp
from tir_dialect.dtypes import numpy_dtype


@computes(MatmulOp)
def matmul(op: MatmulOp, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """NumPy's `matmul`, in the dtype of the result."""
    dtype = op.result.type.dtype
    target = x.dtype if dtype is None else numpy_dtype(dtype)
    return np.asarray(np.matmul(x.astype(target, copy=False), y.astype(target, copy=False)))

"""Linear algebra."""

from __future__ import annotations

import numpy as np

from relax_dialect.interpreter import operators
from relax_dialect.interpreter.operators import computes, result_dtype, wide
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.linear_algebra import EinsumOp, MatmulOp, OuterOp


@computes(MatmulOp)
def matmul(op: MatmulOp, x: Array, y: Array) -> Array:
    """NumPy's `matmul`, in the dtype of the result; 16-bit floats are summed in `f32`."""
    dtype = result_dtype(op, x)
    left, right = (wide(operand.astype(dtype, copy=False)) for operand in (x, y))
    return np.asarray(np.matmul(left, right)).astype(dtype, copy=False)


@computes(OuterOp)
def outer(op: OuterOp, x: Array, y: Array) -> Array:
    """All products."""
    return np.outer(x, y)


@computes(EinsumOp)
def einsum(op: EinsumOp, *operands: Array) -> Array:
    """NumPy's `einsum`; 16-bit floats are summed in `f32`."""
    return operators.einsum(op.subscripts.data, *map(wide, operands)).astype(operands[0].dtype)

"""Conversion between element types."""

from __future__ import annotations

from relax_dialect.interpreter.operators import computes, result_dtype
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.datatype import AstypeOp


@computes(AstypeOp)
def astype(op: AstypeOp, x: Array) -> Array:
    """NumPy's conversion."""
    return x.astype(result_dtype(op, x))

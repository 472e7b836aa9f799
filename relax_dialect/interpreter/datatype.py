"""Conversion between element types, of values and of bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relax_dialect.interpreter.operators import DimValues, computes, computes_in
from relax_dialect.interpreter.runtime_values import Array, Shape
from relax_dialect.ops.datatype import AstypeOp, ReinterpretOp
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.elements import converted


@computes(AstypeOp)
def astype(op: AstypeOp, x: Array) -> Array:
    """Every element converted."""
    return converted(x, op.dtype)


@computes_in(ReinterpretOp)
def reinterpret(dims: DimValues, op: ReinterpretOp, x: Array, shape: Shape) -> Sequence[Array]:
    """Bytes, as NumPy sees them."""
    dtype = x.dtype if op.dtype is None else numpy_dtype(op.dtype)
    start, sizes = dims(op.offset), tuple(shape)
    found = np.ascontiguousarray(x).reshape(-1).view(np.uint8)[start : start + math.prod(sizes) * dtype.itemsize]
    return (((found != 0) if dtype == np.bool_ else found.view(dtype)).reshape(sizes),)

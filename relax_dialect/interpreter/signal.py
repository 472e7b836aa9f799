"""Operators of signal processing, computed in `f64`."""

from __future__ import annotations

import numpy as np

from relax_dialect.interpreter.operators import DimValues, computes_in
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.signal import CosineWindowOp
from tir_dialect.dtypes import numpy_dtype


@computes_in(CosineWindowOp)
def cosine_window(dims: DimValues, op: CosineWindowOp) -> list[Array]:
    """The sum of cosines."""
    length = dims(op.length)
    end = length if op.periodic is not None else max(length - 1, 1)
    angle = 2 * np.pi * np.arange(length) / max(end, 1)
    total = np.zeros(length)
    for k, coefficient in enumerate(op.coefficients.get_values()):
        total += (-1) ** k * coefficient * np.cos(k * angle)
    return [total.astype(numpy_dtype(op.dtype))]

"""Operators of signal processing, computed in `f64`."""

from __future__ import annotations

import math

from lowering.relax_to_tir.context import legalizes
from lowering.relax_to_tir.kernel import Kernel
from relax_dialect.ops.signal import CosineWindowOp
from tir_dialect import te
from tir_dialect.dims import maximum


@legalizes(CosineWindowOp)
def cosine_window(kernel: Kernel, op: CosineWindowOp) -> te.Tensor:
    """The sum of cosines."""
    shape, dtype = kernel.shape(op.result), str(kernel.dtype(op.result))
    end = maximum(shape[0] if op.periodic is not None else shape[0] - 1, 1)

    def element(*i: te.Expr) -> te.Expr:
        angle = te.cast(i[0], "f64") * (2 * math.pi) / te.cast(te.cast(end, "index"), "f64")
        total = te.const(0.0, "f64")
        for k, coefficient in enumerate(op.coefficients.get_values()):
            total = total + te.cos(angle * k) * ((-1) ** k * coefficient)
        return te.cast(total, dtype)

    return te.compute(shape, element, name="cosine_window")

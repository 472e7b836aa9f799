"""Conversion between element types."""

from __future__ import annotations

from lowering.legalize.context import legalizes
from lowering.legalize.kernel import Kernel
from relax_dialect.ops.datatype import AstypeOp
from tir_dialect import te


@legalizes(AstypeOp)
def astype(kernel: Kernel, op: AstypeOp) -> te.Tensor:
    """Every element converted."""
    x, dtype = kernel.tensor(op.x), str(kernel.dtype(op.result))
    return te.compute(x.shape, lambda *i: te.cast(x[i], dtype), name="astype")

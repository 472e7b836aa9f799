"""What the operator means, and the kernel that it becomes."""

from __future__ import annotations

import numpy as np

from smooth.ops import SoftSignOp
from tir_dialect import te
from xdsl_relax.extend import Kernel, computes, legalizes


@computes(SoftSignOp)
def softsign(op: SoftSignOp, x: np.ndarray) -> np.ndarray:
    """In NumPy; everything else is compared with it."""
    return (x / (op.bias.value.data + np.abs(x))).astype(x.dtype)


@legalizes(SoftSignOp)
def softsign_kernel(kernel: Kernel, op: SoftSignOp) -> te.Tensor:
    """As a tensor expression."""
    x, bias = kernel.tensor(op.x), op.bias.value.data
    return te.compute(kernel.shape(op.result), lambda *i: x[i] / (te.abs(x[i]) + bias), name="softsign")

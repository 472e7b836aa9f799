"""Unary elementwise operators."""

from __future__ import annotations

from lowering.relax_to_tir.kernel import Kernel, legalizes
from lowering.relax_to_tir.scalars import apply
from relax_dialect.ops import unary
from relax_dialect.ops.unary import UnaryOp
from tir_dialect import te


def elementwise(kernel: Kernel, op: UnaryOp) -> te.Tensor:
    """The scalar function on every element."""
    x = kernel.tensor(op.x)
    return te.compute(x.shape, lambda *i: apply(op.SCALAR.name, x[i]), name=op.SCALAR.name)


for _op in vars(unary).values():
    if isinstance(_op, type) and issubclass(_op, UnaryOp) and _op is not UnaryOp:
        legalizes(_op)(elementwise)

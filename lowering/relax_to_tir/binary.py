"""Binary and ternary elementwise operators with broadcasting."""

from __future__ import annotations

from lowering.relax_to_tir.indices import broadcast_load
from lowering.relax_to_tir.kernel import Kernel, legalizes
from lowering.relax_to_tir.scalars import apply
from relax_dialect.ops import binary
from relax_dialect.ops.binary import BinaryOp, BroadcastOp
from tir_dialect import te


def elementwise(kernel: Kernel, op: BroadcastOp) -> te.Tensor:
    """The scalar function on every element of the broadcast operands."""
    tensors = [kernel.tensor(operand) for operand in op.operands]
    shape, name = kernel.shape(op.results[0]), op.SCALAR.name
    return te.compute(shape, lambda *i: apply(name, *(broadcast_load(x, shape, i) for x in tensors)), name=name)


for _op in vars(binary).values():
    if isinstance(_op, type) and issubclass(_op, BroadcastOp) and _op not in (BinaryOp, BroadcastOp):
        legalizes(_op)(elementwise)

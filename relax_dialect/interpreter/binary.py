"""Binary and ternary elementwise operators: the scalar function of the op, on arrays."""

from __future__ import annotations

from relax_dialect.interpreter.operators import computes
from relax_dialect.interpreter.unary import elementwise
from relax_dialect.ops import binary
from relax_dialect.ops.binary import BroadcastOp

for _op in vars(binary).values():
    if isinstance(_op, type) and issubclass(_op, BroadcastOp) and "name" in vars(_op):
        computes(_op)(elementwise)

"""How binary and ternary elementwise operators may be shared.

B1: along every dimension of the result; an operand that is broadcast along it is needed as a whole there.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, broadcast, dims, shards
from relax_dialect.ops import binary
from relax_dialect.ops.binary import BinaryOp, BroadcastOp
from relax_dialect.ops.operator import Operator


def elementwise(op: Operator) -> Factors:
    """B1."""
    operands, result = broadcast([dims(operand) for operand in op.operands], dims(op.results[0]))
    return Factors(operands, [result])


for _op in vars(binary).values():
    if isinstance(_op, type) and issubclass(_op, BroadcastOp) and _op not in (BinaryOp, BroadcastOp):
        shards(_op)(elementwise)

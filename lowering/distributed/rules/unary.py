"""How unary elementwise operators may be shared.

U1: along every dimension, which is one factor of operand and result.
"""

from __future__ import annotations

from lowering.distributed.factors import Factors, dims, named, shards
from relax_dialect.ops import unary
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.unary import UnaryOp


def elementwise(op: Operator) -> Factors:
    """U1, for any operator of one tensor whose elements do not depend on each other."""
    labels = named("d", len(dims(op.operands[0])))
    return Factors([labels], [labels])


for _op in vars(unary).values():
    if isinstance(_op, type) and issubclass(_op, UnaryOp) and _op is not UnaryOp:
        shards(_op)(elementwise)

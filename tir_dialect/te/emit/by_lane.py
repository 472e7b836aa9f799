"""Ops on scalars as ops on vectors, lane by lane."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue

from tir_dialect.new_ops import new_op
from tir_dialect.ops.convert import KIND_OF, ConvertOp
from tir_dialect.ops.memory import lanes_of
from tir_dialect.ops.vectors import CompareOp, SelectOp


def by_lane(op: Operation, operands: Sequence[SSAValue], lanes: int) -> Operation:
    """What `op` of arith or math does with scalars, for vectors; arith compares, chooses and converts scalars only."""
    kind = VectorType(op.results[0].type, [lanes])
    match op:
        case arith.CmpfOp():
            return CompareOp(arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data], *operands)
        case arith.CmpiOp():
            return CompareOp(arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data], *operands)
        case arith.SelectOp() if lanes_of(operands[0].type) is not None:
            return SelectOp(*operands)
        case _ if type(op) in KIND_OF:
            return ConvertOp(KIND_OF[type(op)], operands[0], kind)
        case _:
            return new_op(type(op), operands, (kind,), op.properties)

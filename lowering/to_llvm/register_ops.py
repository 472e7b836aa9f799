"""Ops that AVX-512 does in fewer instructions than LLVM makes of them; other vectors and scalars are left to LLVM.

A quotient by `1 + e**x`, as sigmoid and silu have it, is part of an elementary function: its divisor is a number from 1
on or infinite, so that an estimate of the reciprocal and a step of Newton's take the place of a division, which takes
as long as sixteen multiplications. It is at most 2 units in the last place off. Extrema are exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from lowering.to_llvm.arith_ops import ARITH_LOWERINGS, Lower
from lowering.to_llvm.builder import LLVMBuilder
from lowering.to_llvm.math.floats import Floats
from lowering.to_llvm.registers import extremum, has_extrema, has_registers, reciprocal


def _divf(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    dividend, divisor = operands
    f = Floats(b, dividend.type)
    if _is_one_more(op.operands[1]) and has_registers(f):
        inverse = reciprocal(f, divisor)
        return inverse if _is_one(op.operands[0]) else f.mul(dividend, inverse)
    return ARITH_LOWERINGS[arith.DivfOp](b, op, operands)


def _is_one_more(value: SSAValue) -> bool:
    """Whether a number is `1 + e**x`."""
    op = value.owner
    if not isinstance(op, arith.AddfOp):
        return False
    powers = [operand for operand in op.operands if isinstance(operand.owner, math.ExpOp)]
    return len(powers) == 1 and any(map(_is_one, op.operands))


def _is_one(value: SSAValue) -> bool:
    constant = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return isinstance(constant, FloatAttr) and constant.value.data == 1.0


def _extremum(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    left, right = operands
    f = Floats(b, left.type)
    known = any(isinstance(operand.owner, arith.ConstantOp) for operand in op.operands)  # which LLVM makes use of
    if not known and has_extrema(f):
        return extremum(f, left, right, isinstance(op, arith.MaximumfOp))
    return ARITH_LOWERINGS[type(op)](b, op, operands)


REGISTER_LOWERINGS: dict[type[Operation], Lower] = {
    arith.DivfOp: _divf,
    arith.MaximumfOp: _extremum,
    arith.MinimumfOp: _extremum,
}
"""In place of those of all machines."""

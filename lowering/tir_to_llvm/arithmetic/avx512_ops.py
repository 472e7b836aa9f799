"""Ops for which AVX-512 has shorter instruction sequences than LLVM selects; other vectors and scalars are left to
LLVM.

A quotient by `1 + e**x`, as silu has it, is part of an elementary function: its divisor is a number from 1 on or
infinite, so that an estimate of the reciprocal and a step of Newton's replace a division, which takes as long
as sixteen multiplications. It is at most 2 units in the last place off. Extrema are exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from lowering.llvm.builder.llvm_builder import LLVMBuilder
from lowering.tir_to_llvm.arithmetic.arith_ops import ARITH_LOWERINGS, Lower
from lowering.tir_to_llvm.math.avx512 import extremum, has_extrema, has_registers, reciprocal
from lowering.tir_to_llvm.math.floats import Floats
from tir_dialect.analysis.sigmoid import power_in_sum


def _divf(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    dividend, divisor = operands
    f = Floats(b, dividend.type)
    if power_in_sum(op.operands[1]) is not None and has_registers(f):
        return f.mul(dividend, reciprocal(f, divisor))
    return ARITH_LOWERINGS[arith.DivfOp](b, op, operands)


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

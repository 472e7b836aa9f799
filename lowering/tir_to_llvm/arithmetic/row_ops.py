"""The lowerings of `tir.greater` and `tir.scaled_exp`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from lowering.llvm.builder.llvm_builder import LLVMBuilder
from lowering.tir_to_llvm.arithmetic.arith_ops import Lower
from lowering.tir_to_llvm.math.expansion import scaled_exp
from lowering.tir_to_llvm.math.floats import Floats
from tir_dialect.ops.relaxed_float import GreaterOp, ScaledExpOp


def _greater(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    lhs, rhs = operands
    return b.select(b.compare_floats("ogt", lhs, rhs), lhs, rhs)


def _scaled_exp(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    (x,) = operands
    return scaled_exp(Floats(b, x.type), x)


ROW_LOWERINGS: dict[type[Operation], Lower] = {GreaterOp: _greater, ScaledExpOp: _scaled_exp}

"""Scalar ops of tir, arith and math, in and outside vectorized loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from typing_extensions import override
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IntegerType, i1, i64
from xdsl.dialects.vector import BitcastOp, BroadcastOp, CreateMaskOp, ShuffleOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.llvm.function_builder import element_type, lane_count, lanes_of
from lowering.llvm.llvm_builder import LLVMBuilder
from lowering.rewriting import IndexedPattern, op_rewrite_pattern
from lowering.tir_to_llvm.arithmetic.arith_ops import ARITH_LOWERINGS, LANE_LOWERINGS
from lowering.tir_to_llvm.arithmetic.intrinsic_ops import DOT_LOWERINGS, LOOKUP_LOWERINGS, REGISTER_LOWERINGS
from lowering.tir_to_llvm.arithmetic.math_ops import MATH_LOWERINGS, ROW_LOWERINGS
from lowering.tir_to_llvm.emitter import Emitter
from lowering.tir_to_llvm.lane_values import (
    Ramp,
    as_vector,
    compare,
    compare_lanes,
    index_rule,
    is_varying,
)
from lowering.tir_to_llvm.math.floats import Floats
from lowering.tir_to_llvm.math.logarithms import sigmoid
from tir_dialect.analysis.patterns import exponent_of_sigmoid
from tir_dialect.ops.arithmetic import AssertOp, DimOp, RampOp
from tir_dialect.ops.memory import i32_array, vector_of
from tir_dialect.ops.vectors import FirstLaneOp

SCALAR_LOWERINGS = {
    **ARITH_LOWERINGS,
    **LANE_LOWERINGS,
    **MATH_LOWERINGS,
    **REGISTER_LOWERINGS,
    **DOT_LOWERINGS,
    **LOOKUP_LOWERINGS,
    **ROW_LOWERINGS,
}
"""Ops that are lowered by a function over operands."""


class LowerScalarOp(IndexedPattern):
    """An op of arith or math is lowered once if no operand depends on the lane, else for all lanes at once."""

    @override
    def may_match(self, op_class: type[Operation]) -> bool:
        return op_class in SCALAR_LOWERINGS

    @override
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        e = cast("Emitter", rewriter)
        exponent = exponent_of_sigmoid(op)
        lower = SCALAR_LOWERINGS[type(op)] if exponent is None else _sigmoid
        operands = [e.values[operand] for operand in (op.operands if exponent is None else (exponent,))]
        if any(map(is_varying, operands)):
            counts = (lane_count(operand.type) for operand in op.operands)
            lanes = next((count for count in counts if count), None) if e.lanes is None else e.lanes.count
            assert lanes is not None  # outside vectorized loops only vectors are varying
            rule = index_rule(op)
            if rule is not None:
                e.define(op.results[0], rule(e.b, operands[0], operands[1], lanes))
                return
            if isinstance(op, arith.CmpiOp) and e.lanes is not None:
                compared = compare(e.b, op, operands[0], operands[1], lanes)
                if compared is not None:
                    e.define(op.results[0], compared)
                    return
            operands = [as_vector(e.b, operand, lanes) for operand in operands]
        e.define(op.results[0], lower(e.b, op, cast("list[SSAValue]", operands)))


def _sigmoid(b: LLVMBuilder, op: Operation, operands: Sequence[SSAValue]) -> SSAValue:
    return sigmoid(Floats(b, operands[0].type), *operands)


class LowerDim(RewritePattern):
    """A dimension over the symbols, computed once at the entry."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: DimOp, e: Emitter) -> None:
        e.define(op.result, e.dim(op.dim))


class LowerRamp(RewritePattern):
    """Indices in equal steps: kept as they are, so that accesses by them are seen to be contiguous."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: RampOp, e: Emitter) -> None:
        e.define(op.result, Ramp(e.scalar(op.base), e.scalar(op.step)))


class LowerBroadcast(RewritePattern):
    """A vector with a scalar in every element."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: BroadcastOp, e: Emitter) -> None:
        lanes = lane_count(op.vector.type)
        assert lanes is not None  # the result of a op is a vector
        e.define(op.vector, as_vector(e.b, e.values[op.source], lanes))


class LowerShuffle(RewritePattern):
    """Elements of two vectors in another order."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ShuffleOp, e: Emitter) -> None:
        mask = i32_array(*op.mask.get_values())
        operands = (e.scalar(op.v1), e.scalar(op.v2))
        result = vector_of(element_type(operands[0].type), len(mask))
        e.define(op.result, e.b.make(llvm.ShuffleVectorOp, operands, result, {"mask": mask}))


class LowerVectorBitcast(RewritePattern):
    """The bits of a vector as another number of lanes."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: BitcastOp, e: Emitter) -> None:
        e.define(op.result, e.b.make(llvm.BitcastOp, (e.scalar(op.source),), op.result.type))


class LowerCreateMask(RewritePattern):
    """A mask whose leading lanes, as many as the operand says, are on."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CreateMaskOp, e: Emitter) -> None:
        lanes = lane_count(op.mask_vector.type)
        assert lanes is not None  # the result is a vector
        e.define(op.mask_vector, compare_lanes(e.b, "slt", 1, e.scalar(op.mask_dim_sizes[0]), lanes))


class LowerFirstLane(RewritePattern):
    """How many bits of a mask are off before the first that is on."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: FirstLaneOp, e: Emitter) -> None:
        mask = e.scalar(op.mask)
        bits = IntegerType(lanes_of(mask.type))
        number = e.b.make(llvm.BitcastOp, (mask,), bits)
        number = e.b.overloaded("llvm.cttz", (number, e.b.false()), bits)
        if bits != i64:
            number = e.b.make(llvm.ZExtOp if bits.width.data < i64.width.data else llvm.TruncOp, (number,), i64)
        e.define(op.results[0], number)


class LowerAssert(RewritePattern):
    """Leaves the kernel with an error where the condition fails, or fails in a lane that runs."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AssertOp, e: Emitter) -> None:
        if e.lanes is not None and e.varies(op.condition):
            condition = e.vector(e.values[op.condition])
            if e.lanes.mask is not None:
                off = e.b.make(llvm.XOrOp, (e.lanes.mask, e.b.integer(1, e.lanes.mask.type)), e.lanes.mask.type)
                condition = e.b.make(llvm.OrOp, (condition, off), condition.type)
            condition = e.b.intrinsic(f"llvm.vector.reduce.and.v{e.lanes.count}i1", (condition,), i1)
        else:
            condition = e.scalar(op.condition)
        e.fail_unless(condition, op.error_kind, op.message.data)

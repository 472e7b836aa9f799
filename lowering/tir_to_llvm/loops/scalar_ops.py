"""Scalar ops of tir, arith and math, in and outside vectorized loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IntegerType, i1, i64
from xdsl.dialects.vector import BroadcastOp, CreateMaskOp, ShuffleOp
from xdsl.ir import Operation, SSAValue

from lowering.tir_to_llvm.arithmetic.arith_ops import ARITH_LOWERINGS, LANE_LOWERINGS
from lowering.tir_to_llvm.arithmetic.avx512_ops import REGISTER_LOWERINGS
from lowering.tir_to_llvm.arithmetic.dot_ops import DOT_LOWERINGS
from lowering.tir_to_llvm.arithmetic.math_ops import MATH_LOWERINGS
from lowering.tir_to_llvm.arithmetic.row_ops import ROW_LOWERINGS
from lowering.tir_to_llvm.builder.llvm_builder import LLVMBuilder
from lowering.tir_to_llvm.builder.vector_types import element_type, lane_count, lanes_of
from lowering.tir_to_llvm.emitter import Emitter
from lowering.tir_to_llvm.loops.lane_values import (
    Lanes,
    Ramp,
    as_vector,
    compare,
    compare_lanes,
    index_rule,
    is_varying,
)
from lowering.tir_to_llvm.math.floats import Floats
from lowering.tir_to_llvm.math.sigmoid import exponent_of_sigmoid, sigmoid
from tir_dialect.ops.memory import i32_array, vector_of
from tir_dialect.ops.scalars import AssertOp, DimOp, RampOp
from tir_dialect.ops.vectors import FirstLaneOp

SCALAR_LOWERINGS = {
    **ARITH_LOWERINGS,
    **LANE_LOWERINGS,
    **MATH_LOWERINGS,
    **REGISTER_LOWERINGS,
    **DOT_LOWERINGS,
    **ROW_LOWERINGS,
}
"""Ops that are lowered by a function over operands."""


def lower_scalar_op(e: Emitter, op: Operation) -> None:
    """Lowers an op of arith or math: once if no operand depends on the lane, else for all lanes at once."""
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


def lower_dim(e: Emitter, op: Operation) -> None:
    """A dimension over the symbols, computed once at the entry."""
    dim = cast(DimOp, op)
    e.define(dim.result, e.dim(dim.dim))


def lower_ramp(e: Emitter, op: Operation) -> None:
    """Indices in equal steps: kept as they are, so that accesses by them are seen to be contiguous."""
    ramp = cast(RampOp, op)
    e.define(ramp.result, Ramp(e.scalar(ramp.base), e.scalar(ramp.step)))


def lower_broadcast(e: Emitter, op: Operation) -> None:
    """A vector with a scalar in every element."""
    broadcast = cast(BroadcastOp, op)
    lanes = lane_count(broadcast.vector.type)
    assert lanes is not None  # the result of a broadcast is a vector
    e.define(broadcast.vector, as_vector(e.b, e.values[broadcast.source], lanes))


def lower_shuffle(e: Emitter, op: Operation) -> None:
    """Elements of two vectors in another order."""
    shuffle = cast(ShuffleOp, op)
    mask = i32_array(*shuffle.mask.get_values())
    operands = (e.scalar(shuffle.v1), e.scalar(shuffle.v2))
    result = vector_of(element_type(operands[0].type), len(mask))
    e.define(shuffle.result, e.b.make(llvm.ShuffleVectorOp, operands, result, {"mask": mask}))


def lower_create_mask(e: Emitter, op: Operation) -> None:
    """A mask whose leading lanes, as many as the operand says, are on."""
    mask = cast(CreateMaskOp, op)
    lanes = lane_count(mask.mask_vector.type)
    assert lanes is not None  # the result is a vector
    e.define(mask.mask_vector, compare_lanes(e.b, "slt", 1, e.scalar(mask.mask_dim_sizes[0]), lanes))


def lower_first_lane(e: Emitter, op: Operation) -> None:
    """How many bits of a mask are off before the first that is on."""
    mask = e.scalar(cast(FirstLaneOp, op).mask)
    bits = IntegerType(lanes_of(mask.type))
    number = e.b.make(llvm.BitcastOp, (mask,), bits)
    number = e.b.overloaded("llvm.cttz", (number, e.b.false()), bits)
    if bits != i64:
        number = e.b.make(llvm.ZExtOp if bits.width.data < i64.width.data else llvm.TruncOp, (number,), i64)
    e.define(op.results[0], number)


def lower_assert(e: Emitter, op: Operation) -> None:
    """Leaves the kernel with an error where the condition fails, or fails in a lane that runs."""
    check = cast(AssertOp, op)
    if e.lanes is not None and e.varies(check.condition):
        condition = _in_all_lanes(e.b, e.lanes, e.vector(e.values[check.condition]))
    else:
        condition = e.scalar(check.condition)
    e.fail_unless(condition, check.error_kind, check.message.data)


def _in_all_lanes(b: LLVMBuilder, lanes: Lanes, condition: SSAValue) -> SSAValue:
    if lanes.mask is not None:
        off = b.make(llvm.XOrOp, (lanes.mask, b.integer(1, lanes.mask.type)), lanes.mask.type)
        condition = b.make(llvm.OrOp, (condition, off), condition.type)
    return b.intrinsic(f"llvm.vector.reduce.and.v{lanes.count}i1", (condition,), i1)

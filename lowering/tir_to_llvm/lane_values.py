"""Values inside a vectorised loop: uniform, or one per lane.

The lanes of a vectorised loop run together. A value that does not depend on the loop variable stays a scalar; the
variable itself, and index arithmetic on it, is kept as a `Ramp`, from which contiguous accesses are recognised;
everything else that depends on it is an LLVM vector with one element per lane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IndexType, i32, i64
from xdsl.ir import Operation, SSAValue

from lowering.llvm.function_builder import element_type, is_vector
from lowering.llvm.llvm_builder import LLVMBuilder
from tir_dialect.ops.memory import vector_of


@dataclass(frozen=True)
class Ramp:
    """The index `base + lane * step`; base and step are i64."""

    base: SSAValue
    step: SSAValue


LaneValue: TypeAlias = SSAValue | Ramp


@dataclass(frozen=True)
class Lanes:
    """The number of lanes, and the active ones: all, or those whose mask bit is set."""

    count: int
    mask: SSAValue | None = None

    def restricted(self, b: LLVMBuilder, condition: SSAValue) -> Lanes:
        """Those lanes in which the condition, a vector, holds too."""
        if self.mask is None:
            return Lanes(self.count, condition)
        return Lanes(self.count, b.once(llvm.AndOp, (self.mask, condition), condition.type))


def is_varying(value: LaneValue) -> bool:
    """Whether a value may differ between lanes."""
    return type(value) is Ramp or is_vector(cast("SSAValue", value).type)


def as_vector(b: LLVMBuilder, value: LaneValue, lanes: int) -> SSAValue:
    """The value as an LLVM vector with one element per lane."""
    if isinstance(value, SSAValue):
        return value if is_vector(value.type) else b.splat(value, lanes)
    steps = b.lane_numbers(lanes)
    if b.known_integer(value.step) != 1:
        steps = b.wrapping(llvm.MulOp, steps, b.splat(value.step, lanes))
    if b.known_integer(value.base) == 0:
        return steps
    return b.add(b.splat(value.base, lanes), steps)


def is_number(b: LLVMBuilder, value: LaneValue, number: int) -> bool:
    """Whether a value is that number in all lanes."""
    return isinstance(value, SSAValue) and not is_varying(value) and b.known_integer(value) == number


def add(b: LLVMBuilder, lhs: LaneValue, rhs: LaneValue, lanes: int) -> LaneValue:
    """The sum of two indices."""
    if is_number(b, lhs, 0):
        return rhs
    return _linear(b, LLVMBuilder.add, lhs, rhs, lanes)


def sub(b: LLVMBuilder, lhs: LaneValue, rhs: LaneValue, lanes: int) -> LaneValue:
    """The difference of two indices."""
    return _linear(b, LLVMBuilder.sub, lhs, rhs, lanes)


def mul(b: LLVMBuilder, lhs: LaneValue, rhs: LaneValue, lanes: int) -> LaneValue:
    """The product of two indices."""
    if not is_varying(lhs) and isinstance(rhs, Ramp):
        lhs, rhs = rhs, lhs
    if is_number(b, rhs, 1):
        return lhs
    if isinstance(lhs, Ramp) and isinstance(rhs, SSAValue) and not is_varying(rhs):
        return Ramp(b.mul(lhs.base, rhs), b.mul(lhs.step, rhs))
    return _elementwise(b, LLVMBuilder.mul, lhs, rhs, lanes)


def _linear(
    b: LLVMBuilder,
    combine: Callable[[LLVMBuilder, SSAValue, SSAValue], SSAValue],
    lhs: LaneValue,
    rhs: LaneValue,
    lanes: int,
) -> LaneValue:
    left, right = _as_ramp(b, lhs), _as_ramp(b, rhs)
    if left is None or right is None or not (isinstance(lhs, Ramp) or isinstance(rhs, Ramp)):
        return _elementwise(b, combine, lhs, rhs, lanes)
    base, step = combine(b, left.base, right.base), combine(b, left.step, right.step)
    return base if b.known_integer(step) == 0 else Ramp(base, step)


def _as_ramp(b: LLVMBuilder, value: LaneValue) -> Ramp | None:
    if isinstance(value, Ramp):
        return value
    return None if is_varying(value) else Ramp(value, b.integer(0))


def _elementwise(
    b: LLVMBuilder,
    combine: Callable[[LLVMBuilder, SSAValue, SSAValue], SSAValue],
    lhs: LaneValue,
    rhs: LaneValue,
    lanes: int,
) -> SSAValue:
    if isinstance(lhs, SSAValue) and isinstance(rhs, SSAValue) and not is_varying(lhs) and not is_varying(rhs):
        return combine(b, lhs, rhs)
    return combine(b, as_vector(b, lhs, lanes), as_vector(b, rhs, lanes))


_RULES: dict[type[Operation], Callable[[LLVMBuilder, LaneValue, LaneValue, int], LaneValue]] = {
    arith.AddiOp: add,
    arith.SubiOp: sub,
    arith.MuliOp: mul,
}


_MIRRORED = {"eq": "eq", "ne": "ne", "slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle"}


def compare(b: LLVMBuilder, op: arith.CmpiOp, lhs: LaneValue, rhs: LaneValue, lanes: int) -> SSAValue | None:
    """A comparison of equal steps with one number, in 32 bits; `None` for any other.

    `base + step * lane < number` is `step * lane < number - base`, and the right side counts only as far as the left
    side goes.
    """
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    if isinstance(rhs, Ramp) and predicate in _MIRRORED:
        lhs, rhs, predicate = rhs, lhs, _MIRRORED[predicate]
    if not isinstance(lhs, Ramp) or is_varying(rhs) or not isinstance(rhs, SSAValue) or predicate not in _MIRRORED:
        return None
    step = b.known_integer(lhs.step)
    if step is None or not 0 < step < 1 << 16:
        return None
    return compare_lanes(b, predicate, step, b.sub(rhs, lhs.base), lanes)


def compare_lanes(b: LLVMBuilder, predicate: str, step: int, number: SSAValue, lanes: int) -> SSAValue:
    """The comparisons of `step * lane` with a number, in 32 bits: it counts only as far as the lanes go."""
    number = b.overloaded("llvm.smin", (number, b.integer(step * lanes)), i64)
    number = b.overloaded("llvm.smax", (number, b.integer(-1)), i64)
    narrow = b.splat(b.once(llvm.TruncOp, (number,), i32), lanes)
    steps = b.elements([step * lane for lane in range(lanes)], vector_of(i32, lanes))
    return b.compare(predicate, steps, narrow)


def index_rule(op: Operation) -> Callable[[LLVMBuilder, LaneValue, LaneValue, int], LaneValue] | None:
    """How index arithmetic keeps ramps; None for ops that do not."""
    rule = _RULES.get(type(op))
    return rule if rule is not None and isinstance(element_type(op.results[0].type), IndexType) else None

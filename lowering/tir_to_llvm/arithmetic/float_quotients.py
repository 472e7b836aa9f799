"""Quotients of vectors of integers of up to 32 bits, by floats that have more digits: exact."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import f32, f64, i32
from xdsl.ir import SSAValue

from lowering.llvm.builder.llvm_builder import LLVMBuilder
from lowering.llvm.builder.vector_types import element_type, integer_type, like
from lowering.tir_to_llvm import llvm_ext
from lowering.tir_to_llvm.math.avx512 import has_registers, has_registers_of_doubles, whole_number
from lowering.tir_to_llvm.math.floats import Floats
from lowering.tir_to_llvm.math.formats import BINARY64

_ENLARGED, _ENLARGED_64 = 1.0 + 2.0**-20, 1.0 + 2.0**-50
"""More than what conversions, a reciprocal and a product lose, and less than what a quotient of 16 or 48 bits may be
enlarged by."""


def float_quotient(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue, *, signed: bool, down: bool) -> SSAValue:
    """The quotient by a divisor that is not 0, rounded towards zero, or `down`; what overflows wraps.

    A quotient that is not whole lies below the next whole number by its share of `1 / lhs` or more, so that it is never
    rounded to that.
    """
    width, wide = integer_type(element_type(lhs.type)).width.data, like(lhs.type, i32)
    extend, to_float = (llvm.SExtOp, llvm.SIToFPOp) if signed else (llvm.ZExtOp, llvm_ext.UIToFPOp)
    f = Floats(b, like(lhs.type, f32 if width <= 16 else f64))
    # Outside of the loop what does not change in it.
    numbers = [b.once(extend, (each,), wide) if width < 32 else each for each in (lhs, rhs)]
    dividend, divisor = (b.once(to_float, (each,), f.type) for each in numbers)
    quotient = ratio(f, dividend, divisor, is_uniform=is_uniform(rhs), down=down)
    if not signed:
        whole = b.make(llvm_ext.FPToUIOp, (quotient,), wide)
    elif has_registers(f) or has_registers_of_doubles(f):
        whole = whole_number(f, quotient, wide, down=down)
    else:
        whole = _whole_number(f, lhs, rhs, quotient, down)
    return b.make(llvm.TruncOp, (whole,), lhs.type) if width < 32 else whole


def is_uniform(divisor: SSAValue) -> bool:
    """Whether all lanes are one scalar, which does not change in the loop."""
    owner = divisor.owner
    if isinstance(owner, llvm_ext.SelectOp):  # of a number that replaces 0
        return is_uniform(owner.operands[2])
    return isinstance(owner, llvm.ShuffleVectorOp) and not any(owner.mask.iter_values())


def ratio(f: Floats, dividend: SSAValue, divisor: SSAValue, *, is_uniform: bool, down: bool) -> SSAValue:
    """A number that gives the quotient when it is rounded towards zero, or `down`.

    A divisor that does not change in the loop is replaced by its reciprocal, a little too large, so that the size of a
    whole quotient is not rounded to less. `floor(x / y)` is `floor((x + 1/2) / y)` for positive y, which is half of
    `1 / y` or more away from all whole numbers; so too with `x - 1/2` for negative y.
    """
    if not is_uniform:
        return f.div(dividend, divisor)
    inverse = enlarged_reciprocal(f, divisor)
    if not down:
        return f.mul(dividend, inverse)
    half = f.b.once(llvm.FMulOp, (f.magnitude(inverse), f.number(0.5)), f.type)
    return f.fused(dividend, inverse, half)


def enlarged_reciprocal(f: Floats, divisor: SSAValue) -> SSAValue:
    """`1 / divisor`, a little too large in size; outside of a loop in which the divisor does not change."""
    enlarged = _ENLARGED_64 if f.format == BINARY64 else _ENLARGED
    return f.b.once(llvm.FDivOp, (f.number(enlarged), divisor), f.type)


def _whole_number(f: Floats, lhs: SSAValue, rhs: SSAValue, quotient: SSAValue, down: bool) -> SSAValue:
    """The same where a conversion has no value for what does not fit, as the least i32 divided by -1."""
    b = f.b
    if down:
        quotient = b.overloaded("llvm.floor", (quotient,), f.type)
    whole = b.make(llvm_ext.FPToSIOp, (quotient,), like(f.type, i32))
    if f.format != BINARY64:
        return whole
    is_minus_one = b.compare("eq", rhs, b.integer(-1, rhs.type))
    return b.select(is_minus_one, b.wrapping(llvm.SubOp, b.integer(0, lhs.type), lhs), whole)

"""Quotients of vectors of bytes by one number, exact: the upper halves of products of 16 bits.

Unsigned, `x // y` is the whole part of `(x + 1) * m / 2**16` for the whole part m of `(2**16 - 1) / y`: too little by
less than `1 / y`, of which there is one too much. Signed, `floor(x / y)` is `floor((2 * x + 1) / (2 * y))`, away by
`1 / (2 * y)` or more from all whole numbers, which is more than `2**15 / y` loses when it is rounded.
"""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import f32, i16, i32
from xdsl.ir import SSAValue

from lowering.llvm.builder.llvm_builder import LLVMBuilder
from lowering.llvm.builder.vector_types import like
from lowering.tir_to_llvm import llvm_ext
from lowering.tir_to_llvm.math.avx512 import has_registers_of_shorts, upper_halves
from lowering.tir_to_llvm.math.floats import Floats


def byte_quotient(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue, *, signed: bool, down: bool) -> SSAValue:
    """The quotient by a divisor that is not 0 and the same in all lanes, rounded towards zero, or `down`."""
    kind = like(lhs.type, i16)
    if not signed:
        above = b.wrapping(llvm.AddOp, b.make(llvm.ZExtOp, (lhs,), kind), b.integer(1, kind))
        quotient = _upper_half(b, above, _inverse(b, rhs, 2.0**16 - 1), signed=False)
        return b.make(llvm.TruncOp, (quotient,), lhs.type)
    is_negative = b.compare("slt", rhs, b.integer(0, rhs.type))
    twice = b.select(is_negative, b.integer(-2, kind), b.integer(2, kind))
    double = b.wrapping(llvm.MulOp, b.make(llvm.SExtOp, (lhs,), kind), twice)
    size = b.overloaded("llvm.abs", (b.once(llvm.SExtOp, (rhs,), kind), b.false()), kind)
    inverse, odd = _inverse(b, size, 2.0**15, 0.5), b.integer(1, kind)
    if down:
        quotient = _upper_half(b, b.make(llvm.OrOp, (double, odd), kind), inverse, signed=True)
    else:  # a negative quotient is rounded down, to one less
        sign = b.make(llvm.AShrOp, (double, b.integer(15, kind)), kind)
        away = b.wrapping(llvm.AddOp, double, b.make(llvm.OrOp, (sign, odd), kind))
        quotient = b.wrapping(llvm.SubOp, _upper_half(b, away, inverse, signed=True), sign)
    return b.make(llvm.TruncOp, (quotient,), lhs.type)


def _inverse(b: LLVMBuilder, divisor: SSAValue, dividend: float, rounding: float = 0.0) -> SSAValue:
    """The whole part of `dividend / divisor + rounding`, of 16 bits, or with a sign the greatest there is."""
    f, wide = Floats(b, like(divisor.type, f32)), like(divisor.type, i32)
    number = b.once(llvm_ext.UIToFPOp, (b.once(llvm.ZExtOp, (divisor,), wide),), f.type)
    quotient = b.once(llvm.FDivOp, (f.number(dividend), number), f.type)
    whole = b.once(llvm_ext.FPToUIOp, (b.once(llvm.FAddOp, (quotient, f.number(rounding)), f.type),), wide)
    if rounding:
        whole = b.overloaded("llvm.umin", (whole, b.integer(2**15 - 1, wide)), wide)
    return b.once(llvm.TruncOp, (whole,), like(divisor.type, i16))


def _upper_half(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue, *, signed: bool) -> SSAValue:
    """The upper 16 bits of a product. LLVM knows it, but not if it sees that a factor is of a byte."""
    if has_registers_of_shorts(b, lhs.type):
        return upper_halves(b, lhs, rhs, signed=signed)
    wide = like(lhs.type, i32)
    extend = llvm.SExtOp if signed else llvm.ZExtOp
    product = b.wrapping(llvm.MulOp, *(b.make(extend, (each,), wide) for each in (lhs, rhs)))
    return b.make(llvm.TruncOp, (b.make(llvm.LShrOp, (product, b.integer(16, wide)), wide),), lhs.type)

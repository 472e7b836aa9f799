"""Vectorised casts of floats to integers, and of f64 to f16, which LLVM would scalarise or turn into library calls."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerType, f16, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from lowering.llvm.builder.llvm_builder import LLVMBuilder
from lowering.llvm.builder.vector_types import element_type, integer_type, is_vector, like
from lowering.tir_to_llvm import llvm_ext

DIGITS: dict[Attribute, int] = {f32: 24, f64: 53}
"""Integers of so many bits are numbers of the type."""

_UPPER, _LOWER = 1.5 * 2.0**52, 2.0**52
"""Added to a whole number they leave it in the lowest 32 bits, also a negative one."""

_LOST = (1 << 29) - 1
"""The digits of f64 that f32 lacks."""


def has_lanes(b: LLVMBuilder, value: SSAValue, target: IntegerType, signed: bool) -> bool:
    """Whether `lanes_to_integer` knows these types: of 64 bits, where vectors are those of x86 from AVX2 on."""
    source, bits = element_type(value.type), target.width.data - signed
    if not is_vector(value.type) or source not in DIGITS or target == i1 or not bits:
        return False
    return bits < 32 or (source == f64 and bits == 32) or (target == i64 and b.module.vector_bits >= 256)


def lanes_to_integer(b: LLVMBuilder, value: SSAValue, result: Attribute, signed: bool) -> SSAValue:
    """Lanes rounded towards zero, at the ends of the range if they are outside; 0 for NaN."""
    bits = integer_type(element_type(result)).width.data - signed
    wide = like(value.type, f64)
    if bits > 32 and value.type != wide:
        value = b.make(llvm.FPExtOp, (value,), wide)
    low, end, digits = float(-(1 << bits) if signed else 0), float(1 << bits), DIGITS[element_type(value.type)]
    last = end - (1 if bits <= digits else 1 << (bits - digits))
    # Of NaN and 0 the second is not less, so that a range from 0 on needs no test of its own.
    number = b.select(b.compare_floats("ord", value, value), value, b.float(0.0, value.type)) if signed else value
    for predicate, limit in (("ogt", low), ("olt", last)):
        edge = b.float(limit, value.type)
        number = b.select(b.compare_floats(predicate, number, edge), number, edge)
    whole = _whole(b, number, bits)
    if last < end - 1:
        beyond = b.compare_floats("oge", value, b.float(end, value.type))
        whole = b.select(beyond, b.integer((1 << bits) - 1, whole.type), whole)
    return whole if whole.type == result else b.make(llvm.TruncOp, (whole,), result)


def _whole(b: LLVMBuilder, number: SSAValue, bits: int) -> SSAValue:
    """A number that is in range, in as many bits as it takes of 32 or 64."""
    if bits > 32 and b.module.vector_bits < 512:
        return _by_halves(b, number)
    kind = llvm_ext.FPToUIOp if bits in (32, 64) else llvm_ext.FPToSIOp
    return b.make(kind, (number,), like(number.type, i32 if bits <= 32 else i64))


def _by_halves(b: LLVMBuilder, number: SSAValue) -> SSAValue:
    """An f64 as an integer of 64 bits: AVX2 has no instruction for it, but sums that leave halves in their bits."""
    kind, wide = number.type, like(number.type, i64)
    whole = b.overloaded("llvm.trunc", (number,), kind)
    scaled = b.make(llvm.FMulOp, (whole, b.float(2.0**-32, kind)), kind)
    upper = b.overloaded("llvm.floor", (scaled,), kind)
    lower = b.overloaded("llvm.fmuladd", (upper, b.float(-(2.0**32), kind), whole), kind)
    high, low = (
        b.make(llvm.BitcastOp, (b.make(llvm.FAddOp, (half, b.float(one, kind)), kind),), wide)
        for half, one in ((upper, _UPPER), (lower, _LOWER))
    )
    shifted = b.make(llvm.ShlOp, (high, b.integer(32, wide)), wide)
    return b.make(llvm.OrOp, (shifted, b.make(llvm.AndOp, (low, b.integer((1 << 32) - 1, wide)), wide)), wide)


def f64_to_f16(b: LLVMBuilder, value: SSAValue) -> SSAValue:
    """Lanes rounded to nearest even by way of f32, to which they are rounded such that nothing is rounded twice.

    The digits that f32 lacks become one, which is set if any of them is. Processors have no instruction for the whole
    way, and LLVM calls a function for each element.
    """
    wide = like(value.type, i64)
    bits = b.make(llvm.BitcastOp, (value,), wide)
    lost = b.make(llvm.AndOp, (bits, b.integer(_LOST, wide)), wide)
    carried = b.wrapping(llvm.AddOp, lost, b.integer(_LOST, wide))
    sticky = b.make(llvm.AndOp, (b.make(llvm.OrOp, (bits, carried), wide), b.integer(~_LOST, wide)), wide)
    odd = b.make(llvm.FPTruncOp, (b.make(llvm.BitcastOp, (sticky,), value.type),), like(value.type, f32))
    return b.make(llvm.FPTruncOp, (odd,), like(value.type, f16))

"""Logarithms and powers of 2 in f64, exact enough for powers of f32."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from lowering.llvm.builder.vector_types import like
from lowering.tir_to_llvm.math.floats import ROUNDING, Floats, doubles, narrowed

LOG2 = (2.885390081790203, 0.961796673199871, 0.5770836115955518, 0.41167113416805334, 0.34075935878764974)
EXP2 = (
    0.6931471880739241,
    0.24022651086455518,
    0.05550356889846614,
    0.00961803039175304,
    0.0013390981753592939,
    0.00015469862933134074,
)

_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD


def log2(d: Floats, x: SSAValue) -> SSAValue:
    """The logarithm of an f64 that is not negative, with `-inf` at 0, `inf` at `inf` and NaN at NaN.

    `log2 m` for m from sqrt(1/2) to sqrt(2) is a polynomial in `(m - 1) / (m + 1)`.
    """
    b, long = d.b, like(d.type, i64)
    bits = b.make(llvm.BitcastOp, (x,), long)
    above = b.wrapping(llvm.SubOp, bits, b.integer(_ROOT_HALF_BITS, long))
    exponent = b.make(llvm.AShrOp, (above, b.integer(52, long)), long)
    m = b.wrapping(llvm.SubOp, bits, b.make(llvm.ShlOp, (exponent, b.integer(52, long)), long))
    m = b.make(llvm.BitcastOp, (m,), d.type)
    s = d.div(d.sub(m, d.number(1.0)), d.add(m, d.number(1.0)))
    narrow = b.make(llvm.TruncOp, (exponent,), like(d.type, i32))
    result = d.fma(d.polynomial(d.mul(s, s), LOG2), s, b.make(llvm.SIToFPOp, (narrow,), d.type))
    result = b.select(b.compare_floats("oeq", x, d.number(0.0)), d.number(float("-inf")), result)
    return b.select(b.compare_floats("olt", x, d.number(float("inf"))), result, x)


def exp2(f: Floats, x: SSAValue) -> SSAValue:
    """`2**x` as an f32 for an f64; beyond the range of f32 0 or infinity."""
    d = doubles(f)
    b, long = d.b, like(d.type, i64)
    x = d.clamp(x, -200.0, 200.0)
    rounded = d.add(x, d.number(ROUNDING))
    r = d.sub(x, d.sub(rounded, d.number(ROUNDING)))
    value = d.fma(d.polynomial(r, EXP2), r, d.number(1.0))
    bits = b.make(llvm.BitcastOp, (rounded,), long)
    scale = b.make(llvm.ShlOp, (b.wrapping(llvm.AddOp, bits, b.integer(1023, long)), b.integer(52, long)), long)
    return narrowed(f, d.mul(value, b.make(llvm.BitcastOp, (scale,), d.type)))

"""Logarithms and powers of 2 in f64, exact enough for results in f32."""

from __future__ import annotations

import math
import struct

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from lowering.to_llvm.floats import ROUNDING, Floats, doubles, narrowed, widened
from lowering.to_llvm.registers import chosen, chosen_doubles, exponent_of, mantissa_of, scaled
from lowering.to_llvm.vector_types import like

LOG2 = (2.885390081790203, 0.961796673199871, 0.5770836115955518, 0.41167113416805334, 0.34075935878764974)
LOG2_NEAR = (1.4426950408581876, -0.7213474528475323, 0.48089869715961564, -0.3609587436460786, 0.28819662809465246)
EXP2 = (
    0.6931471880739241,
    0.24022651086455518,
    0.05550356889846614,
    0.00961803039175304,
    0.0013390981753592939,
    0.00015469862933134074,
)
EXP2_NEAR = (0.6931471824645996, 0.24023433029651642, 0.05550313740968704)

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
    narrow = b.make(llvm.TruncOp, (exponent,), d.integers)
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


# The same by tables in registers. Intervals are those of a mantissa's first four digits, rounded to nearest; the last
# seven are taken from halves of mantissas, so that the interval around 1, where a logarithm is small, has both sides.

_LOW_PLACES = 9
_CENTRES = tuple((1 + place / 16) / (1 if place < _LOW_PLACES else 2) for place in range(16))
_END = (_CENTRES[_LOW_PLACES - 1] + 2 * _CENTRES[_LOW_PLACES]) / 2
"""From here on a mantissa is halved."""


def _rounded(number: float) -> float:
    return struct.unpack("f", struct.pack("f", number))[0]


_RECIPROCALS = tuple(_rounded(1 / centre) for centre in _CENTRES)
_LOGARITHMS = tuple(-math.log2(reciprocal) for reciprocal in _RECIPROCALS)
_ROOTS = tuple(2.0 ** (number / 16) for number in range(16))
_SIXTEENTHS = 1.5 * 2.0**19
"""Adding it rounds a float of less than 2**18 to sixteenths, whose number then stands in the lowest bits."""


def log2_by_table(f: Floats, x: SSAValue) -> SSAValue:
    """The logarithm as an f64 of f32 numbers that are not negative, with the same special values.

    With c the middle of an interval, `log2 (2**e * m) = e + log2 c + log2 (m / c)`; the product with `1 / c` is exact.
    """
    b, d = f.b, doubles(f)
    mantissa, exponent = mantissa_of(f, x), exponent_of(f, x)
    is_high = b.compare_floats("oge", mantissa, f.number(_END))
    mantissa = b.select(is_high, f.mul(mantissa, f.number(0.5)), mantissa)
    exponent = b.select(is_high, f.add(exponent, f.number(1.0)), exponent)
    half_up = f.integers_op(llvm.AddOp, f.bits(mantissa), f.integer(1 << 18))
    places = b.make(llvm.LShrOp, (half_up, f.integer(19)), f.integers)
    ratio = d.fused(widened(f, mantissa), widened(f, chosen(f, _RECIPROCALS, places)), d.number(-1.0))
    whole = d.add(widened(f, exponent), chosen_doubles(f, _LOGARITHMS, places))
    return d.fused(d.polynomial(ratio, LOG2_NEAR), ratio, whole)


def exp2_by_table(f: Floats, x: SSAValue) -> SSAValue:
    """`2**x = 2**floor(n) * 2**(n - floor(n)) * 2**r` for n in sixteenths, as an f32 for an f64."""
    d = doubles(f)
    x = d.clamp(x, -200.0, 200.0)
    rounded = f.add(narrowed(f, x), f.number(_SIXTEENTHS))
    n = f.sub(rounded, f.number(_SIXTEENTHS))
    r = narrowed(f, d.sub(x, widened(f, n)))
    root = chosen(f, _ROOTS, f.bits(rounded))
    return scaled(f, f.fma(root, f.mul(f.polynomial(r, EXP2_NEAR), r), root), n)

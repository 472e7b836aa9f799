"""Elementary functions of f32 whose arguments or logarithms need more digits than an f32 has: partly in f64.

Like the others they are at most 2 units in the last place off, for all inputs, on scalars and vectors alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xdsl.dialects import llvm
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import SSAValue

from lowering.to_llvm.floats import Floats
from lowering.to_llvm.registers import has_registers
from lowering.to_llvm.vector_types import lane_count, like

HALF_PI = (1.570796251296997, 7.549790126404332e-08, -1.7151245100058819e-15)
"""Three f32 numbers whose sum is pi / 2."""

HALF_PI_HIGH, HALF_PI_LOW = 1.5707963267341256, 6.077100506506192e-11  # the first has 33 bits
TWO_OVER_PI = (0xA2F983, 0x6E4E44, 0x1529FC, 0x2757D1, 0xF534DD, 0xC0DB62, 0x95993C, 0x439041, 0xFE5163)
"""The digits of 2 / pi to the base 2**24."""

LARGE = 2.0**19
"""From here on the multiples of pi / 2 have more digits than an f64 holds exactly."""

ROUNDING, NARROW_ROUNDING = 1.5 * 2.0**52, 1.5 * 2.0**23
"""Adding it rounds a double of less than 2**51, or a float of less than 2**22, to an integer in the lowest bits."""

Turns: TypeAlias = tuple[SSAValue, SSAValue, SSAValue]
"""`(k, r, s)` with `x = k * pi / 2 + r + s`: k modulo 4 in the lowest bits of an integer, r from -pi / 4 to pi / 4, and
s no more than its last bit.
"""

SIN = (-0.16666655242443085, 0.008332176133990288, -0.00019516977772582322)
COS = (0.04166664555668831, -0.0013887364184483886, 2.4438089894829318e-05)
LOG2 = (2.885390081790203, 0.961796673199871, 0.5770836115955518, 0.41167113416805334, 0.34075935878764974)
EXP2 = (
    0.6931471880739241,
    0.24022651086455518,
    0.05550356889846614,
    0.00961803039175304,
    0.0013390981753592939,
    0.00015469862933134074,
)


def _doubles(f: Floats) -> Floats:
    return Floats(f.b, like(f.type, f64))


def _widened(f: Floats, x: SSAValue) -> SSAValue:
    return f.b.make(llvm.FPExtOp, (x,), like(f.type, f64))


def _narrowed(f: Floats, x: SSAValue) -> SSAValue:
    return f.b.make(llvm.FPTruncOp, (x,), f.type)


def _floor(f: Floats, x: SSAValue) -> SSAValue:
    return f.b.overloaded("llvm.floor", (x,), x.type)


# Sine and cosine.


def _turns(f: Floats, x: SSAValue) -> Turns:
    """How x is made of right angles."""
    b, near_parts = f.b, _in_singles(f, x) if has_registers(f) else _in_doubles(f, x)
    is_large = b.compare_floats("oge", f.magnitude(x), f.number(LARGE))
    far, near, after = b.new_block(), b.new_block(), b.new_block([part.type for part in near_parts])
    b.branch_if(_any(f, is_large), far, near)
    b.start(near)
    b.branch(after, *near_parts)
    b.start(far)
    far_parts = _whole_and_rest(f, *_turns_of_large(_doubles(f), _widened(f, x)))
    b.branch(after, *(b.select(is_large, *pair) for pair in zip(far_parts, near_parts, strict=True)))
    b.start(after)
    k, r, s = after.args
    return k, r, s


def _in_singles(f: Floats, x: SSAValue) -> Turns:
    """The same for numbers of less than `LARGE` (Cody and Waite, 1980), where products are not rounded.

    What the first part of pi / 2 leaves is exact, and so is what the second product and its subtraction lose (Dekker,
    1971): a multiple of the last bit of the product is taken from it. Both losses go to the third part.
    """
    rounded = f.fused(x, f.number(0.6366197723675814), f.number(NARROW_ROUNDING))
    minus_k = f.sub(f.number(-0.0), f.sub(rounded, f.number(NARROW_ROUNDING)))
    high, middle, low = map(f.number, HALF_PI)
    first = f.fused(minus_k, high, x)
    product = f.mul(minus_k, middle)
    rest = f.fused(minus_k, middle, f.sub(f.number(-0.0), product))
    second = f.add(first, product)
    lost = f.add(f.sub(product, f.sub(second, first)), rest)
    return f.bits(rounded), second, f.fused(minus_k, low, lost)


def _in_doubles(f: Floats, x: SSAValue) -> Turns:
    """The same in f64."""
    d, wide = _doubles(f), _widened(f, x)
    rounded = d.fma(wide, d.number(0.6366197723675814), d.number(ROUNDING))
    k = d.sub(rounded, d.number(ROUNDING))
    rest = d.sub(d.sub(wide, d.mul(k, d.number(HALF_PI_HIGH))), d.mul(k, d.number(HALF_PI_LOW)))
    return _whole_and_rest(f, rounded, rest)


def _whole_and_rest(f: Floats, rounded: SSAValue, rest: SSAValue) -> Turns:
    bits = f.b.make(llvm.BitcastOp, (rounded,), like(f.type, i64))
    return f.b.make(llvm.TruncOp, (bits,), f.integers), _narrowed(f, rest), f.number(0.0)


def _any(f: Floats, condition: SSAValue) -> SSAValue:
    lanes = lane_count(f.type)
    if lanes is None:
        return condition
    return f.b.intrinsic(f"llvm.vector.reduce.or.v{lanes}i1", (condition,), i1)


def _turns_of_large(d: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The same as `rounded` and `rest` for numbers of any size (Payne and Hanek, 1983).

    The product of x and a digit is exact, and so is what is left of it modulo 4; the sum is kept in two parts.
    """
    total, low = d.number(0.0), d.number(0.0)
    for place, digit in enumerate(TWO_OVER_PI):
        part = d.mul(x, d.number(digit * 2.0 ** (-24 * (place + 1))))
        part = d.sub(part, d.mul(_floor(d, d.mul(part, d.number(0.25))), d.number(4.0)))
        grown = d.add(total, part)
        moved = d.sub(grown, total)
        lost = d.add(d.sub(total, d.sub(grown, moved)), d.sub(part, moved))
        total, low = grown, d.add(low, lost)
    rounded = d.add(total, d.number(ROUNDING))
    fraction = d.add(d.sub(total, d.sub(rounded, d.number(ROUNDING))), low)
    return rounded, d.mul(fraction, d.number(1.5707963267948966))


def _wave(f: Floats, turns: Turns, shift: int) -> SSAValue:
    """The sine of `(k + shift) * pi / 2 + r + s`."""
    b, (k, r, s) = f.b, turns
    k = f.integers_op(llvm.AddOp, k, f.integer(shift)) if shift else k
    square = f.mul(r, r)
    sine = f.add(f.fma(f.mul(f.polynomial(square, SIN), square), r, s), r)
    tail = f.fma(f.polynomial(square, COS), square, f.number(-0.5))
    cosine = f.fma(tail, square, f.number(1.0))
    is_odd = b.compare("ne", b.make(llvm.AndOp, (k, f.integer(1)), f.integers), f.integer(0))
    value = b.select(is_odd, cosine, sine)
    sign = b.make(llvm.AndOp, (b.make(llvm.ShlOp, (k, f.integer(30)), f.integers), f.integer(-1 << 31)), f.integers)
    return f.from_bits(b.make(llvm.XOrOp, (f.bits(value), sign), f.integers))


def sin(f: Floats, x: SSAValue) -> SSAValue:
    """A polynomial in the distance to the nearest multiple of a right angle; a zero stays."""
    is_zero = f.b.compare_floats("oeq", x, f.number(0.0))
    return f.b.select(is_zero, x, _wave(f, _turns(f, x), 0))


def cos(f: Floats, x: SSAValue) -> SSAValue:
    """A polynomial in the distance to the nearest multiple of a right angle."""
    return _wave(f, _turns(f, x), 1)


# Powers.


def power(f: Floats, x: SSAValue, y: SSAValue) -> SSAValue:
    """`x**y = 2**(y * log2 |x|)`, with the sign and the special values of IEEE 754's `pow`."""
    b = f.b
    size, wide_y = b.overloaded("llvm.fabs", (x,), f.type), _widened(f, y)
    result = _narrowed(f, _exp2(_doubles(f), _doubles(f).mul(wide_y, _log2(f, size))))
    whole = _floor(f, y)
    half = f.mul(y, f.number(0.5))
    is_whole = b.compare_floats("oeq", whole, y)
    is_odd = _and(f, is_whole, b.compare_floats("one", _floor(f, half), half))
    bits = f.bits(x)
    is_negative = b.compare("slt", bits, f.integer(0))
    result = b.select(_and(f, is_negative, is_odd), f.sub(f.number(-0.0), result), result)
    is_finite = b.compare_floats("one", size, f.number(float("inf")))
    below = _and(f, b.compare_floats("olt", x, f.number(0.0)), is_finite)
    result = b.select(_and(f, below, b.compare_floats("one", whole, y)), f.number(float("nan")), result)
    is_endless = b.compare_floats("oeq", b.overloaded("llvm.fabs", (y,), f.type), f.number(float("inf")))
    is_unit = _and(f, b.compare_floats("oeq", size, f.number(1.0)), is_endless)
    result = b.select(is_unit, f.number(1.0), result)
    result = b.select(b.compare_floats("oeq", x, f.number(1.0)), f.number(1.0), result)
    return b.select(b.compare_floats("oeq", y, f.number(0.0)), f.number(1.0), result)


def _and(f: Floats, left: SSAValue, right: SSAValue) -> SSAValue:
    return f.b.make(llvm.AndOp, (left, right), left.type)


def _log2(f: Floats, x: SSAValue) -> SSAValue:
    """The logarithm as an f64 of an f32 that is not negative, with `-inf` at 0, `inf` at `inf` and NaN at NaN.

    `log2 m` for m from sqrt(1/2) to sqrt(2) is a polynomial in `(m - 1) / (m + 1)`.
    """
    b, d = f.b, _doubles(f)
    wide = _widened(f, x)
    long = like(f.type, i64)
    bits = b.make(llvm.BitcastOp, (wide,), long)
    above = b.wrapping(llvm.SubOp, bits, b.integer(_ROOT_HALF_BITS, long))
    exponent = b.make(llvm.AShrOp, (above, b.integer(52, long)), long)
    m = b.wrapping(llvm.SubOp, bits, b.make(llvm.ShlOp, (exponent, b.integer(52, long)), long))
    m = b.make(llvm.BitcastOp, (m,), d.type)
    s = d.div(d.sub(m, d.number(1.0)), d.add(m, d.number(1.0)))
    narrow = b.make(llvm.TruncOp, (exponent,), f.integers)
    result = d.fma(d.polynomial(d.mul(s, s), LOG2), s, b.make(llvm.SIToFPOp, (narrow,), d.type))
    result = b.select(b.compare_floats("oeq", x, f.number(0.0)), d.number(float("-inf")), result)
    return b.select(b.compare_floats("olt", x, f.number(float("inf"))), result, wide)


_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD


def _exp2(d: Floats, x: SSAValue) -> SSAValue:
    """`2**x` for doubles, exact enough for an f32; beyond its range far below or above it."""
    b, long = d.b, like(d.type, i64)
    x = d.clamp(x, -200.0, 200.0)
    rounded = d.add(x, d.number(ROUNDING))
    r = d.sub(x, d.sub(rounded, d.number(ROUNDING)))
    value = d.fma(d.polynomial(r, EXP2), r, d.number(1.0))
    bits = b.make(llvm.BitcastOp, (rounded,), long)
    scale = b.make(llvm.ShlOp, (b.wrapping(llvm.AddOp, bits, b.integer(1023, long)), b.integer(52, long)), long)
    return d.mul(value, b.make(llvm.BitcastOp, (scale,), d.type))


WIDE_EXPANSIONS: dict[str, Callable[..., SSAValue]] = {"math.cos": cos, "math.powf": power, "math.sin": sin}
"""Functions of f32 that we compute ourselves, by the name of the op."""

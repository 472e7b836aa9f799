"""Trigonometric functions and their inverses of f32 and f64, as straight-line code that vectorises: at most 2 ulp off.

Arguments are reduced to `-pi / 4` to `pi / 4`, which needs more digits of pi than one number has: those of f32 in f64
or, with AVX-512, by three numbers in f32, where tangents are by `tangent_tables.py`; those of f64 by three numbers,
where products can be fused. Large arguments of f32 take more digits of `2 / pi`; those of f64 are left to the C
library, element by element, and are as exact as it.

At most 2 ulp off, for all inputs, on scalars and vectors alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from lowering.llvm.function_builder import like
from lowering.tir_to_llvm.math.expansion import coefficients
from lowering.tir_to_llvm.math.floats import (
    BINARY32,
    ROUNDING,
    Floats,
    chosen,
    doubles,
    floor,
    has_registers,
    narrowed,
    reciprocal_estimate,
    widened,
)

LIMIT = 2.0**18
"""Below, n has 22 digits, as many as are rounded by a sum, and three parts of `pi / 32` have digits enough."""

SINES = (
    *(-0.0, 0.09802073240280151, 0.19510746002197266, 0.29019543528556824, 0.3826078474521637, 0.47134217619895935),
    *(0.5556243062019348, 0.6342568397521973, 1.0, 0.7728441953659058, 0.8315505385398865, 0.8818191885948181),
    *(0.9236970543861389, 0.956854522228241, 0.9808714389801025, 0.9952211976051331, 1.0, 0.9952211976051331),
    *(0.9808714389801025, 0.956854522228241, 0.9236970543861389, 0.8818191885948181, 0.8315505385398865),
    *(0.7728441953659058, 1.0, 0.6342568397521973, 0.5556243062019348, 0.47134217619895935, 0.3826078474521637),
    *(0.29019543528556824, 0.19510746002197266, 0.09802073240280151),
)
COSINES = (
    *(1.0, 0.9952211976051331, 0.9808714389801025, 0.9566461443901062, 0.9236970543861389, 0.8818191885948181),
    *(0.8315505385398865, 0.7728441953659058, 1.0, 0.6342568397521973, 0.5556243062019348, 0.47134217619895935),
    *(0.3826078474521637, 0.29025864601135254, 0.19510746002197266, 0.09802073240280151, 0.0, -0.09802073240280151),
    *(-0.19510746002197266, -0.29025864601135254, -0.3826078474521637, -0.47134217619895935, -0.5556243062019348),
    *(-0.6342568397521973, -1.0, -0.7728441953659058, -0.8315505385398865, -0.8818191885948181, -0.9236970543861389),
    *(-0.9566461443901062, -0.9808714389801025, -0.9952211976051331),
)
_PARTS = (0.09817476570606232, 4.718618384913498e-09, 3.368939345921399e-16)
"""Of `pi / 32`, each rounded down."""
_STEPS = 10.185916357881302
_TAN = (0.333333283662796, 0.13346348702907562)
"""`(tan(r) / r - 1) / r**2` in `r**2`, to 2**-23: a minimax fit of ours (Remez' exchange algorithm with 60 digits)."""


def tan_by_table(f: Floats, x: SSAValue) -> SSAValue:
    """The tangent of numbers of less than `LIMIT`; a zero keeps its sign, as what is taken from it is positive."""
    offset = f.number(f.format.rounding)
    rounded = f.fused(x, f.number(_STEPS), offset)
    r, over = _rest(f, x, f.sub(rounded, offset))
    square = f.mul(r, r)
    t = f.sub(r, f.fused(_minus(f, f.mul(r, square)), f.polynomial(square, _TAN), over))
    index = f.bits(rounded)
    sine, cosine = chosen(f, SINES, index), chosen(f, COSINES, index)
    dividend, divisor = f.fused(cosine, t, sine), f.fused(_minus(f, sine), t, cosine)
    lost = f.fused(cosine, t, f.sub(sine, dividend))
    # By an estimate of the reciprocal, and what its product and the dividend lack; a zero keeps its
    # sign.
    estimate = reciprocal_estimate(f, divisor)
    quotient = f.mul(dividend, estimate)
    over = f.sub(f.fused(quotient, divisor, _minus(f, dividend)), lost)
    return f.fused(_minus(f, over), estimate, quotient)


def _rest(f: Floats, x: SSAValue, n: SSAValue) -> tuple[SSAValue, SSAValue]:
    """`(r, s)` with `x = n * pi / 32 + r - s`, where s is no more than the last bit of r (Cody and Waite, 1980).

    What the first part of `pi / 32` leaves is exact, and so is what the second product and its subtraction lose
    (Dekker, 1971). Both losses go to the third part.
    """
    high, middle, low = map(f.number, _PARTS)
    first, product = f.fused(_minus(f, n), high, x), f.mul(n, middle)
    r = f.sub(first, product)
    lost = f.sub(f.fused(n, middle, _minus(f, product)), f.sub(f.sub(first, r), product))
    return r, f.fused(n, low, lost)


def _minus(f: Floats, value: SSAValue) -> SSAValue:
    return f.sub(f.number(-0.0), value)


HALF_PI_HIGH, HALF_PI_LOW = 1.5707963267341256, 6.077100506506192e-11  # the first has 33 bits
TWO_OVER_PI = (0xA2F983, 0x6E4E44, 0x1529FC, 0x2757D1, 0xF534DD, 0xC0DB62, 0x95993C, 0x439041, 0xFE5163)
"""The digits of 2 / pi to the base 2**24."""

LARGE = 2.0**19
"""From here on the multiples of pi / 2 have more digits than an f64 holds exactly."""

LARGE_DOUBLE = 2.0**30
"""Below, an f64 divided by pi / 2 is off by less than `2**-20`, and three numbers for pi / 2 have digits enough."""

Turns: TypeAlias = tuple[SSAValue, SSAValue, SSAValue]
"""`(k, r, s)` with `x = k * pi / 2 + r + s`: k modulo 4 in the lowest bits of an integer, r from -pi / 4 to pi / 4, and
s no more than its last bit.
"""


def _by_three_parts(f: Floats, x: SSAValue) -> Turns:
    """The same for numbers of less than `LARGE`, or `LARGE_DOUBLE`, with fused products (Cody and Waite, 1980).

    What the first part of pi / 2 leaves is exact, and so is what the second product and its subtraction lose (Dekker,
    1971): a multiple of the last bit of the product is taken from it. Both losses go to the third part.
    """
    offset = f.number(f.format.rounding)
    rounded = f.fused(x, f.number(0.6366197723675814), offset)
    minus_k = f.sub(offset, rounded)
    high, middle, low = map(f.number, coefficients(f).half_pi_parts)
    first = f.fused(minus_k, high, x)
    product = f.mul(minus_k, middle)
    rest = f.fused(minus_k, middle, f.sub(f.number(-0.0), product))
    second = f.add(first, product)
    lost = f.add(f.sub(product, f.sub(second, first)), rest)
    return f.bits(rounded), second, f.fused(minus_k, low, lost)


def _in_doubles(f: Floats, x: SSAValue) -> Turns:
    """The same in f64."""
    d, wide = doubles(f), widened(f, x)
    rounded = d.fma(wide, d.number(0.6366197723675814), d.number(ROUNDING))
    k = d.sub(rounded, d.number(ROUNDING))
    rest = d.sub(d.sub(wide, d.mul(k, d.number(HALF_PI_HIGH))), d.mul(k, d.number(HALF_PI_LOW)))
    return _whole_and_rest(f, rounded, rest)


def _whole_and_rest(f: Floats, rounded: SSAValue, rest: SSAValue) -> Turns:
    bits = f.b.make(llvm.BitcastOp, (rounded,), like(f.type, i64))
    near = narrowed(f, rest)
    after = narrowed(f, doubles(f).sub(rest, widened(f, near)))
    return f.b.make(llvm.TruncOp, (bits,), f.integers), near, after


def _large_turns(f: Floats, x: SSAValue) -> Turns:
    """How a large f32 is made of right angles."""
    return _whole_and_rest(f, *_turns_of_large(doubles(f), widened(f, x)))


def _turns_of_large(d: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The same as `rounded` and `rest` for numbers of any size (Payne and Hanek, 1983).

    The product of x and a digit is exact, and so is what is left of it modulo 4; the sum is kept in two parts.
    """
    total, low = d.number(0.0), d.number(0.0)
    for position, digit in enumerate(TWO_OVER_PI):
        part = d.mul(x, d.number(digit * 2.0 ** (-24 * (position + 1))))
        part = d.sub(part, d.mul(floor(d, d.mul(part, d.number(0.25))), d.number(4.0)))
        grown = d.add(total, part)
        moved = d.sub(grown, total)
        lost = d.add(d.sub(total, d.sub(grown, moved)), d.sub(part, moved))
        total, low = grown, d.add(low, lost)
    rounded = d.add(total, d.number(ROUNDING))
    fraction = d.add(d.sub(total, d.sub(rounded, d.number(ROUNDING))), low)
    return rounded, d.mul(fraction, d.number(1.5707963267948966))


def _wave(f: Floats, turns: Turns, shift: int) -> SSAValue:
    """The sine of `(k + shift) * pi / 2 + r + s`."""
    b, (k, r, s), known, width = f.b, turns, coefficients(f), f.format.integer.width.data
    k = f.integers_op(llvm.AddOp, k, f.integer(shift)) if shift else k
    square = f.mul(r, r)
    sine = f.add(f.fma(f.mul(f.polynomial(square, known.sin), square), r, s), r)
    tail = f.fma(f.polynomial(square, known.cos), square, f.number(-0.5))
    cosine = f.fma(tail, square, f.number(1.0))
    is_odd = b.compare("ne", b.make(llvm.AndOp, (k, f.integer(1)), f.integers), f.integer(0))
    value = b.select(is_odd, cosine, sine)
    sign = b.make(llvm.ShlOp, (k, f.integer(width - 2)), f.integers)
    sign = b.make(llvm.AndOp, (sign, f.integer(-1 << (width - 1))), f.integers)
    return f.from_bits(b.make(llvm.XOrOp, (f.bits(value), sign), f.integers))


def sin(f: Floats, x: SSAValue) -> SSAValue:
    """A polynomial in the distance to the nearest multiple of a right angle; a zero stays."""
    is_zero = f.b.compare_floats("oeq", x, f.number(0.0))
    return f.b.select(is_zero, x, _of_turns(f, x, "sin", lambda turns: _wave(f, turns, 0)))


def cos(f: Floats, x: SSAValue) -> SSAValue:
    """A polynomial in the distance to the nearest multiple of a right angle."""
    return _of_turns(f, x, "cos", lambda turns: _wave(f, turns, 1))


def _of_turns(f: Floats, x: SSAValue, name: str, value: Callable[[Turns], SSAValue]) -> SSAValue:
    """A function of the parts of an angle; of large f64 numbers that of the C library, if there are any."""
    if f.format == BINARY32:
        # How an f32 is made of right angles.
        b, near_parts = f.b, _by_three_parts(f, x) if has_registers(f) else _in_doubles(f, x)
        is_large = b.compare_floats("oge", f.magnitude(x), f.number(LARGE))
        far, near, after = b.new_block(), b.new_block(), b.new_block([part.type for part in near_parts])
        b.branch_if(f.b.any_lane(is_large), far, near)
        b.start(near)
        b.branch(after, *near_parts)
        b.start(far)
        b.branch(after, *(b.select(is_large, *pair) for pair in zip(_large_turns(f, x), near_parts, strict=True)))
        b.start(after)
        k, r, s = after.args
        return value((k, r, s))
    near = value(_by_three_parts(f, x))
    return _unless_large(f, x, LARGE_DOUBLE, near, lambda: f.b.overloaded(f"llvm.{name}", (x,), f.type))


def _unless_large(f: Floats, x: SSAValue, limit: float, near: SSAValue, far: Callable[[], SSAValue]) -> SSAValue:
    """Another function of numbers from a limit on, if there are any."""
    b, is_large = f.b, f.b.compare_floats("oge", f.magnitude(x), f.number(limit))
    large, plain, after = b.new_block(), b.new_block(), b.new_block([f.type])
    b.branch_if(b.any_lane(is_large), large, plain)
    b.start(plain)
    b.branch(after, near)
    b.start(large)
    b.branch(after, b.select(is_large, far(), near))
    b.start(after)
    return after.args[0]


def tan(f: Floats, x: SSAValue) -> SSAValue:
    """A polynomial in the distance to the nearest multiple of a right angle, or minus its reciprocal; a zero stays."""
    if has_registers(f):
        return _unless_large(f, x, LIMIT, tan_by_table(f, x), lambda: _tangent(f, _large_turns(f, x)))
    is_zero = f.b.compare_floats("oeq", x, f.number(0.0))
    return f.b.select(is_zero, x, _of_turns(f, x, "tan", lambda turns: _tangent(f, turns)))


def _tangent(f: Floats, turns: Turns) -> SSAValue:
    """The tangent of `k * pi / 2 + r + s`."""
    b, (k, r, s) = f.b, turns
    in_doubles = f.format == BINARY32 and not has_registers(f)
    near, far = _tangents_in_doubles(f, r, s) if in_doubles else _tangents(f, r, s)
    is_odd = b.compare("ne", b.make(llvm.AndOp, (k, f.integer(1)), f.integers), f.integer(0))
    return b.select(is_odd, far, near)


def _tangents(f: Floats, r: SSAValue, s: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The tangent of `r + s`, and minus its reciprocal, where products are not rounded.

    What the sum loses is known exactly, and belongs to the number whose reciprocal is an estimate, of f64 a quotient,
    and one Newton step: near multiples of a right angle `s` may be a hundredth of r.
    """
    square = f.mul(r, r)
    rest = f.mul(f.polynomial(square, coefficients(f).tan), square)
    small = f.fused(rest, r, f.fused(s, square, s))
    near = f.add(r, small)
    lost = f.add(f.sub(r, near), small)
    estimate = reciprocal_estimate(f, near) if has_registers(f) else f.div(f.number(1.0), near)
    missing = f.fused(estimate, lost, f.fused(estimate, near, f.number(-1.0)))
    return near, f.fused(estimate, missing, f.sub(f.number(-0.0), estimate))


def _tangents_in_doubles(f: Floats, r: SSAValue, s: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The same in f64."""
    d, square = doubles(f), f.mul(r, r)
    wide, rest = (
        d.add(widened(f, r), widened(f, s)),
        widened(f, f.mul(f.polynomial(square, coefficients(f).tan), square)),
    )
    near = d.fma(rest, wide, wide)
    return narrowed(f, near), narrowed(f, d.div(d.number(-1.0), near))


TRIGONOMETRIC: dict[str, Callable[[Floats, SSAValue], SSAValue]] = {"math.cos": cos, "math.sin": sin, "math.tan": tan}
"""Functions of one f32, or f64 with fused products, that we compute ourselves, by the name of the op."""


def atan(f: Floats, x: SSAValue) -> SSAValue:
    """A polynomial up to 1, else what the reciprocal's leaves of a right angle."""
    b, size = f.b, f.magnitude(x)
    is_steep = b.compare_floats("ogt", size, f.number(1.0))
    t = b.select(is_steep, f.div(f.number(1.0), size), size)
    angle = f.fma(*_arctangent_terms(f, t))
    return f.with_sign(b.select(is_steep, _from_half_pi(f, angle), angle), x)


def atan2(f: Floats, y: SSAValue, x: SSAValue) -> SSAValue:
    """The angle of the point (x, y), with the signs and quadrants of IEEE 754's `atan2`.

    It is the arctangent of the smaller magnitude over the larger, added to a multiple of a right angle or subtracted.
    """
    b, (high, low) = f.b, coefficients(f).half_pi
    across, along = f.magnitude(x), f.magnitude(y)
    is_steep = b.compare_floats("ogt", along, across)
    less, more = b.select(is_steep, across, along), b.select(is_steep, along, across)
    # `less / more`; 0 of two zeros, 1 of two infinities.
    quotient = f.div(less, f.at_least(more, f.format.least))
    infinite = [f.b.compare_floats("oeq", each, f.number(float("inf"))) for each in (less, more)]
    t = f.b.select(f.b.make(llvm.AndOp, infinite, like(f.type, i1)), f.number(1.0), quotient)
    angle = f.fma(*_arctangent_terms(f, t))
    is_left = b.compare("slt", f.bits(x), f.integer(0))
    parts = [
        b.select(is_steep, f.number(part), b.select(is_left, f.number(2 * part), f.number(0.0))) for part in (high, low)
    ]
    is_subtracted = b.make(llvm.XOrOp, (is_steep, is_left), is_left.type)
    angle = b.select(is_subtracted, f.sub(f.number(-0.0), angle), angle)
    return f.with_sign(f.add(f.add(parts[0], angle), parts[1]), y)


def _arctangent_terms(f: Floats, t: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """For t from 0 to 1, the factors and the summand of its arctangent."""
    square = f.mul(t, t)
    return f.mul(f.polynomial(square, coefficients(f).atan), square), t, t


def _from_half_pi(f: Floats, angle: SSAValue) -> SSAValue:
    high, low = coefficients(f).half_pi
    return f.add(f.sub(f.number(high), angle), f.number(low))


def _asin_parts(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Whether |x| is at most a half; |x|, or else `sqrt((1 - |x|) / 2)`; the arcsine of that over it, less 1."""
    b, size = f.b, f.magnitude(x)
    rest = f.mul(f.sub(f.number(1.0), size), f.number(0.5))
    is_small = b.compare_floats("ole", size, f.number(0.5))
    square = b.select(is_small, f.mul(x, x), rest)
    base = b.select(is_small, size, b.overloaded("llvm.sqrt", (rest,), f.type))
    return is_small, base, f.mul(f.polynomial(square, coefficients(f).asin), square)


def asin(f: Floats, x: SSAValue) -> SSAValue:
    """A polynomial up to a half, else `pi / 2 - 2 asin sqrt((1 - x) / 2)`.

    The root is subtracted first, and from half of a right angle, so that the difference is as small as the result.
    """
    (is_small, base, more), (high, low) = _asin_parts(f, x), coefficients(f).half_pi
    double, half = f.mul(base, f.number(-2.0)), f.number(high / 2)
    far = f.add(half, f.add(f.add(half, double), f.fma(more, double, f.number(low))))
    return f.with_sign(f.b.select(is_small, f.fma(more, base, base), far), x)


def acos(f: Floats, x: SSAValue) -> SSAValue:
    """`pi / 2 - asin x` up to a half, else `2 asin sqrt((1 - |x|) / 2)`, or what it leaves of two right angles."""
    b, (is_small, base, more), (high, low) = f.b, _asin_parts(f, x), coefficients(f).half_pi
    angle = f.fma(more, base, base)
    double = f.add(angle, angle)
    straight = f.add(f.sub(f.number(2 * high), double), f.number(2 * low))
    far = b.select(b.compare_floats("olt", x, f.number(0.0)), straight, double)
    return b.select(is_small, _from_half_pi(f, f.with_sign(angle, x)), far)


INVERSES: dict[str, Callable[..., SSAValue]] = {
    "math.acos": acos,
    "math.asin": asin,
    "math.atan": atan,
    "math.atan2": atan2,
}
"""Functions of f32 or f64 that we compute ourselves, by the name of the op."""

"""Exponential functions, tanh and erf of f32 and f64 as straight-line code that vectorises: at most 2 ulp off.

Each works on scalars and vectors alike, for all inputs, infinities, NaN and subnormal numbers included. What differs
between the formats are the coefficients of `coefficients.py`; with AVX-512 functions of f32 are by `tables.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math import tables
from lowering.tir_to_llvm.math.avx512 import has_registers, has_registers_of_doubles, scaled
from lowering.tir_to_llvm.math.coefficients import LOG2_E, coefficients
from lowering.tir_to_llvm.math.floats import Floats


def scale_exponent(f: Floats) -> int:
    """Added to an exponent from `-2 * bias` to `2 * bias + 2`, so that the halves of the sum are biased themselves."""
    return 2 * f.format.bias


def _scaled(f: Floats, value: SSAValue, rounded: SSAValue) -> SSAValue:
    """`value * 2**n`, where `n + 2 * bias` stands in the lowest bits of `rounded`."""
    if has_registers(f) or has_registers_of_doubles(f):
        return scaled(f, value, f.sub(rounded, f.number(f.format.rounding + scale_exponent(f))))
    first, second = _powers_of_two(f, rounded)
    return f.mul(f.mul(value, first), second)


def _powers_of_two(f: Floats, rounded: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Two factors of `2**n`, where `n + 2 * bias` stands in the lowest bits of `rounded`: n may be less than `-bias`.

    The upper bits of `rounded` are lost when the lowest ones go to where a float has its exponent.
    """
    bits, shift = f.bits(rounded), f.format.fraction
    halved = f.b.make(llvm.ShlOp, (bits, f.integer(shift - 1)), f.integers)
    first = f.b.make(llvm.AndOp, (halved, f.integer(f.format.infinity_bits)), f.integers)
    whole = f.b.make(llvm.ShlOp, (bits, f.integer(shift)), f.integers)
    return f.from_bits(first), f.from_bits(f.integers_op(llvm.SubOp, whole, first))


def exp(f: Floats, x: SSAValue) -> SSAValue:
    """`e**x = 2**n * e**r` with `n` the nearest integer to `x / ln 2`."""
    x = f.clamp(x, *coefficients(f).exp_range)
    return tables.exp(f, x) if has_registers(f) else grown(f, *_exp_tail(f, x, scale_exponent(f)))


def grown(f: Floats, tail: SSAValue, rounded: SSAValue) -> SSAValue:
    """`(1 + tail) * 2**n`, where `n + 2 * bias` stands in the lowest bits of `rounded`."""
    if has_registers(f) or has_registers_of_doubles(f):
        return _scaled(f, f.add(tail, f.number(1.0)), rounded)
    first, second = _powers_of_two(f, rounded)
    return f.mul(f.fma(tail, first, first), second)


def _exp_tail(f: Floats, x: SSAValue, bias: int) -> tuple[SSAValue, SSAValue]:
    """`e**r - 1`, and a number with `n + bias` in its lowest bits."""
    known, (first, n, rounded) = coefficients(f), _reduced(f, x, bias)
    r = f.fma(n, f.number(-known.ln2_low), first)
    return f.fma(f.polynomial(r, known.exp), f.mul(r, r), r), rounded


def _reduced(f: Floats, x: SSAValue, bias: int) -> tuple[SSAValue, SSAValue, SSAValue]:
    """`x - n * ln2_high`, which is exact, n, and a number with `n + bias` in its lowest bits (Cody and Waite, 1980)."""
    offset = f.number(f.format.rounding + bias)
    rounded = f.fma(x, f.number(LOG2_E), offset)
    n = f.sub(rounded, offset)
    return f.fma(n, f.number(-coefficients(f).ln2_high), x), n, rounded


def expm1(f: Floats, x: SSAValue) -> SSAValue:
    """`e**x - 1`, by its half, which is less than the greatest number wherever the result is one.

    Where `e**r - 1` is negative and the result as small as that, its errors count twice: r is exact with what it lacks,
    and is added before the rest.
    """
    known, bias = coefficients(f), f.format.bias - 1
    first, n, rounded = _reduced(f, f.clamp(x, -known.expm1_is_minus_one, known.exp_range[1]), bias)
    r = f.fma(n, f.number(-known.ln2_low), first)
    lost = f.fma(n, f.number(-known.ln2_low), f.sub(first, r))
    rest, scale = f.fma(f.polynomial(r, known.exp), f.mul(r, r), lost), _power_of_two(f, rounded)
    half = f.fma(scale, rest, f.fma(scale, r, f.sub(scale, f.number(0.5))))
    is_small = f.b.compare_floats("olt", f.magnitude(x), f.number(2.0 ** (-2 - f.format.fraction)))
    return f.b.select(is_small, x, f.add(half, half))


def tail_and_scale(f: Floats, x: SSAValue, bias: int) -> tuple[SSAValue, SSAValue]:
    """`e**r - 1`, and the number whose biased exponent is `n + bias`, that of a normal number."""
    tail, rounded = _exp_tail(f, x, bias)
    return tail, _power_of_two(f, rounded)


def _power_of_two(f: Floats, rounded: SSAValue) -> SSAValue:
    """The number whose biased exponent stands in the lowest bits of `rounded`."""
    return f.from_bits(f.b.make(llvm.ShlOp, (f.bits(rounded), f.integer(f.format.fraction)), f.integers))


def scaled_exp(f: Floats, x: SSAValue) -> SSAValue:
    """`e**x * 2**64` of f32, for x of at most 0: neither the power nor its factor is subnormal."""
    x = f.at_least(x, coefficients(f).exp_range[0])
    if has_registers(f):
        return tables.scaled_exp(f, x)
    tail, scale = tail_and_scale(f, x, 127 + 64)
    return f.fma(tail, scale, scale)


def exp2(f: Floats, x: SSAValue) -> SSAValue:
    """`2**x = 2**n * 2**r` with `n` the nearest integer."""
    known, offset = coefficients(f), f.number(f.format.rounding + scale_exponent(f))
    x = f.clamp(x, *known.exp2_range)
    rounded = f.add(x, offset)
    r = f.sub(x, f.sub(rounded, offset))
    return _scaled(f, f.fma(f.polynomial(r, known.exp2), r, f.number(1.0)), rounded)


def _half_exp(f: Floats, size: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Halves of `e**x` and of `e**-x`, for x that are not negative; that of a NaN is NaN."""
    power = grown(f, *_exp_tail(f, f.at_most(size, coefficients(f).exp_range[1] + 1.0), scale_exponent(f) - 1))
    return power, f.div(f.number(0.25), power)


def cosh(f: Floats, x: SSAValue) -> SSAValue:
    """`e**|x| / 2 + e**-|x| / 2`."""
    return f.add(*_half_exp(f, f.magnitude(x)))


def sinh(f: Floats, x: SSAValue) -> SSAValue:
    """A polynomial below 1, else `e**|x| / 2 - e**-|x| / 2`."""
    size, square = f.magnitude(x), f.mul(x, x)
    near = f.fma(f.mul(f.polynomial(square, coefficients(f).sinh), square), size, size)
    far = f.sub(*_half_exp(f, size))
    is_near = f.b.compare_floats("olt", size, f.number(1.0))
    return f.with_sign(f.b.select(is_near, near, far), x)


def tanh(f: Floats, x: SSAValue) -> SSAValue:
    """`(a + t) / (1 + a * t)` with `t = tanh r` and `a = tanh (n * ln 2 / 2)`.

    What the multiples of `ln 2` lack grows with n, but the share of it that is left falls as `2**-n`. The nearest f32
    is so near that they need no second part.
    """
    if has_registers(f):
        return tables.tanh(f, x)
    known, offset = coefficients(f), f.number(f.format.rounding + f.format.bias)
    size = f.at_most(f.magnitude(x), known.tanh_is_one)
    rounded = f.fma(size, f.number(-2.0 * LOG2_E), offset)
    n = f.sub(rounded, offset)
    high, low = known.half_ln2
    r = f.fma(n, f.number(high), size)
    square = f.mul(r, r)
    cube, more = f.mul(r, square), f.polynomial(square, known.tanh)
    t = f.add(f.fma(cube, more, f.mul(n, f.number(low))), r) if low else f.fma(cube, more, r)
    return f.with_sign(_sum_of_tanh(f, _power_of_two(f, rounded), t), x)


def _sum_of_tanh(f: Floats, power: SSAValue, t: SSAValue) -> SSAValue:
    """`(less + more * t) / (more + less * t)` for `less = 1 - power` and `more = 1 + power`, where power is `2**-n`.

    It is a number of few digits and a smaller quotient, so that the last sum is most of what is rounded. Around 0,
    where n is 0, the first is 0 and the quotient t.
    """
    one = f.number(1.0)
    less, more = f.sub(one, power), f.add(one, power)
    first = f.at_least(f.fma(power, f.number(-1.5), one), 0.0)
    minus = f.sub(f.number(-0.0), first)
    rest = f.fma(f.fma(minus, less, more), t, f.fma(minus, more, less))
    return f.add(first, f.div(rest, f.fma(less, t, more)))


def erf(f: Floats, x: SSAValue) -> SSAValue:
    """`1 - e**-g(x)`, where `g(x) / x` is nearly a polynomial."""
    if has_registers(f):
        return tables.erf(f, x)
    known = coefficients(f)
    size = f.at_most(f.magnitude(x), known.erf_is_one)
    rest = f.mul(f.polynomial(size, known.erfc_exponent), size)
    exponent = f.add(size, f.fma(size, f.number(known.erfc_exponent_first), rest))
    # `e**x - 1` for x whose power is a normal number, as exact as `x` near 0.
    tail, scale = tail_and_scale(f, f.sub(f.number(-0.0), exponent), f.format.bias)
    return f.with_sign(f.fma(scale, tail, f.sub(scale, f.number(1.0))), x)


EXPANSIONS: dict[str, Callable[[Floats, SSAValue], SSAValue]] = {
    "math.cosh": cosh,
    "math.erf": erf,
    "math.exp": exp,
    "math.exp2": exp2,
    "math.expm1": expm1,
    "math.sinh": sinh,
    "math.tanh": tanh,
}
"""Functions of one f32 or f64 that we compute ourselves, by the name of the op."""

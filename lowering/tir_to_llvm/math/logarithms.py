"""Logarithms, `log (1 + x)` and inverse hyperbolic functions of f32 and f64: at most 2 ulp off.

Each is the logarithm of `1 + t`, where t is exact enough near 0. Arguments that are out of the range of the formulas,
or whose squares would be too large, have a branch, which is taken where a lane has one.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math import tables
from lowering.tir_to_llvm.math.expansion import LN2, LOG2_E, LOG10_E, coefficients, tail_and_scale
from lowering.tir_to_llvm.math.floats import (
    BINARY32,
    Floats,
    exponent_of,
    finite_reciprocal,
    has_registers,
    has_registers_of_doubles,
    mantissa_of,
)
from lowering.tir_to_llvm.math.tables import log_of_sum


def split_number(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """`(e, m - 1)` with `x = 2**e * m` and m from sqrt(1/2) to sqrt(2), for positive finite x; e is a float."""
    b, digits = f.b, f.format.fraction
    is_small = b.compare_floats("olt", x, f.number(f.format.least_normal))
    x = b.select(is_small, f.mul(x, f.number(2.0**digits)), x)
    shift = b.select(is_small, f.number(-float(digits)), f.number(0.0))
    exponent, rest, _ = split(f, x)
    return f.add(exponent, shift), rest


def split_mantissa(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """`(e, m - 1)` with `x = 2**e * m` and m from sqrt(1/2) to sqrt(2), or with AVX-512 from 3/4 to 3/2."""
    if not (has_registers(f) or has_registers_of_doubles(f)):
        return split_number(f, x)
    b, mantissa, exponent = f.b, mantissa_of(f, x), exponent_of(f, x)
    is_half = b.compare_floats("olt", mantissa, f.number(1.0))
    return b.select(is_half, f.add(exponent, f.number(1.0)), exponent), f.sub(mantissa, f.number(1.0))


def split(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """`(e, m - 1, bits)` for normal numbers; the bits are e where a float has its exponent."""
    if f.format != BINARY32:
        # The same of f64, without the conversions and arithmetic shifts of i64 that AVX2 lacks.
        b, form = f.b, f.format
        above = f.integers_op(llvm.AddOp, f.bits(x), f.integer(form.one_bits - _ROOT_HALF_BITS_64))
        biased = b.make(llvm.LShrOp, (above, f.integer(form.fraction)), f.integers)
        # As the last digits of 2**52, whose unit is 1.
        digits = b.make(llvm.OrOp, (biased, f.integer((form.bias + form.fraction) << form.fraction)), f.integers)
        e = f.sub(f.from_bits(digits), f.number(2.0**form.fraction + form.bias))
        fraction = b.make(llvm.AndOp, (above, f.integer((1 << form.fraction) - 1)), f.integers)
        m = f.from_bits(f.integers_op(llvm.AddOp, fraction, f.integer(_ROOT_HALF_BITS_64)))
        shifted = f.integers_op(llvm.SubOp, f.integers_op(llvm.SubOp, above, fraction), f.integer(form.one_bits))
        return e, f.sub(m, f.number(1.0)), shifted
    b, bits = f.b, f.bits(x)
    above = f.integers_op(llvm.SubOp, bits, f.integer(_ROOT_HALF_BITS))
    e = b.make(llvm.AShrOp, (above, f.integer(23)), f.integers)
    shifted = b.make(llvm.ShlOp, (e, f.integer(23)), f.integers)
    m = f.from_bits(f.integers_op(llvm.SubOp, bits, shifted))
    return b.make(llvm.SIToFPOp, (e,), f.type), f.sub(m, f.number(1.0)), shifted


_ROOT_HALF_BITS, _ROOT_HALF_BITS_64 = 0x3F3504F3, 0x3FE6A09E667F3BCD


def log_of_one_plus(f: Floats, t: SSAValue) -> tuple[SSAValue, SSAValue]:
    """`log(1 + t)` as t and a smaller rest, for t from -0.293 to 0.415."""
    if f.format != BINARY32:
        # The same by the series in `s = t / (2 + t)`, which needs a third of the terms.
        s = f.div(t, f.add(t, f.number(2.0)))
        square = f.mul(s, s)
        rest = f.mul(f.polynomial(square, coefficients(f).log), square)
        half = f.mul(f.mul(t, t), f.number(0.5))
        return t, f.fma(s, f.add(half, rest), f.sub(f.number(-0.0), half))
    square, log = f.mul(t, t), coefficients(f).log
    fourth = f.mul(square, square)
    # Pairs of coefficients, which need not wait for each other.
    low, middle, high, last = (f.fma(t, f.number(log[i + 1]), f.number(log[i])) for i in range(0, len(log), 2))
    polynomial = f.fma(f.fma(last, square, high), fourth, f.fma(middle, square, low))
    return t, f.fma(square, f.number(-0.5), f.mul(f.mul(square, t), polynomial))


def _at_the_edges(f: Floats, x: SSAValue, result: SSAValue) -> SSAValue:
    """A logarithm's values outside the positive finite numbers: NaN, -inf at 0, inf at inf."""
    b = f.b
    result = b.select(b.compare_floats("oeq", x, f.number(float("inf"))), x, result)
    result = b.select(b.compare_floats("oeq", x, f.number(0.0)), f.number(float("-inf")), result)
    is_number = b.compare_floats("oge", x, f.number(0.0))
    return b.select(is_number, result, f.number(float("nan")))


def log(f: Floats, x: SSAValue) -> SSAValue:
    """`log x = e * ln 2 + log m`."""
    if has_registers(f) or has_registers_of_doubles(f):
        return tables.log(f, x)
    e, t = split_number(f, x)
    high, low = log_of_one_plus(f, t)
    known = coefficients(f)
    low = f.fma(e, f.number(known.ln2_low), low)
    return _at_the_edges(f, x, f.fma(e, f.number(known.ln2_high), f.add(high, low)))


def log2(f: Floats, x: SSAValue) -> SSAValue:
    """`log2 x = e + log m / ln 2`."""
    if has_registers(f):
        return tables.log2(f, x)
    e, t = split_number(f, x)
    high, low = log_of_one_plus(f, t)
    # 1 / ln 2 is 1 + 0.4426...: the first part is exact, which leaves less to round.
    scaled = f.fma(f.add(high, low), f.number(LOG2_E - 1.0), low)
    return _at_the_edges(f, x, f.add(e, f.add(high, scaled)))


def log10(f: Floats, x: SSAValue) -> SSAValue:
    """`log10 x = e * log10 2 + log m / ln 10`."""
    if has_registers(f):
        return tables.log10(f, x)
    e, t = split_number(f, x)
    high, low = log_of_one_plus(f, t)
    # The first part of 1 / ln 10 has few bits, which leaves less to round.
    known = coefficients(f)
    first = known.log10_e_first
    rest = f.fma(f.add(high, low), f.number(LOG10_E - first), f.mul(low, f.number(first)))
    rest = f.fma(e, f.number(known.log10_2_low), rest)
    scaled = f.fma(high, f.number(first), rest)
    return _at_the_edges(f, x, f.fma(e, f.number(known.log10_2_high), scaled))


LOGARITHMS: dict[str, Callable[[Floats, SSAValue], SSAValue]] = {
    "math.log": log,
    "math.log10": log10,
    "math.log2": log2,
}
"""Functions of one f32 or f64 that we compute ourselves, by the name of the op."""


_LEAST = -40.0
"""Below, the quotient rounds to 1."""


def sigmoid(f: Floats, u: SSAValue) -> SSAValue:
    """`1 / (1 + 2**n + 2**n * t)` for `e**u = 2**n * (1 + t)`, where the first sum keeps what it rounds off.

    The sum is computed as `2**-shift + 2**-shift * e**u`, which is normal and finite wherever the quotient is not 0.
    """
    shift = (f.format.bias + 1) // 2
    tail, scale = tail_and_scale(f, f.clamp(u, _LEAST, -coefficients(f).exp_range[0]), f.format.bias - shift)
    one = f.number(2.0**-shift)
    most = f.add(scale, one)
    lost = f.sub(one, f.sub(most, scale))
    divisor = f.add(f.fma(scale, tail, lost), most)
    return f.mul(finite_reciprocal(f, divisor), one) if has_registers(f) else f.div(one, divisor)


LARGE = 2.0**60
"""From here on the functions are `log 2 * |x|`, while squares of smaller numbers are finite."""


def log1p(f: Floats, x: SSAValue) -> SSAValue:
    """`log(1 + x)`, as exact as x near 0; NaN below -1."""
    b, zero = f.b, f.number(0.0)
    inside = _both(f, b.compare_floats("ogt", x, f.number(-1.0)), b.compare_floats("olt", x, f.number(LARGE)))
    result = _unless(f, inside, _log_of_one_plus(f, x), lambda: log(f, f.add(x, f.number(1.0))))
    return b.select(b.compare_floats("oeq", x, zero), x, result)


def asinh(f: Floats, x: SSAValue) -> SSAValue:
    """`log(1 + |x| + x**2 / (1 + sqrt(x**2 + 1)))` with the sign of x."""
    size = f.magnitude(x)
    divisor = f.add(_root(f, f.fma(size, size, f.number(1.0))), f.number(1.0))
    part = f.mul(size, finite_reciprocal(f, divisor)) if has_registers(f) else f.div(size, divisor)
    near = _log_of_one_plus(f, f.fma(size, part, size))
    inside = f.b.compare_floats("olt", size, f.number(LARGE))
    return f.with_sign(_unless(f, inside, near, lambda: _log_of_double(f, size)), x)


def acosh(f: Floats, x: SSAValue) -> SSAValue:
    """`log(1 + z + sqrt(z * (z + 2)))` for `z = x - 1`; NaN below 1."""
    z = f.sub(x, f.number(1.0))
    root = _root(f, f.fma(z, z, f.add(z, z)))
    t = f.add(root, z)
    near = _log_of_one_plus(f, t, f.add(f.sub(root, t), z), keeps_rest=True)
    is_number = f.b.compare_floats("oge", x, f.number(1.0))
    inside = _both(f, is_number, f.b.compare_floats("olt", x, f.number(LARGE)))
    return _unless(f, inside, near, lambda: f.b.select(is_number, _log_of_double(f, x), f.number(float("nan"))))


def atanh(f: Floats, x: SSAValue) -> SSAValue:
    """Half of `log(1 + 2 * |x| / (1 - |x|))` with the sign of x; infinite at 1, NaN beyond.

    What the difference and the quotient lack is added to the quotient.
    """
    b, size, one = f.b, f.magnitude(x), f.number(1.0)
    divisor, double = f.sub(one, size), f.add(size, size)
    lost = f.sub(f.sub(one, divisor), size)
    if has_registers(f):
        inverse = finite_reciprocal(f, divisor)
        t = f.mul(double, inverse)
        minus = f.sub(f.number(-0.0), t)
        rest = f.fma(minus, lost, f.fused(minus, divisor, double))
    else:
        inverse, t = f.div(one, divisor), f.div(double, divisor)
        rest = f.mul(f.sub(f.number(-0.0), t), lost)
    logarithm = _log_of_one_plus(f, t, f.mul(rest, inverse), keeps_rest=not has_registers(f))
    near = f.mul(logarithm, f.number(0.5))
    infinite, nan = f.number(float("inf")), f.number(float("nan"))
    inside = b.compare_floats("olt", size, one)
    far = _unless(f, inside, near, lambda: b.select(b.compare_floats("oeq", size, one), infinite, nan))
    return f.with_sign(far, x)


def _log_of_one_plus(f: Floats, t: SSAValue, rest: SSAValue | None = None, *, keeps_rest: bool = False) -> SSAValue:
    """`log(1 + t + rest) = e * ln 2 + log m` for t from above -1 to `2**(bias - 1)`, rest below its last digit.

    What is lost in `1 + t` is known exactly and belongs to `m - 1`, and so does the rest. What is lost of that is added
    to the smaller part of the logarithm if it is to be kept.
    """
    sum_ = f.add(t, f.number(1.0))
    lost = f.sub(t, f.sub(sum_, f.number(1.0)))
    lost = lost if rest is None else f.add(lost, rest)
    if has_registers(f):
        return log_of_sum(f, sum_, lost, keeps_rest=keeps_rest)
    exponent, digits, shifted = split(f, sum_)
    scale = f.from_bits(f.integers_op(llvm.SubOp, f.integer(f.format.one_bits), shifted))
    whole = f.fma(lost, scale, digits)
    high, low = log_of_one_plus(f, whole)
    if keeps_rest:
        low = f.add(low, f.fma(lost, scale, f.sub(digits, whole)))
    known = coefficients(f)
    low = f.fma(exponent, f.number(known.ln2_low), low)
    return f.fma(exponent, f.number(known.ln2_high), f.add(high, low))


def _log_of_double(f: Floats, x: SSAValue) -> SSAValue:
    return f.add(log(f, x), f.number(LN2))


def _root(f: Floats, x: SSAValue) -> SSAValue:
    return f.b.overloaded("llvm.sqrt", (x,), f.type)


def _both(f: Floats, left: SSAValue, right: SSAValue) -> SSAValue:
    return f.b.make(llvm.AndOp, (left, right), left.type)


def _unless(f: Floats, inside: SSAValue, near: SSAValue, far: Callable[[], SSAValue]) -> SSAValue:
    """`near` for the lanes that are inside, `far` for others, which is computed if there are any."""
    b = f.b
    outside = b.make(llvm.XOrOp, (inside, b.integer(1, inside.type)), inside.type)
    special, plain, after = b.new_block(), b.new_block(), b.new_block([f.type])
    b.branch_if(f.b.any_lane(outside), special, plain)
    b.start(plain)
    b.branch(after, near)
    b.start(special)
    b.branch(after, b.select(inside, near, far()))
    b.start(after)
    return after.args[0]


HYPERBOLIC_INVERSES: dict[str, Callable[[Floats, SSAValue], SSAValue]] = {
    "math.acosh": acosh,
    "math.asinh": asinh,
    "math.atanh": atanh,
    "math.log1p": log1p,
}
"""Functions of one f32 or f64 that we compute ourselves, by the name of the op."""

"""Logarithms of f32 and f64: at most 2 ulp off; with AVX-512 those of f32, and `log` of f64, are by `log_tables.py`."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math import log_tables
from lowering.tir_to_llvm.math.avx512 import exponent_of, has_registers, has_registers_of_doubles, mantissa_of
from lowering.tir_to_llvm.math.coefficients import LOG2_E, LOG10_E, coefficients
from lowering.tir_to_llvm.math.floats import BINARY32, Floats


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
        return _split_double(f, x)
    b, bits = f.b, f.bits(x)
    above = f.integers_op(llvm.SubOp, bits, f.integer(_ROOT_HALF_BITS))
    e = b.make(llvm.AShrOp, (above, f.integer(23)), f.integers)
    shifted = b.make(llvm.ShlOp, (e, f.integer(23)), f.integers)
    m = f.from_bits(f.integers_op(llvm.SubOp, bits, shifted))
    return b.make(llvm.SIToFPOp, (e,), f.type), f.sub(m, f.number(1.0)), shifted


_ROOT_HALF_BITS, _ROOT_HALF_BITS_64 = 0x3F3504F3, 0x3FE6A09E667F3BCD


def _split_double(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """The same of f64, without the conversions and arithmetic shifts of i64 that AVX2 lacks."""
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


def log_of_one_plus(f: Floats, t: SSAValue) -> tuple[SSAValue, SSAValue]:
    """`log(1 + t)` as t and a smaller rest, for t from -0.293 to 0.415."""
    if f.format != BINARY32:
        return _log_of_one_plus_double(f, t)
    square, log = f.mul(t, t), coefficients(f).log
    fourth = f.mul(square, square)
    # Pairs of coefficients, which need not wait for each other.
    low, middle, high, last = (f.fma(t, f.number(log[i + 1]), f.number(log[i])) for i in range(0, len(log), 2))
    polynomial = f.fma(f.fma(last, square, high), fourth, f.fma(middle, square, low))
    return t, f.fma(square, f.number(-0.5), f.mul(f.mul(square, t), polynomial))


def _log_of_one_plus_double(f: Floats, t: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The same by the series in `s = t / (2 + t)`, which needs a third of the terms.

    `log(1 + t) = log((1 + s) / (1 - s)) = t - t**2 / 2 + s * (t**2 / 2 + R)`, where `R = s**2 * p(s**2)`.
    """
    s = f.div(t, f.add(t, f.number(2.0)))
    square = f.mul(s, s)
    rest = f.mul(f.polynomial(square, coefficients(f).log), square)
    half = f.mul(f.mul(t, t), f.number(0.5))
    return t, f.fma(s, f.add(half, rest), f.sub(f.number(-0.0), half))


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
        return log_tables.log(f, x)
    e, t = split_number(f, x)
    high, low = log_of_one_plus(f, t)
    known = coefficients(f)
    low = f.fma(e, f.number(known.ln2_low), low)
    return _at_the_edges(f, x, f.fma(e, f.number(known.ln2_high), f.add(high, low)))


def log2(f: Floats, x: SSAValue) -> SSAValue:
    """`log2 x = e + log m / ln 2`."""
    if has_registers(f):
        return log_tables.log2(f, x)
    e, t = split_number(f, x)
    high, low = log_of_one_plus(f, t)
    # 1 / ln 2 is 1 + 0.4426...: the first part is exact, which leaves less to round.
    scaled = f.fma(f.add(high, low), f.number(LOG2_E - 1.0), low)
    return _at_the_edges(f, x, f.add(e, f.add(high, scaled)))


def log10(f: Floats, x: SSAValue) -> SSAValue:
    """`log10 x = e * log10 2 + log m / ln 10`."""
    if has_registers(f):
        return log_tables.log10(f, x)
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

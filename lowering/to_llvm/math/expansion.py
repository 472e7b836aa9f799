"""Elementary functions of f32 as straight-line code that vectorises: at most 2 units in the last place off.

Each works on scalars and vectors alike, for all inputs, infinities, NaN and subnormal numbers included. The
polynomials are minimax fits of ours: the error of the fit is below 5e-9 relative, so that rounding dominates.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.to_llvm.math import log_tables, tables
from lowering.to_llvm.math.avx512 import has_registers, scaled
from lowering.to_llvm.math.floats import Floats
from lowering.to_llvm.math.log_tables import LOG10_2_HIGH, LOG10_2_LOW
from lowering.to_llvm.math.tables import LN2_HIGH, LN2_LOW, LOG2_E, ROUNDING

LOG10_E = 0.4342944819032518
LN2 = 0.6931471805599453

EXP = (0.5, 0.16666512191295624, 0.0416661873459816, 0.008369597606360912, 0.0013951703440397978)
EXP2 = (
    0.6931471824645996,
    0.24022650718688965,
    0.05550321564078331,
    0.009618096053600311,
    0.0013402607291936874,
    0.000154462453792803,
)
LOG = (
    0.3333333134651184,
    -0.250008225440979,
    0.20001226663589478,
    -0.1662331521511078,
    0.14201723039150238,
    -0.13160590827465057,
    0.12762068212032318,
    -0.07633998990058899,
)
TANH = (-0.33333322405815125, 0.1333114206790924, -0.05271520838141441)
SINH = (0.1666666716337204, 0.00833331048488617, 0.00019842895562760532, 2.7822131869470468e-06)
ERFC_EXPONENT_FIRST = 0.128379225730896  # and 1, apart since the product is rounded then
ERFC_EXPONENT = (
    -5.411965275925468e-08,  # what the first lacks
    0.6366193890571594,
    0.10277783125638962,
    -0.019153062254190445,
    -0.000160398572916165,
    0.0016670302720740438,
    -0.0006328385206870735,
    0.0001176417717942968,
    -9.256325029127765e-06,
)


_BIAS = 254
"""Twice that of an f32: added to an exponent from -252 to 256, so that the halves of the sum are biased themselves."""


def _scaled(f: Floats, value: SSAValue, rounded: SSAValue) -> SSAValue:
    """`value * 2**n`, where `n + _BIAS` stands in the lowest bits of `rounded`."""
    if has_registers(f):
        return scaled(f, value, f.sub(rounded, f.number(ROUNDING + _BIAS)))
    first, second = _powers_of_two(f, rounded)
    return f.mul(f.mul(value, first), second)


def _powers_of_two(f: Floats, rounded: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Two factors of `2**n`, where `n + _BIAS` stands in the lowest bits of `rounded`: n may be less than -126.

    The upper bits of `rounded` are lost when the lowest ones go to where a float has its exponent.
    """
    bits = f.bits(rounded)
    halved = f.b.make(llvm.ShlOp, (bits, f.integer(22)), f.integers)
    first = f.b.make(llvm.AndOp, (halved, f.integer(_EXPONENT)), f.integers)
    whole = f.b.make(llvm.ShlOp, (bits, f.integer(23)), f.integers)
    return f.from_bits(first), f.from_bits(f.integers_op(llvm.SubOp, whole, first))


_EXPONENT = 0x7F800000


def exp(f: Floats, x: SSAValue) -> SSAValue:
    """`e**x = 2**n * e**r` with `n` the nearest integer to `x / ln 2`."""
    x = f.clamp(x, -104.0, 89.0)
    return tables.exp(f, x) if has_registers(f) else _grown(f, *_exp_tail(f, x, _BIAS))


def _grown(f: Floats, tail: SSAValue, rounded: SSAValue) -> SSAValue:
    """`(1 + tail) * 2**n`, where `n + _BIAS` stands in the lowest bits of `rounded`."""
    if has_registers(f):
        return _scaled(f, f.add(tail, f.number(1.0)), rounded)
    first, second = _powers_of_two(f, rounded)
    return f.mul(f.fma(tail, first, first), second)


def _exp_tail(f: Floats, x: SSAValue, bias: int) -> tuple[SSAValue, SSAValue]:
    """`e**r - 1`, and a number with `n + bias` in its lowest bits."""
    rounded = f.fma(x, f.number(LOG2_E), f.number(ROUNDING + bias))
    n = f.sub(rounded, f.number(ROUNDING + bias))
    r = f.fma(n, f.number(-LN2_LOW), f.fma(n, f.number(-LN2_HIGH), x))
    return f.fma(f.polynomial(r, EXP), f.mul(r, r), r), rounded


def _expm1(f: Floats, x: SSAValue) -> SSAValue:
    """`e**x - 1` for x from -87 to 88, as exact as `x` near 0."""
    tail, scale = tail_and_scale(f, x, 127)
    return f.fma(scale, tail, f.sub(scale, f.number(1.0)))


def expm1(f: Floats, x: SSAValue) -> SSAValue:
    """`e**x - 1`, by its half, which is less than the greatest number wherever the result is one."""
    tail, scale = tail_and_scale(f, f.clamp(x, -18.0, 89.0), 126)
    half = f.fma(scale, tail, f.sub(scale, f.number(0.5)))
    is_small = f.b.compare_floats("olt", f.magnitude(x), f.number(2.0**-25))
    return f.b.select(is_small, x, f.add(half, half))


def tail_and_scale(f: Floats, x: SSAValue, bias: int) -> tuple[SSAValue, SSAValue]:
    """`e**r - 1`, and the number whose biased exponent is `n + bias`, from 1 to 254."""
    tail, rounded = _exp_tail(f, x, bias)
    return tail, f.from_bits(f.b.make(llvm.ShlOp, (f.bits(rounded), f.integer(23)), f.integers))


def scaled_exp(f: Floats, x: SSAValue) -> SSAValue:
    """`e**x * 2**64`, for x of at most 0: neither the power nor its factor is subnormal."""
    tail, scale = tail_and_scale(f, f.at_least(x, -104.0), 127 + 64)
    return f.fma(tail, scale, scale)


def exp2(f: Floats, x: SSAValue) -> SSAValue:
    """`2**x = 2**n * 2**r` with `n` the nearest integer."""
    x = f.clamp(x, -151.0, 129.0)
    rounded = f.add(x, f.number(ROUNDING + _BIAS))
    r = f.sub(x, f.sub(rounded, f.number(ROUNDING + _BIAS)))
    return _scaled(f, f.fma(f.polynomial(r, EXP2), r, f.number(1.0)), rounded)


def _split(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """`(e, m - 1)` with `x = 2**e * m` and m from sqrt(1/2) to sqrt(2), for positive finite x; e is a float."""
    b = f.b
    is_small = b.compare_floats("olt", x, f.number(2.0**-126))
    x = b.select(is_small, f.mul(x, f.number(2.0**23)), x)
    shift = b.select(is_small, f.number(-23.0), f.number(0.0))
    exponent, rest, _ = split(f, x)
    return f.add(exponent, shift), rest


def split(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """`(e, m - 1, bits)` for normal numbers; the bits are e where a float has its exponent."""
    b, bits = f.b, f.bits(x)
    above = f.integers_op(llvm.SubOp, bits, f.integer(_ROOT_HALF_BITS))
    e = b.make(llvm.AShrOp, (above, f.integer(23)), f.integers)
    shifted = b.make(llvm.ShlOp, (e, f.integer(23)), f.integers)
    m = f.from_bits(f.integers_op(llvm.SubOp, bits, shifted))
    return b.make(llvm.SIToFPOp, (e,), f.type), f.sub(m, f.number(1.0)), shifted


_ROOT_HALF_BITS = 0x3F3504F3


def log_of_one_plus(f: Floats, t: SSAValue) -> tuple[SSAValue, SSAValue]:
    """`log(1 + t)` as t and a smaller rest, for t from -0.293 to 0.415."""
    square = f.mul(t, t)
    fourth = f.mul(square, square)
    # Pairs of coefficients, which need not wait for each other.
    low, middle, high, last = (f.fma(t, f.number(LOG[i + 1]), f.number(LOG[i])) for i in range(0, len(LOG), 2))
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
    if has_registers(f):
        return log_tables.log(f, x)
    e, t = _split(f, x)
    high, low = log_of_one_plus(f, t)
    low = f.fma(e, f.number(LN2_LOW), low)
    return _at_the_edges(f, x, f.fma(e, f.number(LN2_HIGH), f.add(high, low)))


def log2(f: Floats, x: SSAValue) -> SSAValue:
    """`log2 x = e + log m / ln 2`."""
    if has_registers(f):
        return log_tables.log2(f, x)
    e, t = _split(f, x)
    high, low = log_of_one_plus(f, t)
    # 1 / ln 2 is 1 + 0.4426...: the first part is exact, which leaves less to round.
    scaled = f.fma(f.add(high, low), f.number(LOG2_E - 1.0), low)
    return _at_the_edges(f, x, f.add(e, f.add(high, scaled)))


def log10(f: Floats, x: SSAValue) -> SSAValue:
    """`log10 x = e * log10 2 + log m / ln 10`."""
    if has_registers(f):
        return log_tables.log10(f, x)
    e, t = _split(f, x)
    high, low = log_of_one_plus(f, t)
    # 1 / ln 10 is 0.4375 - 0.0032...: the first part has few bits, which leaves less to round.
    rest = f.fma(f.add(high, low), f.number(LOG10_E - 0.4375), f.mul(low, f.number(0.4375)))
    rest = f.fma(e, f.number(LOG10_2_LOW), rest)
    scaled = f.fma(high, f.number(0.4375), rest)
    return _at_the_edges(f, x, f.fma(e, f.number(LOG10_2_HIGH), scaled))


def _half_exp(f: Floats, size: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Halves of `e**x` and of `e**-x`, for x that are not negative; that of a NaN is NaN."""
    grown = _grown(f, *_exp_tail(f, f.at_most(size, 90.0), _BIAS - 1))
    return grown, f.div(f.number(0.25), grown)


def cosh(f: Floats, x: SSAValue) -> SSAValue:
    """`e**|x| / 2 + e**-|x| / 2`."""
    return f.add(*_half_exp(f, f.magnitude(x)))


def sinh(f: Floats, x: SSAValue) -> SSAValue:
    """A polynomial below 1, else `e**|x| / 2 - e**-|x| / 2`."""
    size, square = f.magnitude(x), f.mul(x, x)
    near = f.fma(f.mul(f.polynomial(square, SINH), square), size, size)
    far = f.sub(*_half_exp(f, size))
    is_near = f.b.compare_floats("olt", size, f.number(1.0))
    return f.with_sign(f.b.select(is_near, near, far), x)


def tanh(f: Floats, x: SSAValue) -> SSAValue:
    """`(a + t) / (1 + a * t)` with `t = tanh r` and `a = tanh (n * ln 2 / 2)`.

    The nearest f32 to `ln 2` is so near that its multiples need no second part: what they lack grows with n, but the
    share of it that is left falls as `2**-n`.
    """
    if has_registers(f):
        return tables.tanh(f, x)
    size = f.at_most(f.magnitude(x), 10.0)
    rounded = f.fma(size, f.number(-2.0 * LOG2_E), f.number(ROUNDING + 127))
    r = f.fma(f.sub(rounded, f.number(ROUNDING + 127)), f.number(LN2 / 2), size)
    square = f.mul(r, r)
    t = f.fma(f.mul(r, square), f.polynomial(square, TANH), r)
    power = f.from_bits(f.b.make(llvm.ShlOp, (f.bits(rounded), f.integer(23)), f.integers))
    return f.with_sign(_sum_of_tanh(f, power, t), x)


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
    size = f.at_most(f.magnitude(x), 4.0)
    rest = f.mul(f.polynomial(size, ERFC_EXPONENT), size)
    exponent = f.add(size, f.fma(size, f.number(ERFC_EXPONENT_FIRST), rest))
    return f.with_sign(_expm1(f, f.sub(f.number(-0.0), exponent)), x)


EXPANSIONS: dict[str, Callable[[Floats, SSAValue], SSAValue]] = {
    "math.cosh": cosh,
    "math.erf": erf,
    "math.exp": exp,
    "math.exp2": exp2,
    "math.expm1": expm1,
    "math.log": log,
    "math.log10": log10,
    "math.log2": log2,
    "math.sinh": sinh,
    "math.tanh": tanh,
}
"""Functions of one f32 that we compute ourselves, by the name of the op."""

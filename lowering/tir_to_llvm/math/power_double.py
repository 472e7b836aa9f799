"""Powers of f64 to f64, for processors with fused multiply-add: at most 2 ulp off.

`x**y = e**(y * log x)` needs some 65 digits of the logarithm: it is the sum of two f64 numbers. With
`s = (m - 1) / (m + 1)`, `log m = 2 * s + s**3 * (2/3 + s**2 * p(s**2))`; all but p is computed in double-double
arithmetic, whose products are exact by fused multiply-add (Dekker, 1971).
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math.coefficients import LOG2_E, coefficients
from lowering.tir_to_llvm.math.expansion import grown, scale_exponent
from lowering.tir_to_llvm.math.floats import Floats
from lowering.tir_to_llvm.math.logarithms import split_mantissa

LN2_HIGH, LN2_LOW = 0.6931471805598903, 5.497923018708371e-14
"""The first has 42 bits: its multiples by exponents are exact."""

TWO_THIRDS, TWO_THIRDS_LOW = 0.6666666666666666, 3.700743415417188e-17
LOG = (
    *(0.39999999999999725, 0.2857142857157751, 0.22222222191190769, 0.18181821532656953),
    *(0.15384406258126412, 0.13341156961515024, 0.11592154149270917, 0.12572777252849812),
)
"""p for s up to 1/5, a minimax fit of ours (Remez' exchange algorithm with 60 digits): below 2e-21 of the logarithm."""

_GREATEST = 750.0
"""`e**750` is more than any f64, `e**-750` less."""


def power_of_doubles(f: Floats, x: SSAValue, y: SSAValue) -> SSAValue:
    """`x**y` for positive finite x and finite y."""
    high, low = _log(f, x)
    product = f.mul(y, high)
    rest = f.fused(y, low, _lost_by_product(f, y, high, product))
    bounded = f.clamp(product, -_GREATEST, _GREATEST)
    is_inside = f.b.compare_floats("oeq", bounded, product)
    return _exp(f, bounded, f.b.select(is_inside, rest, f.number(0.0)))


def _exp(f: Floats, x: SSAValue, rest: SSAValue) -> SSAValue:
    """`e**(x + rest)`, where the rest is small."""
    known, bias = coefficients(f), scale_exponent(f)
    offset = f.number(f.format.rounding + bias)
    rounded = f.fused(x, f.number(LOG2_E), offset)
    n = f.sub(rounded, offset)
    r = f.fused(n, f.number(-known.ln2_low), f.fused(n, f.number(-known.ln2_high), x))
    r = f.add(r, rest)
    return grown(f, f.fma(f.polynomial(r, known.exp), f.mul(r, r), r), rounded)


def _log(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The natural logarithm as a number and what it lacks."""
    exponent, t = split_mantissa(f, x)
    s, s_low = _quotient(f, t)
    v, v_low = _cubic(f, s, s_low)
    # The terms are added from the largest to the smallest, so that what each sum loses is known (Dekker, 1971).
    high = f.mul(exponent, f.number(LN2_HIGH))
    low = f.fused(exponent, f.number(LN2_LOW), f.add(f.add(s_low, s_low), v_low))
    for term in (f.add(s, s), v):
        total = f.add(high, term)
        low = f.add(low, f.sub(term, f.sub(total, high)))
        high = total
    return high, low


def _quotient(f: Floats, t: SSAValue) -> tuple[SSAValue, SSAValue]:
    """`t / (2 + t)` in two parts."""
    two = f.number(2.0)
    divisor = f.add(t, two)
    divisor_low = f.sub(t, f.sub(divisor, two))
    inverse = f.div(f.number(1.0), divisor)
    s = f.mul(t, inverse)
    minus = f.sub(f.number(-0.0), s)
    return s, f.mul(f.fused(minus, divisor_low, f.fused(minus, divisor, t)), inverse)


def _cubic(f: Floats, s: SSAValue, s_low: SSAValue) -> tuple[SSAValue, SSAValue]:
    """`s**3 * (2/3 + s**2 * p(s**2))` in two parts."""
    square = f.mul(s, s)
    square_low = f.fused(f.add(s, s), s_low, _lost_by_product(f, s, s, square))
    first, more = f.number(TWO_THIRDS), f.mul(f.polynomial(square, LOG), square)
    q = f.add(first, more)
    q_low = f.add(f.sub(more, f.sub(q, first)), f.number(TWO_THIRDS_LOW))
    u, u_low = _product(f, s, s_low, square, square_low)
    return _product(f, u, u_low, q, q_low)


def _product(f: Floats, x: SSAValue, x_low: SSAValue, y: SSAValue, y_low: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The product of two sums of two numbers."""
    product = f.mul(x, y)
    return product, f.fused(x, y_low, f.fused(x_low, y, _lost_by_product(f, x, y, product)))


def _lost_by_product(f: Floats, x: SSAValue, y: SSAValue, product: SSAValue) -> SSAValue:
    return f.fused(x, y, f.sub(f.number(-0.0), product))

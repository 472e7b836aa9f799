"""Powers of f32 by tables in registers, without f64: at most 2 units in the last place off.

`x**y = e**(y * log x)` needs some 33 digits of the logarithm, which two f32 numbers hold. With c the middle of an
interval, `log (2**e * m) = e * ln 2 + log c + log (1 + r)` and `r = (m - c) / c`; the difference is exact. The middles
are chosen so that `1 / c` is an f32 to 2e-11, and `log c` a multiple of 2**-16 to 8e-7. Intervals are those of a
mantissa's first five digits, rounded to nearest; the last fifteen are taken from halves of mantissas, so that the
interval around 1, where a logarithm is small, has both sides.
"""

from __future__ import annotations

import math

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.to_llvm.floats import Floats
from lowering.to_llvm.math_tables import EXP, EXP_ROUNDING, LN2_HIGH, LN2_LOW, LOG2_E
from lowering.to_llvm.registers import bounded, chosen, exponent_of, mantissa_of, scaled

# fmt: off
CENTRES = (
    1.0, 1.029227614402771, 1.0599884986877441, 1.0921521186828613, 1.120015263557434, 1.1564148664474487,
    1.1867687702178955, 1.2200392484664917, 1.2500011920928955, 1.2791954278945923, 1.3075138330459595,
    1.339440107345581, 1.3722712993621826, 1.4026291370391846, 1.4342050552368164, 1.469538927078247,
    1.4930453300476074, 0.7654296159744263, 0.7782065272331238, 0.7999992370605469, 0.8142356276512146,
    0.8255197405815125, 0.840774655342102, 0.8562069535255432, 0.8767390847206116, 0.8928449749946594,
    0.9074590802192688, 0.9193757772445679, 0.9393411874771118, 0.956305980682373, 0.9716023802757263,
    0.9851726293563843,
)
# fmt: on
_RECIPROCALS = tuple(1 / centre for centre in CENTRES)
_LOGARITHMS = tuple(math.log(centre) for centre in CENTRES)
_HIGH = tuple(round(number * 2**16) / 2**16 for number in _LOGARITHMS)
_LOW = tuple(number - high for number, high in zip(_LOGARITHMS, _HIGH, strict=True))
_END = 1.515625
"""From here on a mantissa is halved."""
_CUBIC = (0.3333333432674408, -0.25003674626350403, 0.20005039870738983)
_EXP_SQUARE = (0.5000101923942566, 0.16666971147060394)
_GREATEST = 120.0
"""`e**120` is more than any f32, `e**-120` less."""


def power_by_table(f: Floats, x: SSAValue, y: SSAValue) -> SSAValue:
    """`x**y` for x that are not negative, vectors that `has_registers` says; any number if one of them is NaN."""
    high, low = _log(f, x)
    product = f.mul(y, high)
    rest = f.fused(y, high, f.sub(f.number(-0.0), product))
    rest = bounded(f, f.fused(y, low, rest), 1.0)
    return _exp(f, bounded(f, product, _GREATEST), rest)


def _log(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The natural logarithm of x as a number and what it lacks."""
    b, minus_half = f.b, f.number(-0.5)
    mantissa, exponent = mantissa_of(f, x), exponent_of(f, x)
    is_high = b.compare_floats("oge", mantissa, f.number(_END))
    mantissa = b.select(is_high, f.mul(mantissa, f.number(0.5)), mantissa)
    exponent = b.select(is_high, f.add(exponent, f.number(1.0)), exponent)
    half_up = f.integers_op(llvm.AddOp, f.bits(mantissa), f.integer(1 << 17))
    places = b.make(llvm.LShrOp, (half_up, f.integer(18)), f.integers)
    distance, inverse = f.sub(mantissa, chosen(f, CENTRES, places)), chosen(f, _RECIPROCALS, places)
    r = f.mul(distance, inverse)
    low = f.fused(distance, inverse, f.sub(f.number(-0.0), r))
    square = f.mul(r, r)
    # log (1 + r) is r - r**2 / 2, whose parts are exact, and a cubic rest.
    near = f.fused(minus_half, square, r)
    lost = f.fused(minus_half, square, f.sub(r, near))
    low = f.fused(minus_half, f.fused(r, r, f.sub(f.number(-0.0), square)), low)
    low = f.add(f.fused(f.mul(r, square), f.polynomial(r, _CUBIC), low), lost)
    whole = f.fused(exponent, f.number(LN2_HIGH), chosen(f, _HIGH, places))
    high = f.add(whole, near)
    rest = f.fused(exponent, f.number(LN2_LOW), chosen(f, _LOW, places))
    return high, f.add(f.add(f.sub(near, f.sub(high, whole)), rest), low)


def _exp(f: Floats, x: SSAValue, rest: SSAValue) -> SSAValue:
    """`e**(x + rest)`, as `math_tables.exp` has it."""
    rounded = f.fused(x, f.number(LOG2_E), f.number(EXP_ROUNDING))
    n = f.sub(rounded, f.number(EXP_ROUNDING))
    r = f.fused(n, f.number(-LN2_LOW), f.fused(n, f.number(-LN2_HIGH), x))
    r = f.add(r, rest)
    grown = f.fma(f.polynomial(r, _EXP_SQUARE), f.mul(r, r), r)
    root = chosen(f, EXP, f.bits(rounded))
    return scaled(f, f.fma(root, grown, root), n)

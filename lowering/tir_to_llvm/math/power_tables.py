"""Powers of f32 by tables in registers, without f64: at most 2 units in the last place off.

`x**y = e**(y * log x)` needs some 33 digits of the logarithm, which two f32 numbers hold. With c in the middle of an
interval, `log (2**e * m) = e * ln 2 + log c + log (1 + r)` and `r = (m - c) / c`; the difference is exact. The middles
are chosen so that `1 / c` is an f32 to 2e-11, and `log c` a multiple of 2**-16 to 8e-7. Mantissas are from 3/4 to 3/2,
and intervals those of their first five digits; the two beside 1, where a logarithm is small, have c = 1.
"""

from __future__ import annotations

import math

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math.avx512 import bounded, chosen, exponent_of, mantissa_of, scaled
from lowering.tir_to_llvm.math.floats import Floats
from lowering.tir_to_llvm.math.tables import EXP, EXP_ROUNDING, LN2_HIGH, LN2_LOW, LOG2_E

# fmt: off
CENTRES = (
    1.0, 1.0418366193771362, 1.0783250331878662, 1.1111128330230713, 1.1370630264282227,
    1.167941927909851, 1.1994760036468506, 1.238306999206543, 1.2667443752288818, 1.2987644672393799,
    1.3268280029296875, 1.364962100982666, 1.3862245082855225, 1.424652099609375, 1.4514877796173096,
    1.4878822565078735, 0.75445955991745, 0.7769256830215454, 0.789425253868103, 0.8075541853904724,
    0.8195457458496094, 0.839224100112915, 0.8511663675308228, 0.8647415637969971, 0.8824162483215332,
    0.8999986052513123, 0.9156233668327332, 0.9273641705513, 0.9434064626693726, 0.9598433971405029,
    0.9736804962158203, 1.0,
)
# fmt: on
_RECIPROCALS = tuple(1 / centre for centre in CENTRES)
_LOGARITHMS = tuple(math.log(centre) for centre in CENTRES)
_HIGH = tuple(round(number * 2**16) / 2**16 for number in _LOGARITHMS)
_LOW = tuple(number - high for number, high in zip(_LOGARITHMS, _HIGH, strict=True))
_CUBIC = (0.3333333432674408, -0.2500015199184418, 0.19997373223304749, -0.16028524935245514)
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
    is_half = b.compare_floats("olt", mantissa, f.number(1.0))
    exponent = b.select(is_half, f.add(exponent, f.number(1.0)), exponent)
    indices = b.make(llvm.LShrOp, (f.bits(mantissa), f.integer(18)), f.integers)
    distance, inverse = f.sub(mantissa, chosen(f, CENTRES, indices)), chosen(f, _RECIPROCALS, indices)
    r = f.mul(distance, inverse)
    low = f.fused(distance, inverse, f.sub(f.number(-0.0), r))
    square = f.mul(r, r)
    # log (1 + r) is r - r**2 / 2, whose parts are exact, and a cubic rest.
    near = f.fused(minus_half, square, r)
    lost = f.fused(minus_half, square, f.sub(r, near))
    low = f.fused(minus_half, f.fused(r, r, f.sub(f.number(-0.0), square)), low)
    low = f.add(f.fused(f.mul(r, square), f.polynomial(r, _CUBIC), low), lost)
    whole = f.fused(exponent, f.number(LN2_HIGH), chosen(f, _HIGH, indices))
    high = f.add(whole, near)
    rest = f.fused(exponent, f.number(LN2_LOW), chosen(f, _LOW, indices))
    return high, f.add(f.add(f.sub(near, f.sub(high, whole)), rest), low)


def _exp(f: Floats, x: SSAValue, rest: SSAValue) -> SSAValue:
    """`e**(x + rest)`, as `tables.exp` has it."""
    rounded = f.fused(f.add(x, rest), f.number(LOG2_E), f.number(EXP_ROUNDING))
    n = f.sub(rounded, f.number(EXP_ROUNDING))
    r = f.fused(n, f.number(-LN2_LOW), f.fused(n, f.number(-LN2_HIGH), x))
    r = f.add(r, rest)
    grown = f.fma(f.polynomial(r, _EXP_SQUARE), f.mul(r, r), r)
    root = chosen(f, EXP, f.bits(rounded))
    return scaled(f, f.fma(root, grown, root), n)

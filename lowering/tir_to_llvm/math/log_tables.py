"""Logarithms of f32, and the natural one of f64, by tables in registers: at most 1.6 ulp off (`avx512.has_registers`).

With m from 3/4 to 3/2 and `r = m / c - 1`, `log (2**e * m) = e * log 2 + log c + r * q(r)`, where the first four digits
of m choose c, and q is a polynomial. The two intervals beside 1, where a logarithm is small, have c = 1. The
reciprocals of c are f32 numbers whose three logarithms are such numbers too, to a fiftieth of a unit; those of f64 are
f64 numbers whose natural logarithms are, to a thousandth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math.avx512 import chosen, exponent_of, mantissa_of, scaled
from lowering.tir_to_llvm.math.floats import BINARY32, Floats

# fmt: off
_RECIPROCALS = (
    1.0, 0.9167045950889587, 0.8633744716644287, 0.8230487108230591,
    0.7771744132041931, 0.7471097707748413, 0.7132992744445801, 0.6804729700088501,
    1.3050925731658936, 1.2481718063354492, 1.2035245895385742, 1.1623603105545044,
    1.1264903545379639, 1.07907235622406, 1.0495269298553467, 1.0,
)
# fmt: on
_NATURAL = (1.0, -0.5, 0.33334434032440186, -0.25007498264312744, 0.18868274986743927)
_BINARY = (1.4426950216293335, -0.7213475108146667, 0.48095962405204773, -0.3609920144081116, 0.263662189245224)
_DECIMAL = (0.4342944920063019, -0.21714724600315094, 0.14474835991859436, -0.10853388905525208, 0.08615352213382721)
"""Minimax fits of `log (1 + r) / r` for r from -1/32 to 1/16: below 3e-9, 1.4e-8 and 2.4e-8 relative."""
_TAIL = (-0.5, 0.3333355188369751, -0.24999327957630157, 0.19788692891597748, -0.13525108993053436)
"""Of the natural logarithm for r from -1/32 to 1/8, without the first: below 1.3e-9 relative."""
_RECIPROCALS_64 = (
    *(1.0, 0.9143715441396356, 0.8648089590468255, 0.8206520785545481, 0.7805520329424057),
    *(0.7442439725930361, 0.7111989833142731, 0.6807427182137799, 1.3063574058692107, 1.2547063736441488),
    *(1.207817567551654, 1.163815522678134, 1.1226991213702329, 1.0849137789153804, 1.0493571668215729),
    1.0,
)
_NATURAL_64 = (
    *(1.0, -0.49999999999999994, 0.3333333333333332, -0.2500000000004853, 0.2000000000029989),
    *(-0.16666666544426625, 0.14285712881250925, -0.12500122883325976, 0.11113411019048865),
    *(-0.09963739771746226, 0.0790441353855035),
)
"""The same as `_NATURAL`, below 2e-18 relative: a minimax fit (Remez' exchange algorithm with 60 digits)."""
LOG10_2_HIGH, LOG10_2_LOW = 0.301025390625, 4.605038981195214e-06


def log(f: Floats, x: SSAValue) -> SSAValue:
    """The natural logarithm: the f32 nearest to `log 2` is 2e-9 off."""
    return _logarithm(f, x, math.e, _NATURAL if f.format == BINARY32 else _NATURAL_64, (math.log(2.0),))


def log2(f: Floats, x: SSAValue) -> SSAValue:
    """The logarithm to the base 2."""
    return _logarithm(f, x, 2.0, _BINARY, (1.0,))


def log10(f: Floats, x: SSAValue) -> SSAValue:
    """The logarithm to the base 10."""
    return _logarithm(f, x, 10.0, _DECIMAL, (LOG10_2_LOW, LOG10_2_HIGH))


def _logarithm(f: Floats, x: SSAValue, base: float, quotient: Sequence[float], of_two: Sequence[float]) -> SSAValue:
    """A logarithm, that of 2 as parts of increasing size; of 0 and infinity the exponent is infinite, and decides."""
    mantissa, exponent, indices = _parts(f, x)
    reciprocals = _RECIPROCALS if f.format == BINARY32 else _RECIPROCALS_64
    whole = chosen(f, [-math.log(each) / math.log(base) for each in reciprocals], indices)
    for part in of_two:
        whole = f.fused(exponent, f.number(part), whole)
    r = f.fused(mantissa, chosen(f, reciprocals, indices), f.number(-1.0))
    return f.fused(r, f.polynomial(r, quotient), whole)


def log_of_sum(f: Floats, x: SSAValue, lost: SSAValue, *, keeps_rest: bool) -> SSAValue:
    """`log(x + lost)` for a small second part, of which `r` may lose something that is added in the end if so.

    From 1 to 9/8 c is 1, so that a logarithm is the sum of others only where it is greater than what they lack.
    """
    mantissa, exponent, indices = _parts(f, x)
    reciprocals = (1.0, 1.0, *_RECIPROCALS[2:])
    inverse = chosen(f, reciprocals, indices)
    lost = scaled(f, lost, f.sub(f.number(-0.0), exponent))
    first = f.fused(mantissa, inverse, f.number(-1.0))
    r = f.fused(lost, inverse, first)
    whole = f.fused(exponent, f.number(math.log(2.0)), chosen(f, [-math.log(each) for each in reciprocals], indices))
    part = f.mul(f.polynomial(r, _TAIL), r)
    if not keeps_rest:
        return f.add(whole, f.fused(part, r, r))
    rest = f.fused(lost, inverse, f.sub(first, r))
    return f.add(whole, f.add(f.fused(part, r, rest), r))


def _parts(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Mantissa and exponent, and the number of the mantissa's interval in the lowest bits."""
    mantissa, exponent = mantissa_of(f, x, nan_below_zero=True), exponent_of(f, x)
    is_half = f.b.compare_floats("olt", mantissa, f.number(1.0))
    exponent = f.b.select(is_half, f.add(exponent, f.number(1.0)), exponent)
    digits = f.b.make(llvm.LShrOp, (f.bits(mantissa), f.integer(f.format.fraction - 4)), f.integers)
    return mantissa, exponent, digits

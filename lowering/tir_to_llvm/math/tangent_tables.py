"""The tangent of f32 by tables in registers: at most 2 ulp off, for vectors that `has_registers` says.

With `x = n * pi / 32 + r`, `a = n * pi / 32` and `t = tan r` it is `(sin a + cos a * t) / (cos a - sin a * t)`, where r
is at most `pi / 64`, and t two terms more than it. A sine and its cosine in the tables have a factor in common, chosen
so that both are f32 to 2**-37; those of multiples of a right angle are exact.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math.avx512 import chosen, reciprocal_estimate
from lowering.tir_to_llvm.math.floats import Floats

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
    return _quotient(f, dividend, lost, divisor)


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


def _quotient(f: Floats, dividend: SSAValue, lost: SSAValue, divisor: SSAValue) -> SSAValue:
    """By an estimate of the reciprocal, and what its product and the dividend lack; a zero keeps its sign."""
    estimate = reciprocal_estimate(f, divisor)
    quotient = f.mul(dividend, estimate)
    over = f.sub(f.fused(quotient, divisor, _minus(f, dividend)), lost)
    return f.fused(_minus(f, over), estimate, quotient)


def _minus(f: Floats, value: SSAValue) -> SSAValue:
    return f.sub(f.number(-0.0), value)

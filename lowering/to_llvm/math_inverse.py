"""Inverses of trigonometric and hyperbolic functions of f32, as straight-line code that vectorises.

At most 2 units in the last place off, for all inputs, on scalars and vectors alike. The polynomials are minimax fits
of ours, in the square of the argument; what is a logarithm is computed in f64.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from lowering.to_llvm.floats import Floats, doubles, narrowed, widened
from lowering.to_llvm.logarithms import log2

HALF_PI_HIGH, HALF_PI_LOW = 1.5707963705062866, -4.371138828673793e-08
LN2 = 0.6931471805599453

ATAN = (
    -0.33333298563957214,
    0.1999853402376175,
    -0.14264102280139923,
    0.10951506346464157,
    -0.08401581645011902,
    0.05792722851037979,
    -0.031148936599493027,
    0.010899696499109268,
    -0.0017904058331623673,
)
ASIN = (0.16666752099990845, 0.074953094124794, 0.04546914994716644, 0.024184778332710266, 0.042158305644989014)

SMALL = 2.0**-12
"""Below, `asinh x`, `atanh x` and `log (1 + x)` differ from `x` or `x - x * x / 2` by less than rounding."""


def _odd(f: Floats, x: SSAValue, square: SSAValue, coefficients: tuple[float, ...]) -> SSAValue:
    """`x + x**3 * p(x**2)`."""
    return f.fma(f.mul(f.polynomial(square, coefficients), square), x, x)


def atan(f: Floats, x: SSAValue) -> SSAValue:
    """A polynomial up to 1, else what the reciprocal's leaves of a right angle."""
    b, size = f.b, f.magnitude(x)
    is_steep = b.compare_floats("ogt", size, f.number(1.0))
    t = b.select(is_steep, f.div(f.number(1.0), size), size)
    angle = _odd(f, t, f.mul(t, t), ATAN)
    return f.with_sign(b.select(is_steep, _from_half_pi(f, angle), angle), x)


def _from_half_pi(f: Floats, angle: SSAValue) -> SSAValue:
    return f.add(f.sub(f.number(HALF_PI_HIGH), angle), f.number(HALF_PI_LOW))


def _asin_parts(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Whether |x| is at most a half, and the arcsine of it, or else of `sqrt((1 - |x|) / 2)`."""
    b, size = f.b, f.magnitude(x)
    rest = f.mul(f.sub(f.number(1.0), size), f.number(0.5))
    is_small = b.compare_floats("ole", size, f.number(0.5))
    square = b.select(is_small, f.mul(x, x), rest)
    return is_small, _odd(f, b.select(is_small, size, b.overloaded("llvm.sqrt", (rest,), f.type)), square, ASIN)


def asin(f: Floats, x: SSAValue) -> SSAValue:
    """A polynomial up to a half, else `pi / 2 - 2 asin sqrt((1 - x) / 2)`."""
    is_small, angle = _asin_parts(f, x)
    return f.with_sign(f.b.select(is_small, angle, _from_half_pi(f, f.add(angle, angle))), x)


def acos(f: Floats, x: SSAValue) -> SSAValue:
    """`pi / 2 - asin x` up to a half, else `2 asin sqrt((1 - |x|) / 2)`, or what it leaves of two right angles."""
    b, (is_small, angle) = f.b, _asin_parts(f, x)
    double = f.add(angle, angle)
    straight = f.add(f.sub(f.number(2 * HALF_PI_HIGH), double), f.number(2 * HALF_PI_LOW))
    far = b.select(b.compare_floats("olt", x, f.number(0.0)), straight, double)
    return b.select(is_small, _from_half_pi(f, f.with_sign(angle, x)), far)


def _logarithm(f: Floats, x: SSAValue) -> SSAValue:
    """The natural logarithm of an f64, rounded to f32."""
    d = doubles(f)
    return narrowed(f, d.mul(log2(d, x), d.number(LN2)))


def _root(d: Floats, x: SSAValue) -> SSAValue:
    return d.b.overloaded("llvm.sqrt", (x,), d.type)


def asinh(f: Floats, x: SSAValue) -> SSAValue:
    """`log(|x| + sqrt(x**2 + 1))` with the sign of x."""
    d, size = doubles(f), f.magnitude(x)
    wide = widened(f, size)
    far = _logarithm(f, d.add(wide, _root(d, d.fma(wide, wide, d.number(1.0)))))
    return f.with_sign(f.b.select(f.b.compare_floats("olt", size, f.number(SMALL)), size, far), x)


def acosh(f: Floats, x: SSAValue) -> SSAValue:
    """`log(x + sqrt(x**2 - 1))`; NaN below 1."""
    d, wide = doubles(f), widened(f, x)
    value = _logarithm(f, d.add(wide, _root(d, d.fma(wide, wide, d.number(-1.0)))))
    return f.b.select(f.b.compare_floats("oge", x, f.number(1.0)), value, f.number(float("nan")))


def atanh(f: Floats, x: SSAValue) -> SSAValue:
    """Half of `log((1 + |x|) / (1 - |x|))` with the sign of x; NaN beyond 1."""
    b, d, size = f.b, doubles(f), f.magnitude(x)
    wide = widened(f, size)
    ratio = d.div(d.add(d.number(1.0), wide), d.sub(d.number(1.0), wide))
    far = f.mul(_logarithm(f, ratio), f.number(0.5))
    far = b.select(b.compare_floats("ole", size, f.number(1.0)), far, f.number(float("nan")))
    return f.with_sign(b.select(b.compare_floats("olt", size, f.number(SMALL)), size, far), x)


def log1p(f: Floats, x: SSAValue) -> SSAValue:
    """`log(1 + x)`, as exact as x near 0; NaN below -1."""
    b, d, size = f.b, doubles(f), f.magnitude(x)
    far = _logarithm(f, d.add(widened(f, x), d.number(1.0)))
    far = b.select(b.compare_floats("oge", x, f.number(-1.0)), far, f.number(float("nan")))
    near = f.fma(f.mul(x, f.number(-0.5)), x, x)
    return b.select(b.compare_floats("olt", size, f.number(SMALL)), near, far)


INVERSES: dict[str, Callable[[Floats, SSAValue], SSAValue]] = {
    "math.acos": acos,
    "math.acosh": acosh,
    "math.asin": asin,
    "math.asinh": asinh,
    "math.atan": atan,
    "math.atanh": atanh,
    "math.log1p": log1p,
}
"""Functions of one f32 that we compute ourselves, by the name of the op."""

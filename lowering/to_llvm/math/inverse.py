"""Inverses of trigonometric functions of f32, as straight-line code that vectorises.

At most 2 units in the last place off, for all inputs, on scalars and vectors alike. The polynomials are minimax fits
of ours, in the square of the argument.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from lowering.to_llvm.math.floats import Floats

HALF_PI_HIGH, HALF_PI_LOW = 1.5707963705062866, -4.371138828673793e-08

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


INVERSES: dict[str, Callable[[Floats, SSAValue], SSAValue]] = {
    "math.acos": acos,
    "math.asin": asin,
    "math.atan": atan,
}
"""Functions of one f32 that we compute ourselves, by the name of the op."""

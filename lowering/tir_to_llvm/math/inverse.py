"""Inverses of trigonometric functions of f32 and f64, as straight-line code that vectorises.

At most 2 ulp off, for all inputs, on scalars and vectors alike.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from lowering.llvm.builder.vector_types import like
from lowering.tir_to_llvm.math.coefficients import coefficients
from lowering.tir_to_llvm.math.floats import Floats


def atan(f: Floats, x: SSAValue) -> SSAValue:
    """A polynomial up to 1, else what the reciprocal's leaves of a right angle."""
    b, size = f.b, f.magnitude(x)
    is_steep = b.compare_floats("ogt", size, f.number(1.0))
    t = b.select(is_steep, f.div(f.number(1.0), size), size)
    angle = f.fma(*_arctangent_terms(f, t))
    return f.with_sign(b.select(is_steep, _from_half_pi(f, angle), angle), x)


def atan2(f: Floats, y: SSAValue, x: SSAValue) -> SSAValue:
    """The angle of the point (x, y), with the signs and quadrants of IEEE 754's `atan2`.

    It is the arctangent of the smaller magnitude over the larger, added to a multiple of a right angle or subtracted.
    """
    b, (high, low) = f.b, coefficients(f).half_pi
    across, along = f.magnitude(x), f.magnitude(y)
    is_steep = b.compare_floats("ogt", along, across)
    less, more = b.select(is_steep, across, along), b.select(is_steep, along, across)
    t = _quotient_of_sizes(f, less, more)
    angle = f.fma(*_arctangent_terms(f, t))
    is_left = b.compare("slt", f.bits(x), f.integer(0))
    parts = [
        b.select(is_steep, f.number(part), b.select(is_left, f.number(2 * part), f.number(0.0))) for part in (high, low)
    ]
    is_subtracted = b.make(llvm.XOrOp, (is_steep, is_left), is_left.type)
    angle = b.select(is_subtracted, f.sub(f.number(-0.0), angle), angle)
    return f.with_sign(f.add(f.add(parts[0], angle), parts[1]), y)


def _quotient_of_sizes(f: Floats, less: SSAValue, more: SSAValue) -> SSAValue:
    """`less / more`; 0 of two zeros, 1 of two infinities."""
    quotient = f.div(less, f.at_least(more, f.format.least))
    infinite = [f.b.compare_floats("oeq", each, f.number(float("inf"))) for each in (less, more)]
    return f.b.select(f.b.make(llvm.AndOp, infinite, like(f.type, i1)), f.number(1.0), quotient)


def _arctangent_terms(f: Floats, t: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """For t from 0 to 1, the factors and the summand of its arctangent."""
    square = f.mul(t, t)
    return f.mul(f.polynomial(square, coefficients(f).atan), square), t, t


def _from_half_pi(f: Floats, angle: SSAValue) -> SSAValue:
    high, low = coefficients(f).half_pi
    return f.add(f.sub(f.number(high), angle), f.number(low))


def _asin_parts(f: Floats, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Whether |x| is at most a half; |x|, or else `sqrt((1 - |x|) / 2)`; the arcsine of that over it, less 1."""
    b, size = f.b, f.magnitude(x)
    rest = f.mul(f.sub(f.number(1.0), size), f.number(0.5))
    is_small = b.compare_floats("ole", size, f.number(0.5))
    square = b.select(is_small, f.mul(x, x), rest)
    base = b.select(is_small, size, b.overloaded("llvm.sqrt", (rest,), f.type))
    return is_small, base, f.mul(f.polynomial(square, coefficients(f).asin), square)


def asin(f: Floats, x: SSAValue) -> SSAValue:
    """A polynomial up to a half, else `pi / 2 - 2 asin sqrt((1 - x) / 2)`.

    The root is subtracted first, and from half of a right angle, so that the difference is as small as the result.
    """
    (is_small, base, more), (high, low) = _asin_parts(f, x), coefficients(f).half_pi
    double, half = f.mul(base, f.number(-2.0)), f.number(high / 2)
    far = f.add(half, f.add(f.add(half, double), f.fma(more, double, f.number(low))))
    return f.with_sign(f.b.select(is_small, f.fma(more, base, base), far), x)


def acos(f: Floats, x: SSAValue) -> SSAValue:
    """`pi / 2 - asin x` up to a half, else `2 asin sqrt((1 - |x|) / 2)`, or what it leaves of two right angles."""
    b, (is_small, base, more), (high, low) = f.b, _asin_parts(f, x), coefficients(f).half_pi
    angle = f.fma(more, base, base)
    double = f.add(angle, angle)
    straight = f.add(f.sub(f.number(2 * high), double), f.number(2 * low))
    far = b.select(b.compare_floats("olt", x, f.number(0.0)), straight, double)
    return b.select(is_small, _from_half_pi(f, f.with_sign(angle, x)), far)


INVERSES: dict[str, Callable[..., SSAValue]] = {
    "math.acos": acos,
    "math.asin": asin,
    "math.atan": atan,
    "math.atan2": atan2,
}
"""Functions of f32 or f64 that we compute ourselves, by the name of the op."""

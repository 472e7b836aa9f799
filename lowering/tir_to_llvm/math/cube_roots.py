"""Cube roots of f32 and f64: at most 2 ulp off, for all numbers, on scalars and vectors alike."""

from __future__ import annotations

import math

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math.avx512 import (
    chosen,
    exponent_of,
    has_registers,
    has_registers_of_doubles,
    mantissa_of,
    scaled,
)
from lowering.tir_to_llvm.math.floats import BINARY32, Floats
from lowering.tir_to_llvm.math.logarithms import split_mantissa

INVERSE = (0.9999494552612305, -0.3329913914203644, 0.2263202667236328, -0.18659506738185883, 0.1107228621840477)
INVERSE_64 = (
    *(1.0000018255345582, -0.3331903794679979, 0.22189100159170566, -0.1782492429887437, 0.15660646940357362),
    -0.09004155068643849,
)
"""`(1 + t)**(-1/3)` for `1 + t` from sqrt(1/2) to 3/2: minimax fits of ours (Remez' exchange algorithm with 50 digits),
to 2**-14 and 2**-16.
"""
RECIPROCALS = (
    *(0.9384210109710693, 0.8422079086303711, 0.761906087398529, 0.6975723505020142, 0.6366650462150574),
    *(0.5901530981063843, 0.5485409498214722, 0.5174347758293152),
)
"""Of the middles of eighths from 1 to 2, chosen so that the roots of 1/2, 1 and 2 over one are f32 to 2**-29."""
_ROOTS = tuple(math.cbrt(2.0**rest / number) for rest in (0, 1, 2, -1) for number in RECIPROCALS)
_ROOT = (0.333333283662796, -0.11111040413379669, 0.06183112412691116, -0.04161328077316284)
"""`((1 + r)**(1/3) - 1) / r` for r from -0.062 to 0.056, to 2**-22."""
_STEP, _STEP_64 = (2 / 3,), (2 / 3, 5 / 9, 40 / 81)
"""The series of `((1 - h)**(-2/3) - 1) / h`."""


def cbrt(f: Floats, x: SSAValue) -> SSAValue:
    """`2**n * c` with `c = a**(1/3)`, where `|x| = 2**(3 * n) * a` and a is from 0.35 to 3.

    An estimate y of `1 / c` is a polynomial; `z = a * y**2` is c but for a factor `(1 - h)**(2/3)`, `h = 1 - z * y`.
    """
    if has_registers(f):
        return _by_table(f, x)
    b, size = f.b, f.magnitude(x)
    exponent, t = split_mantissa(f, size)
    n, rounded = _third(f, exponent, f.format.bias)
    rest = f.fma(n, f.number(-3.0), exponent)
    first, step = (INVERSE, _STEP) if f.format == BINARY32 else (INVERSE_64, _STEP_64)
    y = f.mul(f.polynomial(t, first), _one_of(f, rest, 2 ** (1 / 3), 1.0, 2 ** (-1 / 3)))
    a = f.mul(f.add(t, f.number(1.0)), _one_of(f, rest, 0.5, 1.0, 2.0))
    z = f.mul(a, f.mul(y, y))
    h = f.fma(f.sub(f.number(-0.0), z), y, f.number(1.0))
    root = f.fma(f.mul(z, h), f.polynomial(h, step), z)
    result = f.with_sign(_times_power(f, root, n, rounded), x)
    # Zeros, which become large, infinities and NaN.
    from_zero = f.integers_op(llvm.SubOp, f.bits(size), f.integer(1))
    is_special = b.compare("uge", from_zero, f.integer(f.format.infinity_bits - 1))
    return b.select(is_special, x, result)


def _by_table(f: Floats, x: SSAValue) -> SSAValue:
    """`2**n * c * (1 + r)**(1/3)`, where `1 + r` is the mantissa over the middle of its eighth, and c is in a table.

    Zeros and infinities have themselves as exponents, and so become of any number what they were.
    """
    b, mantissa, exponent = f.b, mantissa_of(f, x, from_one=True), exponent_of(f, x)
    eighth = b.make(llvm.LShrOp, (f.bits(mantissa), f.integer(f.format.fraction - 3)), f.integers)
    r = f.fused(mantissa, chosen(f, RECIPROCALS * 2, eighth), f.number(-1.0))
    n, _ = _third(f, exponent, 0)
    # The units of what n leaves stand above the last three digits, which say the eighth.
    rest = f.fused(n, f.number(-3.0), f.add(exponent, f.number(f.format.rounding / 8)))
    index = b.make(llvm.OrOp, (f.bits(rest), b.make(llvm.AndOp, (eighth, f.integer(7)), f.integers)), f.integers)
    root = chosen(f, _ROOTS, index)
    return f.with_sign(scaled(f, f.fused(root, f.mul(f.polynomial(r, _ROOT), r), root), n), x)


def _third(f: Floats, exponent: SSAValue, bias: int) -> tuple[SSAValue, SSAValue]:
    """The whole number n that is nearest to a third, and a number with `n + bias` in its lowest bits."""
    offset = f.number(f.format.rounding + bias)
    rounded = f.fma(exponent, f.number(1 / 3), offset)
    return f.sub(rounded, offset), rounded


def _one_of(f: Floats, rest: SSAValue, below: float, middle: float, above: float) -> SSAValue:
    """A number for -1, 0 and 1."""
    numbers = [f.number(each) for each in (below, middle, above)]
    least = f.b.select(f.b.compare_floats("olt", rest, f.number(0.0)), numbers[0], numbers[1])
    return f.b.select(f.b.compare_floats("ogt", rest, f.number(0.0)), numbers[2], least)


def _times_power(f: Floats, value: SSAValue, n: SSAValue, rounded: SSAValue) -> SSAValue:
    """`value * 2**n`, a normal number, whose biased exponent stands in the lowest bits of `rounded`."""
    if has_registers_of_doubles(f):
        return scaled(f, value, n)
    power = f.b.make(llvm.ShlOp, (f.bits(rounded), f.integer(f.format.fraction)), f.integers)
    return f.mul(value, f.from_bits(power))

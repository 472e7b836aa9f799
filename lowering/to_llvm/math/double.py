"""Elementary functions of f64 as straight-line code that vectorises: at most 2 units in the last place off.

The C library's functions take one number at a time. The polynomial is a fit of ours, off by 2e-17 relative.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from lowering.to_llvm.builder.vector_types import like
from lowering.to_llvm.math.floats import ROUNDING, Floats

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # the first has 33 bits
EXP = (
    0.5000000000000001,
    0.16666666666666669,
    0.041666666666623824,
    0.008333333333330039,
    0.0013888888917367081,
    0.00019841269863171557,
    2.4801521057868204e-05,
    2.7557268276905696e-06,
    2.7620201591031547e-07,
    2.5100472505694996e-08,
)
_ROUNDING_BITS = 0x4338000000000000


def exp(d: Floats, x: SSAValue) -> SSAValue:
    """`e**x = 2**n * e**r` with `n` the nearest integer to `x / ln 2`."""
    x = d.clamp(x, -746.0, 710.0)
    rounded = d.fma(x, d.number(LOG2_E), d.number(ROUNDING))
    n = d.sub(rounded, d.number(ROUNDING))
    r = d.fma(n, d.number(-LN2_LOW), d.fma(n, d.number(-LN2_HIGH), x))
    value = d.add(d.fma(d.polynomial(r, EXP), d.mul(r, r), r), d.number(1.0))
    return _scaled(d, value, rounded)


def _scaled(d: Floats, value: SSAValue, rounded: SSAValue) -> SSAValue:
    """`value * 2**n`, where n stands in the lowest bits of `rounded`; in two steps, for n may be less than -1022."""
    b, long = d.b, like(d.type, i64)
    n = b.wrapping(llvm.SubOp, b.make(llvm.BitcastOp, (rounded,), long), b.integer(_ROUNDING_BITS, long))
    half = b.make(llvm.AShrOp, (n, b.integer(1, long)), long)
    for part in (half, b.wrapping(llvm.SubOp, n, half)):
        biased = b.wrapping(llvm.AddOp, part, b.integer(1023, long))
        power = b.make(llvm.ShlOp, (biased, b.integer(52, long)), long)
        value = d.mul(value, b.make(llvm.BitcastOp, (power,), d.type))
    return value


F64_EXPANSIONS: dict[str, Callable[..., SSAValue]] = {"math.exp": exp}
"""Functions of f64 that we compute ourselves, by the name of the op."""

"""Inverses of hyperbolic functions of f32 and f64, and `log (1 + x)`: at most 2 ulp off, for all inputs.

Each is the logarithm of `1 + t`, where t is exact enough near 0. Arguments that are out of the range of the formulas,
or whose squares would be too large, have a branch, which is taken where a lane has one.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math.avx512 import finite_reciprocal, has_registers
from lowering.tir_to_llvm.math.coefficients import LN2, coefficients
from lowering.tir_to_llvm.math.expansion import tail_and_scale
from lowering.tir_to_llvm.math.floats import Floats
from lowering.tir_to_llvm.math.log_tables import log_of_sum
from lowering.tir_to_llvm.math.logarithms import log, log_of_one_plus, split

_LEAST = -40.0
"""Below, the quotient rounds to 1."""


def sigmoid(f: Floats, u: SSAValue) -> SSAValue:
    """`1 / (1 + 2**n + 2**n * t)` for `e**u = 2**n * (1 + t)`, where the first sum keeps what it rounds off.

    The sum is computed as `2**-shift + 2**-shift * e**u`, which is normal and finite wherever the quotient is not 0.
    """
    shift = (f.format.bias + 1) // 2
    tail, scale = tail_and_scale(f, f.clamp(u, _LEAST, -coefficients(f).exp_range[0]), f.format.bias - shift)
    one = f.number(2.0**-shift)
    most = f.add(scale, one)
    lost = f.sub(one, f.sub(most, scale))
    divisor = f.add(f.fma(scale, tail, lost), most)
    return f.mul(finite_reciprocal(f, divisor), one) if has_registers(f) else f.div(one, divisor)


LARGE = 2.0**60
"""From here on the functions are `log 2 * |x|`, while squares of smaller numbers are finite."""


def log1p(f: Floats, x: SSAValue) -> SSAValue:
    """`log(1 + x)`, as exact as x near 0; NaN below -1."""
    b, zero = f.b, f.number(0.0)
    inside = _both(f, b.compare_floats("ogt", x, f.number(-1.0)), b.compare_floats("olt", x, f.number(LARGE)))
    result = _unless(f, inside, _log_of_one_plus(f, x), lambda: log(f, f.add(x, f.number(1.0))))
    return b.select(b.compare_floats("oeq", x, zero), x, result)


def asinh(f: Floats, x: SSAValue) -> SSAValue:
    """`log(1 + |x| + x**2 / (1 + sqrt(x**2 + 1)))` with the sign of x."""
    size = f.magnitude(x)
    divisor = f.add(_root(f, f.fma(size, size, f.number(1.0))), f.number(1.0))
    part = f.mul(size, finite_reciprocal(f, divisor)) if has_registers(f) else f.div(size, divisor)
    near = _log_of_one_plus(f, f.fma(size, part, size))
    inside = f.b.compare_floats("olt", size, f.number(LARGE))
    return f.with_sign(_unless(f, inside, near, lambda: _log_of_double(f, size)), x)


def acosh(f: Floats, x: SSAValue) -> SSAValue:
    """`log(1 + z + sqrt(z * (z + 2)))` for `z = x - 1`; NaN below 1."""
    z = f.sub(x, f.number(1.0))
    root = _root(f, f.fma(z, z, f.add(z, z)))
    t = f.add(root, z)
    near = _log_of_one_plus(f, t, f.add(f.sub(root, t), z), keeps_rest=True)
    is_number = f.b.compare_floats("oge", x, f.number(1.0))
    inside = _both(f, is_number, f.b.compare_floats("olt", x, f.number(LARGE)))
    return _unless(f, inside, near, lambda: f.b.select(is_number, _log_of_double(f, x), f.number(float("nan"))))


def atanh(f: Floats, x: SSAValue) -> SSAValue:
    """Half of `log(1 + 2 * |x| / (1 - |x|))` with the sign of x; infinite at 1, NaN beyond.

    What the difference and the quotient lack is added to the quotient.
    """
    b, size, one = f.b, f.magnitude(x), f.number(1.0)
    divisor, double = f.sub(one, size), f.add(size, size)
    lost = f.sub(f.sub(one, divisor), size)
    if has_registers(f):
        inverse = finite_reciprocal(f, divisor)
        t = f.mul(double, inverse)
        minus = f.sub(f.number(-0.0), t)
        rest = f.fma(minus, lost, f.fused(minus, divisor, double))
    else:
        inverse, t = f.div(one, divisor), f.div(double, divisor)
        rest = f.mul(f.sub(f.number(-0.0), t), lost)
    logarithm = _log_of_one_plus(f, t, f.mul(rest, inverse), keeps_rest=not has_registers(f))
    near = f.mul(logarithm, f.number(0.5))
    infinite, nan = f.number(float("inf")), f.number(float("nan"))
    inside = b.compare_floats("olt", size, one)
    far = _unless(f, inside, near, lambda: b.select(b.compare_floats("oeq", size, one), infinite, nan))
    return f.with_sign(far, x)


def _log_of_one_plus(f: Floats, t: SSAValue, rest: SSAValue | None = None, *, keeps_rest: bool = False) -> SSAValue:
    """`log(1 + t + rest) = e * ln 2 + log m` for t from above -1 to `2**(bias - 1)`, rest below its last digit.

    What is lost in `1 + t` is known exactly and belongs to `m - 1`, and so does the rest. What is lost of that is added
    to the smaller part of the logarithm if it is to be kept.
    """
    sum_ = f.add(t, f.number(1.0))
    lost = f.sub(t, f.sub(sum_, f.number(1.0)))
    lost = lost if rest is None else f.add(lost, rest)
    if has_registers(f):
        return log_of_sum(f, sum_, lost, keeps_rest=keeps_rest)
    exponent, digits, shifted = split(f, sum_)
    scale = f.from_bits(f.integers_op(llvm.SubOp, f.integer(f.format.one_bits), shifted))
    whole = f.fma(lost, scale, digits)
    high, low = log_of_one_plus(f, whole)
    if keeps_rest:
        low = f.add(low, f.fma(lost, scale, f.sub(digits, whole)))
    known = coefficients(f)
    low = f.fma(exponent, f.number(known.ln2_low), low)
    return f.fma(exponent, f.number(known.ln2_high), f.add(high, low))


def _log_of_double(f: Floats, x: SSAValue) -> SSAValue:
    return f.add(log(f, x), f.number(LN2))


def _root(f: Floats, x: SSAValue) -> SSAValue:
    return f.b.overloaded("llvm.sqrt", (x,), f.type)


def _both(f: Floats, left: SSAValue, right: SSAValue) -> SSAValue:
    return f.b.make(llvm.AndOp, (left, right), left.type)


def _unless(f: Floats, inside: SSAValue, near: SSAValue, far: Callable[[], SSAValue]) -> SSAValue:
    """`near` for the lanes that are inside, `far` for others, which is computed if there are any."""
    b = f.b
    outside = b.make(llvm.XOrOp, (inside, b.integer(1, inside.type)), inside.type)
    special, plain, after = b.new_block(), b.new_block(), b.new_block([f.type])
    b.branch_if(f.b.any_lane(outside), special, plain)
    b.start(plain)
    b.branch(after, near)
    b.start(special)
    b.branch(after, b.select(inside, near, far()))
    b.start(after)
    return after.args[0]


HYPERBOLIC_INVERSES: dict[str, Callable[[Floats, SSAValue], SSAValue]] = {
    "math.acosh": acosh,
    "math.asinh": asinh,
    "math.atanh": atanh,
    "math.log1p": log1p,
}
"""Functions of one f32 or f64 that we compute ourselves, by the name of the op."""

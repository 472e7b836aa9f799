"""Mathematical functions of scalars, those of the C math library included.

Functions of floats take `f16`, `bf16`, `f32` and `f64` and return the dtype of the operand; an integer operand is a
TypeError.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import f32, f64, i1, i32

from tir_dialect.te import nodes
from tir_dialect.te.coerce import adopt, as_expr, is_bool, is_float, is_index, is_integer, is_unsigned, unify
from tir_dialect.te.expr import Expr, Operand
from tir_dialect.te.operators import (
    absolute,
    add,
    call_extern,
    cast,
    compare,
    const,
    maximum,
    negative,
    power,
    refuse,
    select,
    subtract,
)


def _float(name: str, *operands: Operand) -> Expr:
    exprs = unify(name, operands)
    if not is_float(exprs[0].dtype):
        raise refuse(name, "a float", exprs[0])
    return nodes.apply(name, exprs[0].dtype, *exprs)


def _rounding(name: str, operand: Operand) -> Expr:
    a = as_expr(name, operand)
    return a if is_integer(a.dtype) or is_index(a.dtype) else _float(name, a)


def exp(x: Operand) -> Expr:
    """The exponential function."""
    return _float("exp", x)


def exp2(x: Operand) -> Expr:
    """2 to the power `x`."""
    return _float("exp2", x)


def expm1(x: Operand) -> Expr:
    """`exp(x) - 1`, accurate near 0."""
    return _float("expm1", x)


def log(x: Operand) -> Expr:
    """The natural logarithm."""
    return _float("log", x)


def log2(x: Operand) -> Expr:
    """The logarithm to base 2."""
    return _float("log2", x)


def log10(x: Operand) -> Expr:
    """The logarithm to base 10."""
    return _float("log10", x)


def log1p(x: Operand) -> Expr:
    """`log(1 + x)`, accurate near 0."""
    return _float("log1p", x)


def sqrt(x: Operand) -> Expr:
    """The square root, correctly rounded."""
    return _float("sqrt", x)


def rsqrt(x: Operand) -> Expr:
    """`1 / sqrt(x)`."""
    return _float("rsqrt", x)


def cbrt(x: Operand) -> Expr:
    """The cube root."""
    return _float("cbrt", x)


def sin(x: Operand) -> Expr:
    """The sine of an angle in radians."""
    return _float("sin", x)


def cos(x: Operand) -> Expr:
    """The cosine of an angle in radians."""
    return _float("cos", x)


def tan(x: Operand) -> Expr:
    """The tangent of an angle in radians."""
    return _float("tan", x)


def asin(x: Operand) -> Expr:
    """The inverse sine, in radians."""
    return _float("asin", x)


def acos(x: Operand) -> Expr:
    """The inverse cosine, in radians."""
    return _float("acos", x)


def atan(x: Operand) -> Expr:
    """The inverse tangent, in radians."""
    return _float("atan", x)


def atan2(y: Operand, x: Operand) -> Expr:
    """The angle of the point `(x, y)`, in radians."""
    return _float("atan2", y, x)


def sinh(x: Operand) -> Expr:
    """The hyperbolic sine."""
    return _float("sinh", x)


def cosh(x: Operand) -> Expr:
    """The hyperbolic cosine."""
    return _float("cosh", x)


def tanh(x: Operand) -> Expr:
    """The hyperbolic tangent."""
    return _float("tanh", x)


def asinh(x: Operand) -> Expr:
    """The inverse hyperbolic sine."""
    return _float("asinh", x)


def acosh(x: Operand) -> Expr:
    """The inverse hyperbolic cosine."""
    return _float("acosh", x)


def atanh(x: Operand) -> Expr:
    """The inverse hyperbolic tangent."""
    return _float("atanh", x)


def erf(x: Operand) -> Expr:
    """The error function."""
    return _float("erf", x)


def sigmoid(x: Operand) -> Expr:
    """`1 / (1 + exp(-x))`."""
    a = as_expr("sigmoid", x)
    return 1.0 / (1.0 + exp(-a))


def pow(base: Operand, exponent: Operand) -> Expr:
    """`base` to the power `exponent`, as the operator `**`."""
    return power(base, exponent)


def logaddexp(x: Operand, y: Operand) -> Expr:
    """`log(exp(x) + exp(y))` without intermediate overflow."""
    a, b = unify("logaddexp", (x, y))
    more = log1p(exp(negative(absolute(subtract(a, b)))))
    # equal infinities have no difference
    return select(compare("eq", a, b), add(a, math.log(2)), add(maximum(a, b), more))


def fma(a: Operand, b: Operand, c: Operand) -> Expr:
    """`a * b + c` with one rounding."""
    return _float("fma", a, b, c)


def copysign(magnitude: Operand, sign: Operand) -> Expr:
    """`magnitude` with the sign of `sign`."""
    return _float("copysign", magnitude, sign)


def fmod(lhs: Operand, rhs: Operand) -> Expr:
    """The remainder of the division rounded towards zero, C's `fmod`."""
    return _float("truncmod", lhs, rhs)


def fmin(lhs: Operand, rhs: Operand) -> Expr:
    """The smaller operand; a NaN only if both are NaN, as `np.fmin`."""
    return _float("fmin", lhs, rhs)


def fmax(lhs: Operand, rhs: Operand) -> Expr:
    """The larger operand; a NaN only if both are NaN, as `np.fmax`."""
    return _float("fmax", lhs, rhs)


def floor(x: Operand) -> Expr:
    """The largest integral value that is at most `x`; an integer is itself."""
    return _rounding("floor", x)


def ceil(x: Operand) -> Expr:
    """The smallest integral value that is at least `x`; an integer is itself."""
    return _rounding("ceil", x)


def trunc(x: Operand) -> Expr:
    """`x` without its fraction; an integer is itself."""
    return _rounding("trunc", x)


def round(x: Operand) -> Expr:
    """The nearest integral value, halves to the even one, as `np.round`; an integer is itself."""
    return _rounding("round", x)


def round_away(x: Operand) -> Expr:
    """The nearest integral value, halves away from zero, as C's `round`; an integer is itself."""
    return _rounding("round_away", x)


def isnan(x: Operand) -> Expr:
    """Whether `x` is NaN."""
    return _classify("isnan", x)


def isinf(x: Operand) -> Expr:
    """Whether `x` is an infinity."""
    return _classify("isinf", x)


def isfinite(x: Operand) -> Expr:
    """Whether `x` is neither NaN nor an infinity."""
    return _classify("isfinite", x)


def _classify(name: str, x: Operand) -> Expr:
    a = as_expr(name, x)
    if not is_float(a.dtype):
        raise refuse(name, "a float", a)
    return nodes.apply(name, i1, a)


def sign(x: Operand) -> Expr:
    """-1, 0 or 1 as `x` is negative, zero or positive: +0 for both zeros of a float, and NaN for NaN."""
    a = as_expr("sign", x)
    if is_bool(a.dtype):
        raise refuse("sign", "a number", a)
    if is_unsigned(a.dtype):
        return select(a > 0, adopt(1, a.dtype), a)
    # What is neither positive nor negative is NaN, or a zero, of which the sign goes.
    rest = absolute(a) if is_float(a.dtype) else a
    return select(a > 0, adopt(1, a.dtype), select(a < 0, adopt(-1, a.dtype), rest))


def popcount(x: Operand) -> Expr:
    """The number of bits that are set."""
    return _bits("popcount", x)


def count_leading_zeros(x: Operand) -> Expr:
    """The number of zeros above the highest bit that is set; the width for 0."""
    return _bits("count_leading_zeros", x)


def _bits(name: str, x: Operand) -> Expr:
    a = as_expr(name, x)
    if not is_integer(a.dtype):
        raise refuse(name, "an integer", a)
    return nodes.apply(name, a.dtype, a)


def hypot(x: Operand, y: Operand) -> Expr:
    """`sqrt(x * x + y * y)` without intermediate overflow; infinite if either operand is, whatever the other one."""
    exprs = unify("hypot", (x, y))
    return _call("hypot", exprs[0], exprs[1])


def nextafter(x: Operand, y: Operand) -> Expr:
    """The next number of the dtype from `x` towards `y`, of `f32` or `f64`."""
    exprs = unify("nextafter", (x, y))
    if exprs[0].dtype not in (f32, f64):
        raise refuse("nextafter", "f32 or f64", exprs[0])
    return _call("nextafter", exprs[0], exprs[1])


def ldexp(x: Operand, exponent: Operand) -> Expr:
    """`x * 2 ** exponent` for an integer exponent, with one rounding."""
    shift = const(exponent, i32) if isinstance(exponent, int | float) else as_expr("ldexp", exponent)
    if not (is_integer(shift.dtype) or is_index(shift.dtype)):
        raise refuse("ldexp", "an integer exponent", shift)
    return _call("ldexp", as_expr("ldexp", x), cast(shift, i32))


def _call(name: str, operand: Expr, other: Expr) -> Expr:
    """A call in the dtype of the first operand; narrow floats are computed in `f32`."""
    dtype = operand.dtype
    if not is_float(dtype):
        raise refuse(name, "a float", operand)
    wide = f64 if dtype == f64 else f32
    operands = [cast(each, wide) if is_float(each.dtype) else each for each in (operand, other)]
    return cast(call_extern(wide, name if wide == f64 else f"{name}f", *operands), dtype)

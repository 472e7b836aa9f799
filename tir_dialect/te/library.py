"""Functions of the C math library for which the math dialect has no op."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, f64, i32

from tir_dialect.te.coerce import as_expr, is_float, is_index, is_integer, unify
from tir_dialect.te.conversions import call_extern, cast, const
from tir_dialect.te.expr import Expr, Operand
from tir_dialect.te.operators import refuse


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
    power = const(exponent, i32) if isinstance(exponent, int | float) else as_expr("ldexp", exponent)
    if not (is_integer(power.dtype) or is_index(power.dtype)):
        raise refuse("ldexp", "an integer exponent", power)
    return _call("ldexp", as_expr("ldexp", x), cast(power, i32))


def _call(name: str, operand: Expr, other: Expr) -> Expr:
    """A call in the dtype of the first operand; narrow floats are computed in `f32`."""
    dtype = operand.dtype
    if not is_float(dtype):
        raise refuse(name, "a float", operand)
    wide = f64 if dtype == f64 else f32
    operands = [cast(each, wide) if is_float(each.dtype) else each for each in (operand, other)]
    return cast(call_extern(wide, name if wide == f64 else f"{name}f", *operands), dtype)

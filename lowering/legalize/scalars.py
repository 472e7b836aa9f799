"""Scalar functions of elementwise operators as tensor expressions, by the name that the op's `Scalar` carries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xdsl.dialects.builtin import IndexType

from tir_dialect import te
from tir_dialect.dtypes import is_bool, is_float, is_unsigned

ScalarFunction: TypeAlias = Callable[..., te.Expr]


def _float(x: te.Expr) -> bool:
    return not isinstance(x.dtype, IndexType) and is_float(x.dtype)


def _divide(x: te.Expr, y: te.Expr) -> te.Expr:
    return x / y if _float(x) else te.truncdiv(x, y)


def _floor_divide(x: te.Expr, y: te.Expr) -> te.Expr:
    return te.floor(x / y) if _float(x) else te.floordiv(x, y)


def _floor_mod(x: te.Expr, y: te.Expr) -> te.Expr:
    """The remainder with the sign of the divisor."""
    if not _float(x):
        return te.floormod(x, y)
    rest = te.fmod(x, y)
    wrong = te.logical_and(rest != 0, (rest < 0) != (y < 0))
    return te.select(wrong, rest + y, rest)


def _mod(x: te.Expr, y: te.Expr) -> te.Expr:
    """The remainder with the sign of the dividend."""
    return te.fmod(x, y) if _float(x) else te.truncmod(x, y)


def _log_add_exp(x: te.Expr, y: te.Expr) -> te.Expr:
    """Without overflow: the larger operand is taken out of the logarithm."""
    top = te.maximum(x, y)
    return te.select(x == y, x + te.log(te.const(2.0, x.dtype)), top + te.log1p(te.exp(-te.abs(x - y))))


def _truth(x: te.Expr) -> te.Expr:
    return x if not isinstance(x.dtype, IndexType) and is_bool(x.dtype) else x != 0


def _sign(x: te.Expr) -> te.Expr:
    if not isinstance(x.dtype, IndexType) and is_unsigned(x.dtype):
        return te.minimum(x, 1)
    return te.sign(x)


SCALARS: dict[str, ScalarFunction] = {
    "abs": te.abs,
    "acos": te.acos,
    "acosh": te.acosh,
    "add": lambda x, y: x + y,
    "asin": te.asin,
    "asinh": te.asinh,
    "atan": te.atan,
    "atan2": te.atan2,
    "atanh": te.atanh,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_not": lambda x: ~x,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
    "ceil": te.ceil,
    "cos": te.cos,
    "cosh": te.cosh,
    "divide": _divide,
    "equal": lambda x, y: x == y,
    "erf": te.erf,
    "ewise_fma": lambda x, y, z: x * y + z,
    "exp": te.exp,
    "floor": te.floor,
    "floor_divide": _floor_divide,
    "floor_mod": _floor_mod,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "isfinite": te.isfinite,
    "isinf": te.isinf,
    "isnan": te.isnan,
    "left_shift": lambda x, y: x << y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "log": te.log,
    "log_add_exp": _log_add_exp,
    "logical_and": lambda x, y: te.logical_and(_truth(x), _truth(y)),
    "logical_not": lambda x: te.logical_not(_truth(x)),
    "logical_or": lambda x, y: te.logical_or(_truth(x), _truth(y)),
    "logical_xor": lambda x, y: _truth(x) != _truth(y),
    "maximum": te.maximum,
    "minimum": te.minimum,
    "mod": _mod,
    "multiply": lambda x, y: x * y,
    "negative": lambda x: -x,
    "not_equal": lambda x, y: x != y,
    "power": te.pow,
    "reciprocal": lambda x: 1 / x,
    "right_shift": lambda x, y: x >> y,
    "round": te.round,
    "rsqrt": te.rsqrt,
    "sigmoid": te.sigmoid,
    "sign": _sign,
    "sin": te.sin,
    "sinh": te.sinh,
    "sqrt": te.sqrt,
    "square": lambda x: x * x,
    "subtract": lambda x, y: x - y,
    "tan": te.tan,
    "tanh": te.tanh,
    "trunc": te.trunc,
}

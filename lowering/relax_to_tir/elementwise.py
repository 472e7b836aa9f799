"""Elementwise operators with broadcasting: their scalar functions as tensor expressions, by the name that the op's
`Scalar` carries.

Floats of 16 bits and less are computed in `f32` and rounded once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from xdsl.dialects.builtin import AnyFloat, IndexType
from xdsl.ir import Attribute

from lowering.relax_to_tir.kernel import Kernel, broadcast_load, legalizes
from relax_dialect.ops.activation import SELU_ALPHA, SELU_SCALE, SQRT_2_OVER_PI, SQRT_HALF
from relax_dialect.ops.operator import ElementwiseOp
from tir_dialect import te
from tir_dialect.dtypes import is_float, is_small_float, is_unsigned
from tir_dialect.te.coerce import integer_range, is_bool, is_index, is_integer
from tir_dialect.te.expr import DType

Unary: TypeAlias = Callable[[te.Expr], te.Expr]
Binary: TypeAlias = Callable[[te.Expr, te.Expr], te.Expr]
Ternary: TypeAlias = Callable[[te.Expr, te.Expr, te.Expr], te.Expr]


def apply(name: str, *operands: te.Expr) -> te.Expr:
    """The scalar function called `name` of operands of one dtype."""
    function = SCALARS[name]
    result = function(*map(widen, operands))
    return narrow(result, operands[0]) if result.dtype != operands[0].dtype and not _is_truth(result) else result


def widen(x: te.Expr) -> te.Expr:
    """Floats of 16 bits and less as `f32`, in which they are computed; others as they are."""
    return te.cast(x, "f32") if isinstance(x.dtype, AnyFloat) and x.dtype.bitwidth <= 16 else x


def narrow(x: te.Expr, like: te.Expr | te.Tensor) -> te.Expr:
    """`x` rounded to the dtype of `like`."""
    return te.cast(x, like.dtype)


def narrowed(x: te.Tensor, dtype: Attribute | str) -> te.Tensor:
    """A tensor that was computed wide, rounded to a dtype; the same one if it has it."""
    if str(x.dtype) == str(dtype):
        return x
    return te.compute(x.shape, lambda *i: te.cast(x[i], str(dtype)), name=f"{x.name}_narrow")


def wide_dtype(dtype: Attribute | str) -> str:
    """The dtype in which elements of a dtype are computed."""
    return str(widen(te.const(0, str(dtype))).dtype)


def number(value: float, like: te.Expr) -> te.Expr:
    """A number in the dtype of `like`, as `element` makes one."""
    return element(value, like.dtype)


def element(value: float, dtype: DType) -> te.Expr:
    """A number converted to a dtype: as a float, infinite where it is too large; as an integer, without its fraction
    and at most the extremes, of NaN 0.
    """
    if is_bool(dtype):
        return te.const(value != 0, dtype)
    if is_integer(dtype) or is_index(dtype):
        least, greatest = integer_range(dtype)
        return te.const(0 if value != value else int(min(max(value, least), greatest)), dtype)
    if not isinstance(dtype, IndexType) and is_small_float(dtype):  # some have no zero, and some no infinity
        return te.cast(te.const(value, "f64"), dtype)
    try:
        return te.const(value, dtype)
    except ValueError:
        return te.const(math.copysign(math.inf, value), dtype)


def is_float_expr(x: te.Expr) -> bool:
    """Whether an expression is a float."""
    return not isinstance(x.dtype, IndexType) and is_float(x.dtype)


def truth(x: te.Expr) -> te.Expr:
    """Whether a value is not zero."""
    return x if _is_truth(x) else x != 0


def _is_truth(x: te.Expr) -> bool:
    return not isinstance(x.dtype, IndexType) and is_bool(x.dtype)


def _divide(x: te.Expr, y: te.Expr) -> te.Expr:
    return x / y if is_float_expr(x) else te.truncdiv(x, y)


def _floor_divide(x: te.Expr, y: te.Expr) -> te.Expr:
    """Of floats, of the exact quotient: `x / y` may have been rounded up to the integer above it."""
    if not is_float_expr(x):
        return te.floordiv(x, y)
    rest = te.fmod(x, y)
    is_below = te.logical_and(rest != 0, (rest < 0) != (y < 0))
    # The difference is a multiple of y but for rounding.
    exact = te.round((x - rest) / y) - te.select(is_below, number(1, x), number(0, x))
    # A zero has the sign of the quotient.
    return te.select(y == 0, x / y, te.select(exact == 0, te.copysign(exact, x / y), exact))


def _floor_mod(x: te.Expr, y: te.Expr) -> te.Expr:
    """The remainder with the sign of the divisor; of integers divided by 0, which floats say no number of, 0."""
    if not is_float_expr(x):
        return te.select(y == 0, number(0, x), x - te.floordiv(x, y) * y)
    return te.floormod(x, y)


def _mod(x: te.Expr, y: te.Expr) -> te.Expr:
    """The remainder with the sign of the dividend."""
    return te.fmod(x, y) if is_float_expr(x) else te.truncmod(x, y)


def _log_add_exp(x: te.Expr, y: te.Expr) -> te.Expr:
    """Without overflow: the larger operand is taken out of the logarithm."""
    top = te.maximum(x, y)
    return te.select(x == y, x + te.log(te.const(2.0, x.dtype)), top + te.log1p(te.exp(-te.abs(x - y))))


def _sign(x: te.Expr) -> te.Expr:
    if not isinstance(x.dtype, IndexType) and is_unsigned(x.dtype):
        return te.minimum(x, 1)
    return te.sign(x)


def _gelu(x: te.Expr) -> te.Expr:
    return _with_share(x, te.erf(te.abs(x * SQRT_HALF)))


def _gelu_tanh(x: te.Expr) -> te.Expr:
    size = te.abs(x)
    return _with_share(x, te.tanh(te.abs(SQRT_2_OVER_PI * (size + 0.044715 * size * size * size))))


def _with_share(x: te.Expr, share: te.Expr) -> te.Expr:
    """`x / 2 * (1 + f(x))`, given `f(|x|)` of an odd function, whose sign need not be computed."""
    half = x / 2  # the greatest numbers stay finite
    return half + te.abs(half) * share


def _selu(x: te.Expr) -> te.Expr:
    return SELU_SCALE * te.select(x > 0, x, SELU_ALPHA * te.expm1(te.minimum(x, 0)))


UNARY: dict[str, Unary] = {
    "abs": te.abs,
    "acos": te.acos,
    "acosh": te.acosh,
    "asin": te.asin,
    "asinh": te.asinh,
    "atan": te.atan,
    "atanh": te.atanh,
    "bitwise_not": lambda x: ~x,
    "ceil": te.ceil,
    "cos": te.cos,
    "cosh": te.cosh,
    "erf": te.erf,
    "exp": te.exp,
    "floor": te.floor,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "isfinite": te.isfinite,
    "isinf": te.isinf,
    "isnan": te.isnan,
    "log": te.log,
    "logical_not": lambda x: te.logical_not(truth(x)),
    "negative": lambda x: -x,
    "reciprocal": lambda x: 1 / x,
    "relu": lambda x: te.maximum(x, 0),
    "round": te.round,
    "rsqrt": te.rsqrt,
    "selu": _selu,
    "sigmoid": te.sigmoid,
    "sign": _sign,
    "silu": lambda x: x * te.sigmoid(x),
    "sin": te.sin,
    "sinh": te.sinh,
    "sqrt": te.sqrt,
    "square": lambda x: x * x,
    "tan": te.tan,
    "tanh": te.tanh,
    "trunc": te.trunc,
}

BINARY: dict[str, Binary] = {
    "add": lambda x, y: x + y,
    "atan2": te.atan2,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
    "divide": _divide,
    "equal": lambda x, y: x == y,
    "floor_divide": _floor_divide,
    "floor_mod": _floor_mod,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "left_shift": lambda x, y: x << y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "log_add_exp": _log_add_exp,
    "logical_and": lambda x, y: te.logical_and(truth(x), truth(y)),
    "logical_or": lambda x, y: te.logical_or(truth(x), truth(y)),
    "logical_xor": lambda x, y: truth(x) != truth(y),
    "maximum": te.maximum,
    "minimum": te.minimum,
    "mod": _mod,
    "multiply": lambda x, y: x * y,
    "not_equal": lambda x, y: x != y,
    "power": te.pow,
    "right_shift": lambda x, y: x >> y,
    "subtract": lambda x, y: x - y,
}

TERNARY: dict[str, Ternary] = {"ewise_fma": lambda x, y, z: te.fma(x, y, z) if is_float(x.dtype) else x * y + z}

SCALARS: dict[str, Callable[..., te.Expr]] = {**UNARY, **BINARY, **TERNARY}


@legalizes(ElementwiseOp)
def elementwise(kernel: Kernel, op: ElementwiseOp) -> te.Tensor:
    """The scalar function on every element of the broadcast operands."""
    tensors = [kernel.tensor(operand) for operand in op.operands]
    shape, name = tensors[0].shape if len(tensors) == 1 else kernel.shape(op.results[0]), op.SCALAR.name
    return te.compute(shape, lambda *i: apply(name, *(broadcast_load(x, shape, i) for x in tensors)), name=name)

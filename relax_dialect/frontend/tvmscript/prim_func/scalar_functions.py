"""The functions of `T` on scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from relax_dialect.frontend.tvmscript.prim_func.promotion import promoted
from tir_dialect import te
from tir_dialect.dtypes import finite_range
from tir_dialect.te import nodes, operators
from tir_dialect.te.coerce import is_float, is_index
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import DTypeLike, to_dtype

Function = Callable[..., Any]
"""Takes scalars, dimensions and numbers, gives a scalar."""


def _on_floats(function: Function) -> Function:
    """A function of floats, which integers are converted for."""

    def apply(*values: Any) -> Scalar:
        operands = promoted(*values)
        if not is_float(operands[0].dtype):
            operands = tuple(te.cast(operand, "f32") for operand in operands)
        return function(*operands)

    return apply


def _promoting(function: Function) -> Function:
    """A function of operands of one dtype."""
    return lambda *values: function(*promoted(*values))


def _truncating(function: Function, index_function: Function, float_function: Function) -> Function:
    """Division of integers towards zero; on indices, which are seldom negative, through `i64`."""

    def apply(*values: Any) -> Scalar:
        one, other = promoted(*values)
        if is_float(one.dtype):
            return float_function(one, other)
        if not is_index(one.dtype):
            return function(one, other)
        if isinstance(one, nodes.Size) and isinstance(other, nodes.Size):
            return index_function(one, other)
        return function(te.cast(one, "i64"), te.cast(other, "i64"))

    return apply


def _on_integers(function: Function) -> Function:
    """A function of the bits of integers, for which indices have 64."""

    def apply(*values: Any) -> Scalar:
        operands = promoted(*values)
        return function(*(te.cast(operand, "i64") if is_index(operand.dtype) else operand for operand in operands))

    return apply


def _lazy_and(one: Any, other: Any) -> Scalar:
    """Both conditions; the second is evaluated only if the first one holds."""
    return te.if_then_else(_truth(one), _truth(other), False)


def _lazy_or(one: Any, other: Any) -> Scalar:
    """One of the conditions; the second is evaluated only if the first one does not hold."""
    return te.if_then_else(_truth(one), te.cast(_truth(True), "i1"), _truth(other))


def _truth(value: Any) -> Scalar:
    if isinstance(value, bool | int | float):
        return te.const(bool(value), "i1")
    return te.cast(promoted(value)[0], "i1")


def logical_and(one: Any, other: Any) -> Scalar:
    """Both conditions; what the second one loads is guarded by the first one."""
    return _lazy_and(one, other) if loads(other) else te.logical_and(_truth(one), _truth(other))


def logical_or(one: Any, other: Any) -> Scalar:
    """One of the conditions; what the second one loads is guarded by the first one."""
    return _lazy_or(one, other) if loads(other) else te.logical_or(_truth(one), _truth(other))


def logical_not(value: Any) -> Scalar:
    """Whether the condition does not hold."""
    return te.logical_not(_truth(value))


def loads(value: Any) -> bool:
    """Whether a scalar reads memory."""
    from tir_dialect.te.tree import post_order

    return isinstance(value, Scalar) and any(isinstance(each, nodes.Load) for each in post_order((value,)))


def _select(condition: Any, then: Any, otherwise: Any) -> Scalar:
    return te.select(_truth(condition), *promoted(then, otherwise))


def _if_then_else(condition: Any, then: Any, otherwise: Any) -> Scalar:
    return te.if_then_else(_truth(condition), *promoted(then, otherwise))


def _extreme(function: Function, index: int) -> Function:
    def apply(dtype: DTypeLike) -> Scalar:
        kind = to_dtype(dtype)
        if not is_float(kind):
            return function(kind)
        return te.const(finite_range(kind)[index], kind)

    return apply


def _infinity(dtype: DTypeLike) -> Scalar:
    return te.const(float("inf"), to_dtype(dtype))


def _exp10(x: Any) -> Scalar:
    (operand,) = promoted(x)
    return te.pow(te.const(10.0, operand.dtype if is_float(operand.dtype) else "f32"), operand)


def multiply_shift(x: Any, y: Any, q: Any, left: Any, right: Any) -> Scalar:
    """`x * 2 ** left * y * 2 ** -(q + right)` of 32-bit fixed-point numbers, computed in 64 bits and rounded."""
    wide, other, shift, more, less = (te.cast(promoted(each)[0], "i64") for each in (x, y, q, left, right))
    total = shift + less
    rounding = operators.left_shift(te.const(1, "i64"), total - te.const(1, "i64"))
    scaled = operators.left_shift(wide, more) * other + rounding
    return te.cast(operators.right_shift(scaled, total), "i32")


def _multiply_shift_per_axis(x: Any, y: Any, left: Any, right: Any, q: Any, is_left: Any, is_right: Any) -> Scalar:
    """As `multiply_shift`; the two truth values say which shifts there are."""
    return multiply_shift(x, y, q, _select(is_left, left, 0), _select(is_right, right, 0))


_ONE_FLOAT = (
    "acos acosh asin asinh atan atanh cos cosh erf exp exp2 expm1 log log10 log1p log2 rsqrt sigmoid sin sinh sqrt tan "
    "tanh cbrt"
)

FUNCTIONS: Mapping[str, Function] = {
    **{name: _on_floats(getattr(te, name)) for name in _ONE_FLOAT.split()},
    "atan2": _on_floats(te.atan2),
    "copysign": _on_floats(te.copysign),
    "fma": _on_floats(te.fma),
    "hypot": _on_floats(te.hypot),
    "nextafter": _on_floats(te.nextafter),
    "ldexp": te.ldexp,
    "exp10": _on_floats(_exp10),
    "pow": _promoting(te.pow),
    "power": _promoting(te.pow),
    "fmod": _on_floats(te.fmod),
    "floor": _promoting(te.floor),
    "ceil": _promoting(te.ceil),
    "trunc": _promoting(te.trunc),
    "round": _promoting(te.round),
    "nearbyint": _promoting(te.round),
    "abs": _promoting(te.abs),
    "fabs": _promoting(te.abs),
    "max": _promoting(te.maximum),
    "min": _promoting(te.minimum),
    "floordiv": _promoting(te.floordiv),
    "floormod": _promoting(te.floormod),
    "indexdiv": _promoting(te.floordiv),
    "indexmod": _promoting(te.floormod),
    "ceildiv": _promoting(te.ceildiv),
    "truncdiv": _truncating(te.truncdiv, te.floordiv, te.truncdiv),
    "truncmod": _truncating(te.truncmod, te.floormod, te.fmod),
    "Div": _truncating(te.truncdiv, te.floordiv, te.div),
    "Mod": _truncating(te.truncmod, te.floormod, te.fmod),
    "FloorDiv": _promoting(te.floordiv),
    "FloorMod": _promoting(te.floormod),
    "Add": _promoting(operators.add),
    "Sub": _promoting(operators.subtract),
    "Mul": _promoting(operators.multiply),
    "Max": _promoting(te.maximum),
    "Min": _promoting(te.minimum),
    "shift_left": _on_integers(operators.left_shift),
    "shift_right": _on_integers(operators.right_shift),
    "bitwise_and": _on_integers(operators.bitwise_and),
    "bitwise_or": _on_integers(operators.bitwise_or),
    "bitwise_xor": _on_integers(operators.bitwise_xor),
    "bitwise_not": _on_integers(operators.bitwise_not),
    "LShift": _on_integers(operators.left_shift),
    "RShift": _on_integers(operators.right_shift),
    "BitwiseAnd": _on_integers(operators.bitwise_and),
    "BitwiseOr": _on_integers(operators.bitwise_or),
    "BitwiseXor": _on_integers(operators.bitwise_xor),
    "BitwiseNot": _on_integers(operators.bitwise_not),
    "EQ": _promoting(partial(operators.compare, "eq")),
    "NE": _promoting(partial(operators.compare, "ne")),
    "LT": _promoting(partial(operators.compare, "lt")),
    "LE": _promoting(partial(operators.compare, "le")),
    "GT": _promoting(partial(operators.compare, "gt")),
    "GE": _promoting(partial(operators.compare, "ge")),
    "And": logical_and,
    "Or": logical_or,
    "Not": logical_not,
    "Select": _select,
    "if_then_else": _if_then_else,
    "isnan": _promoting(te.isnan),
    "isinf": _promoting(te.isinf),
    "isfinite": _promoting(te.isfinite),
    "q_multiply_shift_per_axis": _multiply_shift_per_axis,
    "popcount": _promoting(te.popcount),
    "clz": _promoting(te.count_leading_zeros),
}
"""What is computed of scalars alone."""

OF_DTYPES: Mapping[str, Function] = {
    "min_value": _extreme(te.min_value, 0),
    "max_value": _extreme(te.max_value, 1),
    "infinity": _infinity,
}
"""Constants by dtype."""

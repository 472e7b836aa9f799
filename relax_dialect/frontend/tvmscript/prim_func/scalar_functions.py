"""The functions of `T` on scalars, and the dtype that TVM brings their operands to."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from xdsl.dialects.builtin import AnyFloat, IntegerType

from tir_dialect import te
from tir_dialect.dims import Dim
from tir_dialect.dtypes import finite_range
from tir_dialect.te import nodes, operators
from tir_dialect.te.coerce import adopt, is_bool, is_float, is_index, is_unsigned
from tir_dialect.te.expr import INDEX, DType
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.nodes import post_order
from tir_dialect.te.operators import DTypeLike, to_dtype

MAX_LANES = 1 << 16
"""The longest vector that is read."""

_LANES = re.compile(r"([a-z]+\d*(?:_\w+)?)x(\d+)")


def split_dtype(name: str) -> tuple[str, int | None]:
    """`float32x4` as the dtype of an element and the number of lanes, which `float32` has none of."""
    found = _LANES.fullmatch(name)
    return (name, None) if found is None else (_SHORT.get(found[1], found[1]), int(found[2]))


_SHORT = {
    "boolean": "bool",
    "uint1": "bool",
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


def element_name(name: str) -> str:
    """A dtype by the name that everything knows it under: `T.boolean` is `bool`, `T.u8` is `uint8`."""
    return _SHORT.get(name, name)


def to_scalar(value: Scalar | Dim | float) -> Scalar | float:
    """Dimensions as indices; numbers stay numbers, which have no dtype yet."""
    return nodes.size(value) if isinstance(value, Dim) else value


def common_dtype(one: DType, other: DType) -> DType:
    """The dtype of an operation on both; `TypeError` if there is none."""
    if one == other:
        return one
    if is_float(one) or is_float(other):
        if not isinstance(one, AnyFloat):
            return other
        if not isinstance(other, AnyFloat) or one.bitwidth > other.bitwidth:
            return one
        if one.bitwidth == other.bitwidth:
            raise TypeError(f"operands have dtypes {one} and {other}; convert one side with T.Cast")
        return other
    if is_index(one):
        return other if not is_bool(other) else one
    if is_index(other):
        return one if not is_bool(one) else other
    if is_bool(one) or is_bool(other):
        return other if is_bool(one) else one
    widths = [kind.width.data for kind in (one, other) if isinstance(kind, IntegerType)]
    if is_unsigned(one) != is_unsigned(other) and widths[0] == widths[1]:
        raise TypeError(f"operands have dtypes {one} and {other}; convert one side with T.Cast")
    return one if widths[0] >= widths[1] else other


def memory_dtype(dtype: DType) -> DType:
    """The dtype by which memory keeps scalars of a dtype: indices have 64 bits there."""
    return to_dtype("int64") if is_index(dtype) else dtype


def promoted(*values: Scalar | Dim | float) -> tuple[Scalar, ...]:
    """The operands, all of one dtype; numbers take that of the others, or `index` and `f32` if there are no others."""
    scalars = [to_scalar(value) for value in values]
    dtype: DType | None = None
    for scalar in scalars:
        if isinstance(scalar, Scalar):
            dtype = scalar.dtype if dtype is None else common_dtype(dtype, scalar.dtype)
    if dtype is None:
        dtype = to_dtype("f32") if any(isinstance(value, float) for value in scalars) else INDEX
    if any(isinstance(value, float) for value in scalars) and not is_float(dtype):
        dtype = to_dtype("f32")
    return tuple(converted(scalar, dtype) for scalar in scalars)


def converted(value: Scalar | Dim | float, dtype: DType) -> Scalar:
    """A scalar or number as a scalar of `dtype`."""
    scalar = to_scalar(value)
    if not isinstance(scalar, Scalar):
        if isinstance(scalar, float) and not is_float(dtype):
            return te.cast(adopt(scalar, to_dtype("f64")), dtype)
        return adopt(bool(scalar), dtype) if is_bool(dtype) else adopt(scalar, dtype)
    return scalar if scalar.dtype == dtype else te.cast(scalar, dtype)


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


def _truth(value: Any) -> Scalar:
    if isinstance(value, bool | int | float):
        return te.const(bool(value), "i1")
    return te.cast(promoted(value)[0], "i1")


def logical_and(one: Any, other: Any) -> Scalar:
    """Both conditions; what the second one loads is guarded by the first one."""
    return (
        te.if_then_else(_truth(one), _truth(other), False)
        if loads(other)
        else te.logical_and(_truth(one), _truth(other))
    )


def logical_or(one: Any, other: Any) -> Scalar:
    """One of the conditions; what the second one loads is guarded by the first one."""
    return (
        te.if_then_else(_truth(one), te.cast(_truth(True), "i1"), _truth(other))
        if loads(other)
        else te.logical_or(_truth(one), _truth(other))
    )


def logical_not(value: Any) -> Scalar:
    """Whether the condition does not hold."""
    return te.logical_not(_truth(value))


def loads(value: Any) -> bool:
    """Whether a scalar reads memory."""
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

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "Add",
    ast.Sub: "Sub",
    ast.Mult: "Mul",
    ast.FloorDiv: "FloorDiv",
    ast.Mod: "FloorMod",
    ast.Pow: "pow",
    ast.LShift: "shift_left",
    ast.RShift: "shift_right",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}
"""The functions that operators of Python stand for."""

_DIVISIONS = "Div Mod FloorDiv FloorMod floordiv floormod indexdiv indexmod ceildiv truncdiv truncmod"

DIVISIONS = frozenset(_DIVISIONS.split(" "))
"""Functions of integers that have no result for a second operand 0."""

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "EQ",
    ast.NotEq: "NE",
    ast.Lt: "LT",
    ast.LtE: "LE",
    ast.Gt: "GT",
    ast.GtE: "GE",
}
"""The functions that comparisons of Python stand for."""


def scalar_function(name: str) -> Callable[..., Scalar]:
    """The function of `T` on scalars, or what an operator means."""
    if name.startswith("cast:"):
        return partial(_cast, to_dtype(name.removeprefix("cast:")))
    return _OPERATOR_FUNCTIONS.get(name) or FUNCTIONS[name]


def called(name: str, operands: Sequence[Scalar | Dim | float]) -> Scalar:
    """The function of scalars; `TypeError` if it takes another number of them."""
    try:
        return scalar_function(name)(*operands)
    except TypeError as error:
        if "positional argument" in str(error):
            raise TypeError(f"T.{name} expected another number of operands, got {len(operands)}") from None
        raise


def _cast(dtype: DType, value: Scalar | Dim | float) -> Scalar:
    return converted(value, dtype)


def _divide(*values: Scalar | Dim | float) -> Scalar:
    one, other = promoted(*values)
    return one / other


def _negative(value: Scalar | Dim | float) -> Scalar:
    return -promoted(value)[0]


_OPERATOR_FUNCTIONS: dict[str, Callable[..., Scalar]] = {
    "Divide": _divide,
    "Negative": _negative,
}

"""Elementwise operators of two operands, with broadcasting and promotion."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import f32, f64, i1
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node, Result, converts, promoted
from relax_dialect.frontend.torch.program import Refusal
from tir_dialect import te
from tir_dialect.dtypes import is_bool, is_float

Function = Callable[[Expr, Expr], Expr]


def overloads(*names: str) -> list[str]:
    """The overloads that take a tensor and a tensor or number."""
    return [f"aten.{name}.{overload}" for name in names for overload in ("Tensor", "Scalar")]


def operands(node: Node, dtype: Attribute | None = None) -> tuple[Expr, Expr]:
    """Both operands in one dtype: the common one unless another is given."""
    common = promoted([node.value("self"), node.value("other")]) if dtype is None else dtype
    return node.tensor("self", common), node.tensor("other", common)


_SAME: dict[str, Function] = {
    "atan2": op.atan2,
    "arctan2": op.atan2,
    "bitwise_left_shift": op.left_shift,
    "bitwise_right_shift": op.right_shift,
    "__lshift__": op.left_shift,
    "__rshift__": op.right_shift,
    "logaddexp": op.log_add_exp,
    "maximum": op.maximum,
    "minimum": op.minimum,
    "mul": op.multiply,
}

_OF_BOOL: dict[str, Function] = {"mul": op.logical_and, "maximum": op.logical_or, "minimum": op.logical_and}


@converts(
    *overloads("__lshift__", "__rshift__", "mul"),
    *(f"aten.{name}.default" for name in ("arctan2", "atan2", "logaddexp", "maximum", "minimum")),
    *(
        f"aten.bitwise_{side}_shift.{overload}"
        for side in ("left", "right")
        for overload in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")
    ),
)
def binary(node: Node) -> Result:
    """The relax operator of the same meaning."""
    dtype = node.out_dtype()
    function = _OF_BOOL[node.name] if is_bool(dtype) else _SAME[node.name]
    return function(*operands(node, dtype))


@converts("aten.max.other", "aten.min.other")
def extreme(node: Node) -> Result:
    """The greater or lesser of both."""
    return (greater_of if node.name == "max" else lesser_of)(*operands(node))


def greater_of(x: Expr, y: Expr) -> Expr:
    """The maximum; of truth values, whether one is true."""
    return op.logical_or(x, y) if x.dtype == i1 else op.maximum(x, y)


def lesser_of(x: Expr, y: Expr) -> Expr:
    """The minimum; of truth values, whether both are true."""
    return op.logical_and(x, y) if x.dtype == i1 else op.minimum(x, y)


def ordered(x: Expr) -> Expr:
    """Numbers in the order of some elements: 0 and 1 for truth values."""
    return op.astype(x, "ui8") if x.dtype == i1 else x


@converts(*overloads("add", "sub", "rsub", "subtract"))
def add(node: Node) -> Result:
    """`x + alpha * y`, `x - alpha * y` and `y - alpha * x`."""
    dtype = node.out_dtype()
    x, y = operands(node, dtype)
    if node.name == "rsub":
        x, y = y, x
    if node.value("alpha") not in (None, 1):
        y = op.multiply(y, node.tensor("alpha", dtype))
    if is_bool(dtype):
        return op.logical_or(x, y)
    return op.add(x, y) if node.name == "add" else op.subtract(x, y)


_COMPARISONS: dict[str, Function] = {
    "eq": op.equal,
    "ge": op.greater_equal,
    "gt": op.greater,
    "le": op.less_equal,
    "lt": op.less,
    "ne": op.not_equal,
}


@converts(*overloads(*_COMPARISONS))
def compare(node: Node) -> Result:
    """Comparisons in the dtype that both have in common."""
    x, y = operands(node)
    return _COMPARISONS[node.name](ordered(x), ordered(y))


_LOGIC: dict[str, tuple[Function, Function]] = {
    "and": (op.logical_and, op.bitwise_and),
    "or": (op.logical_or, op.bitwise_or),
    "xor": (op.logical_xor, op.bitwise_xor),
}


@converts(
    *overloads(*(f"bitwise_{name}" for name in _LOGIC), *(f"__{name}__" for name in _LOGIC)),
    *(f"aten.bitwise_{name}.Scalar_Tensor" for name in _LOGIC),
)
def bitwise(node: Node) -> Result:
    """Bit by bit."""
    dtype = node.out_dtype()
    function = _LOGIC[node.name.removeprefix("bitwise_").strip("_")][0 if is_bool(dtype) else 1]
    return function(*operands(node, dtype))


@converts(*(f"aten.logical_{name}.default" for name in _LOGIC))
def logical(node: Node) -> Result:
    """Of truth values; numbers are true unless they are zero."""
    function = _LOGIC[node.name.removeprefix("logical_")][0]
    return function(truth(node, node.tensor("self")), truth(node, node.tensor("other")))


def truth(node: Node, x: Expr) -> Expr:
    """Whether elements are not zero."""
    return x if x.dtype == i1 else op.not_equal(x, node.like(0, x))


@converts(*overloads("div", "divide", "true_divide"), "aten.div.Tensor_mode", "aten.div.Scalar_mode")
def divide(node: Node) -> Result:
    """The quotient: exact, rounded toward zero, or down."""
    mode, dtype = node.text("rounding_mode"), node.out_dtype()
    x, y = operands(node, dtype)
    if mode == "floor":
        return floor_quotient(x, y)
    quotient = op.divide(x, y)
    return op.trunc(quotient) if mode == "trunc" and is_float(dtype) else quotient


@converts("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(node: Node) -> Result:
    """The quotient rounded down."""
    return floor_quotient(*operands(node))


def floor_quotient(x: Expr, y: Expr) -> Expr:
    """`floor(x / y)`."""
    return op.floor_divide(x, y)


@converts(*overloads("remainder"), "aten.remainder.Scalar_Tensor")
def remainder(node: Node) -> Result:
    """What is left of floor division, with the sign of the divisor."""
    return op.floor_mod(*operands(node))


@converts(*overloads("fmod"))
def fmod(node: Node) -> Result:
    """What is left of division toward zero, with the sign of the dividend."""
    return op.mod(*operands(node))


@converts("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def power(node: Node) -> Result:
    """Powers; of small whole exponents products, of one half the root."""
    dtype = node.out_dtype()
    exponent: Any = node.value("exponent")
    x = node.tensor("self", dtype)
    if isinstance(exponent, int | float) and is_float(dtype):
        simple = _POWERS.get(float(exponent))
        if simple is not None:
            return simple(x)
    if isinstance(exponent, int) and exponent < 0:
        raise Refusal("integers to negative powers are not supported")
    return op.power(x, node.tensor("exponent", dtype))


_POWERS: dict[float, Callable[[Expr], Expr]] = {
    0.5: op.sqrt,
    1.0: lambda x: x,
    2.0: lambda x: op.multiply(x, x),
    3.0: lambda x: op.multiply(op.multiply(x, x), x),
    -0.5: op.rsqrt,
    -1.0: op.reciprocal,
}


@converts("aten.copysign.Tensor", "aten.copysign.Scalar")
def copysign(node: Node) -> Result:
    """The size of one with the sign of the other, which a zero and what is no number have, too."""
    x, y = operands(node, node.out_dtype())

    def sign_of(y: te.Tensor) -> te.Tensor:
        return te.compute(y.shape, lambda *i: te.copysign(te.const(1, y.dtype), y[i]), name="sign_of")

    return op.multiply(op.abs(x), node.te(sign_of, y))


@converts("aten.hypot.default")
def hypot(node: Node) -> Result:
    """`sqrt(x * x + y * y)`, whose squares neither overflow nor vanish; infinite if one of both is."""
    x, y = (op.abs(each) for each in operands(node, node.out_dtype()))
    long, short = op.maximum(x, y), op.minimum(x, y)
    zero, one, infinity = (node.like(number, x) for number in (0.0, 1.0, math.inf))
    ratio = op.divide(short, op.where(op.equal(long, zero), one, long))
    found = op.multiply(long, op.sqrt(op.add(one, op.multiply(ratio, ratio))))
    either = op.logical_or(op.equal(x, infinity), op.equal(y, infinity))
    return op.where(either, infinity, found)


@converts("aten.fmax.default", "aten.fmin.default")
def extreme_number(node: Node) -> Result:
    """The greater or lesser of both; one that is no number does not count."""
    x, y = operands(node)
    made = (greater_of if node.name == "fmax" else lesser_of)(x, y)
    if not is_float(node.out_dtype()):
        return made
    return op.where(op.isnan(x), y, op.where(op.isnan(y), x, made))


@converts("aten.nextafter.default")
def nextafter(node: Node) -> Result:
    """The next number from one towards the other."""
    x, y = (op.broadcast_to(each, node.out_dims()) for each in operands(node, node.out_dtype()))
    is_short = node.out_dtype() not in (f32, f64)

    def kernel(x: te.Tensor, y: te.Tensor) -> te.Tensor:
        next_one = _next_of_16_bits if is_short else te.nextafter
        return te.compute(x.shape, lambda *i: next_one(x[i], y[i]), name="nextafter")

    return node.te(kernel, x, y, name="nextafter")


def _next_of_16_bits(x: te.Expr, y: te.Expr) -> te.Expr:
    """The number with the next bits: those of the sign and then of the magnitude."""
    bits = te.cast(te.reinterpret(x, "i16"), "i32")
    wide_x, wide_y = te.cast(x, "f32"), te.cast(y, "f32")
    grows = (wide_y > wide_x) == (wide_x > 0)
    near = te.select(grows, bits + 1, bits - 1)
    least = te.select(wide_y > 0, te.const(1, "i32"), te.const(-(1 << 15) + 1, "i32"))
    found = te.reinterpret(te.cast(te.select(wide_x == 0, least, near), "i16"), x.dtype)
    return te.select(
        te.logical_or(te.isnan(wide_x), wide_x == wide_y),
        te.select(te.isnan(wide_x), x, y),
        te.select(te.isnan(wide_y), y, found),
    )


@converts("aten.ldexp.Tensor")
def ldexp(node: Node) -> Result:
    """`x * 2 ** y`."""
    x, y = operands(node, node.out_dtype())
    return op.multiply(x, op.power(node.like(2, y), y))

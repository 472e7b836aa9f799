"""Elementwise operators of one, two or more operands."""

from __future__ import annotations

from functools import reduce

from xdsl.dialects.builtin import f64, i1

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect import te
from tir_dialect.dtypes import is_bool, is_float

_UNARY = {
    "Abs": op.abs,
    "Acos": op.acos,
    "Acosh": op.acosh,
    "Asin": op.asin,
    "Asinh": op.asinh,
    "Atan": op.atan,
    "Atanh": op.atanh,
    "BitwiseNot": op.bitwise_not,
    "Ceil": op.ceil,
    "Cos": op.cos,
    "Cosh": op.cosh,
    "Erf": op.erf,
    "Exp": op.exp,
    "Floor": op.floor,
    "IsNaN": op.isnan,
    "Log": op.log,
    "Neg": op.negative,
    "Not": op.logical_not,
    "Reciprocal": op.reciprocal,
    "Round": op.round,
    "Sigmoid": op.sigmoid,
    "Sign": op.sign,
    "Sin": op.sin,
    "Sinh": op.sinh,
    "Sqrt": op.sqrt,
    "Tan": op.tan,
    "Tanh": op.tanh,
}


@converts(*_UNARY)
def unary(node: Node) -> Result:
    """The relax operator of the same meaning."""
    return _UNARY[node.op_type](node[0])


@converts("Identity")
def identity(node: Node) -> Result:
    """The operand itself."""
    return node.value(0)


@converts("IsInf")
def isinf(node: Node) -> Result:
    """Infinities of the signs that are asked for."""
    x, zero = node[0], node.like(0)
    positive, negative = node.integer("detect_positive", 1), node.integer("detect_negative", 1)
    if positive and negative:
        return op.isinf(x)
    if not positive and not negative:
        return op.logical_and(op.isinf(x), node.const(False, i1))
    side = op.greater(x, zero) if positive else op.less(x, zero)
    return op.logical_and(op.isinf(x), side)


@converts("BitCast")
def bitcast(node: Node) -> Result:
    """The same bits read as another dtype of equal width."""
    dtype = node.element_type("to")
    if dtype is None:
        return node.value(0)

    if is_bool(node.dtype()) or is_bool(dtype):
        return op.astype(node[0], dtype)

    def reread(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *i: te.reinterpret(x[i], str(dtype)), name="bitcast")

    return node.te(reread, node[0])


_BINARY = {
    "Add": op.add,
    "And": op.logical_and,
    "BitwiseAnd": op.bitwise_and,
    "BitwiseOr": op.bitwise_or,
    "BitwiseXor": op.bitwise_xor,
    "Div": op.divide,
    "Greater": op.greater,
    "GreaterOrEqual": op.greater_equal,
    "Less": op.less,
    "LessOrEqual": op.less_equal,
    "Mul": op.multiply,
    "Or": op.logical_or,
    "Sub": op.subtract,
    "Xor": op.logical_xor,
}


@converts(*_BINARY)
def binary(node: Node) -> Result:
    """The relax operator of the same meaning."""
    return _BINARY[node.op_type](node[0], node[1])


@converts("Equal")
def equal(node: Node) -> Result:
    """Equality, of truth values too."""
    return op.equal(node[0], node[1])


@converts("Max", "Min", "Sum")
def folded(node: Node) -> Result:
    """A function of two tensors applied to all of them in turn."""
    function = {"Max": op.maximum, "Min": op.minimum, "Sum": op.add}[node.op_type]
    return reduce(function, [node[index] for index in range(len(node.inputs))])


@converts("Mean")
def mean(node: Node) -> Result:
    """The mean of the operands."""
    count = len(node.inputs)
    if count == 1:
        return node.value(0)
    return op.divide(reduce(op.add, [node[index] for index in range(count)]), node.like(count))


@converts("Mod")
def mod(node: Node) -> Result:
    """The remainder with the divisor's sign, or with `fmod` the dividend's."""
    x, y = node[0], node[1]
    return truncated_remainder(x, y) if node.integer("fmod") else op.floor_mod(x, y)


def truncated_remainder(x: Expr, y: Expr) -> Expr:
    """`x - trunc(x / y) * y`, with the sign of `x`."""
    return op.mod(x, y)


@converts("Pow")
def power(node: Node) -> Result:
    """Powers; exponents of another dtype are converted, and powers of integers to a fraction go by way of `f64`."""
    x, y = node[0], node[1]
    if x.dtype == y.dtype:
        return op.power(x, y)
    if x.dtype is not None and y.dtype is not None and is_float(y.dtype) and not is_float(x.dtype):
        exponent = op.astype(y, f64)
        made = op.power(op.astype(x, f64), exponent)
        is_whole = op.logical_and(
            op.equal(exponent, op.floor(exponent)), op.greater_equal(exponent, node.const(0, f64))
        )
        return op.astype(op.where(is_whole, op.round(made), made), x.dtype)
    return op.power(x, op.astype(y, node.dtype(0)))


@converts("BitShift")
def shift(node: Node) -> Result:
    """Shifts, zeros coming in."""
    return (op.left_shift if node.text("direction") == "LEFT" else op.right_shift)(node[0], node[1])


@converts("Where")
def where(node: Node) -> Result:
    """Elements of one or the other tensor."""
    return op.where(node[0], node[1], node[2])


@converts("Clip", since=11)
def clip(node: Node) -> Result:
    """Elements no smaller and no larger than given ones: the least is applied first."""
    x = node[0]
    for index, function in ((1, op.maximum), (2, op.minimum)):
        bound = node.optional(index)
        if bound is not None:
            x = function(x, bound)
    return x


@converts("Clip")
def clip_attributes(node: Node) -> Result:
    """Before version 11 the bounds are attributes."""
    x = node[0]
    for name, function in (("min", op.maximum), ("max", op.minimum)):
        if name in node.attributes:
            x = function(x, node.like(node.number(name)))
    return x

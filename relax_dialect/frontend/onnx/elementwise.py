"""Elementwise operators of one, two or more operands, and activations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from xdsl.dialects.builtin import f64, i1

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.node import Node, Result, converts
from relax_dialect.frontend.onnx.values import UseFunction
from tir_dialect import te
from tir_dialect.dims import Dim
from tir_dialect.dtypes import is_bool, is_float
from tir_dialect.te.nodes import IterKind

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


@converts("Relu")
def relu(node: Node) -> Result:
    """`max(x, 0)`."""
    return op.nn.relu(node[0])


@converts("LeakyRelu")
def leaky_relu(node: Node) -> Result:
    """`x` if positive, else `alpha * x`."""
    return op.nn.leakyrelu(node[0], node.number("alpha", 0.01))


@converts("PRelu")
def prelu(node: Node) -> Result:
    """`x` if positive, else `slope * x`, the slope broadcast."""
    x = node[0]
    return op.where(op.less(x, node.like(0)), op.multiply(x, node[1]), x)


@converts("Elu")
def elu(node: Node) -> Result:
    """`x` if positive, else `alpha * (exp(x) - 1)`."""
    return _elu(node, node[0], node.number("alpha", 1.0), 1.0)


@converts("Celu")
def celu(node: Node) -> Result:
    """`max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)`."""
    alpha = node.number("alpha", 1.0)
    return _elu(node, node[0], alpha, alpha)


@converts("Selu")
def selu(node: Node) -> Result:
    """`gamma` times the exponential unit."""
    alpha = node.number("alpha", 1.67326319217681884765625)
    return op.multiply(_elu(node, node[0], alpha, 1.0), node.like(node.number("gamma", 1.05070102214813232421875)))


def _elu(node: Node, x: Expr, alpha: float, scale: float) -> Expr:
    inner = x if scale == 1.0 else op.divide(x, node.like(scale))
    negative = op.multiply(op.subtract(op.exp(inner), node.like(1)), node.like(alpha))
    return op.where(op.greater(x, node.like(0)), x, negative)


@converts("ThresholdedRelu")
def thresholded_relu(node: Node) -> Result:
    """`x` if above `alpha`, else 0."""
    x = node[0]
    return op.where(op.greater(x, node.like(node.number("alpha", 1.0))), x, node.like(0))


@converts("HardSigmoid")
def hard_sigmoid(node: Node) -> Result:
    """`max(0, min(1, alpha * x + beta))`."""
    return hard(node, node[0], node.number("alpha", 0.2), node.number("beta", 0.5))


@converts("HardSwish")
def hard_swish(node: Node) -> Result:
    """`x` times a hard sigmoid."""
    return op.multiply(node[0], hard(node, node[0], 1.0 / 6.0, 0.5))


def hard(node: Node, x: Expr, alpha: float, beta: float) -> Expr:
    """`max(0, min(1, alpha * x + beta))`."""
    line = op.add(op.multiply(x, node.like(alpha)), node.like(beta))
    return op.maximum(op.minimum(line, node.like(1)), node.like(0))


@converts("Softplus")
def softplus(node: Node) -> Result:
    """`log(exp(x) + 1)`, without overflow."""
    return stable_softplus(node, node[0])


def stable_softplus(node: Node, x: Expr) -> Expr:
    """`max(x, 0) + log(1 + exp(-|x|))`."""
    small = op.log(op.add(op.exp(op.negative(op.abs(x))), node.like(1)))
    return op.add(op.maximum(x, node.like(0)), small)


@converts("Softsign")
def softsign(node: Node) -> Result:
    """`x / (1 + |x|)`."""
    x = node[0]
    return op.divide(x, op.add(op.abs(x), node.like(1)))


@converts("Mish")
def mish(node: Node) -> Result:
    """`x * tanh(softplus(x))`."""
    return op.multiply(node[0], op.tanh(stable_softplus(node, node[0])))


@converts("Swish")
def swish(node: Node) -> Result:
    """`x * sigmoid(alpha * x)`."""
    x, alpha = node[0], node.number("alpha", 1.0)
    return op.multiply(x, op.sigmoid(x if alpha == 1.0 else op.multiply(x, node.like(alpha))))


@converts("Gelu")
def gelu(node: Node) -> Result:
    """The Gaussian error linear unit, or its approximation by a tanh."""
    if node.text("approximate", "none") == "tanh":
        return op.nn.gelu_tanh(node[0])
    return op.nn.gelu(node[0])


@converts("Shrink")
def shrink(node: Node) -> Result:
    """Elements near zero become 0, the others come nearer by `bias`."""
    wide = node.dtype() if is_float(node.dtype()) else f64  # as -lambd is no number of unsigned ones
    x = node[0] if node.dtype() == wide else op.astype(node[0], wide)
    bias, limit, opposite = (
        node.const(each, wide) for each in (node.number("bias"), node.number("lambd", 0.5), -node.number("lambd", 0.5))
    )
    below = op.where(op.less(x, opposite), op.add(x, bias), node.const(0, wide))
    found = op.where(op.greater(x, limit), op.subtract(x, bias), below)
    return found if node.dtype() == wide else op.astype(found, node.dtype())


@converts("Softmax", "LogSoftmax", since=13)
def softmax(node: Node) -> Result:
    """Along one axis."""
    if str(node.dtype()) == "f16":
        raise UseFunction
    axis = node.axis(default=-1)
    return (op.nn.softmax if node.op_type == "Softmax" else op.nn.log_softmax)(node[0], axis)


@converts("Softmax", "LogSoftmax")
def softmax_flattened(node: Node) -> Result:
    """Before version 13: over all axes from one on, as one."""
    function = op.nn.softmax if node.op_type == "Softmax" else op.nn.log_softmax
    axis, shape = node.axis(default=1), node.shape()
    if axis == len(shape) - 1:
        return function(node[0], axis)
    flat = op.reshape(node[0], [math.prod(shape[:axis]), math.prod(shape[axis:])])
    return op.reshape(function(flat, 1), shape)


@converts("Hardmax")
def hardmax(node: Node) -> Result:
    """1 at the first greatest element along an axis, else 0; before version 13 over all axes from one on."""
    shape = node.shape()
    axis = node.axis(default=-1 if node.version >= 13 else 1)
    x = node[0]
    flat = node.version < 13 and axis != len(shape) - 1
    if flat:
        x, axis = op.reshape(x, [math.prod(shape[:axis]), math.prod(shape[axis:])]), 1
    assert x.shape is not None
    made = node.te(lambda each: _first_greatest(each, axis), x, name="hardmax")
    return op.reshape(made, shape) if flat else made


def _first_greatest(x: te.Tensor, axis: int) -> te.Tensor:
    """1 at the first greatest element of each row, of which there may be none; NaN is the greatest."""
    length = x.shape[axis]
    rows = [*x.shape[:axis], *x.shape[axis + 1 :]]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        source, made = ins[0], outs[0]
        axes: list[tuple[IterKind, Dim, str]] = [("spatial", extent, f"i{at}") for at, extent in enumerate(rows)]
        with b.block("hardmax", *axes) as i:

            def at(position: te.Expr) -> tuple[te.Expr, ...]:
                return (*i[:axis], position, *i[axis:])

            best = b.alloc((), "i64", "best")
            b.store(best, (), 0)
            with b.for_range(0, length, "j") as j:
                b.store(made, at(j), te.const(0, x.dtype))
                old, new = source[at(te.cast(best[()], "index"))], source[at(j)]
                is_nan = te.logical_and(te.isnan(new), te.logical_not(te.isnan(old)))
                with b.if_(te.logical_or(new > old, is_nan)):
                    b.store(best, (), te.cast(j, "i64"))
            with b.if_(te.cast(length, "index") > 0):
                b.store(made, at(te.cast(best[()], "index")), te.const(1, x.dtype))

    return te.extern([(x.shape, x.dtype)], [x], body, name="hardmax")[0]

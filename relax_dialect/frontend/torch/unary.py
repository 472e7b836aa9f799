"""Elementwise operators of one tensor, activations among them, and of three."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import i1

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.edge_cases import extreme
from relax_dialect.frontend.torch.binary import greater_of, lesser_of
from relax_dialect.frontend.torch.node import Node, Result, converts, promoted
from tir_dialect import te
from tir_dialect.dtypes import is_bool, is_float

_SAME: dict[str, Callable[[Expr], Expr]] = {
    "aten.abs.default": op.abs,
    "aten.acos.default": op.acos,
    "aten.acosh.default": op.acosh,
    "aten.asin.default": op.asin,
    "aten.asinh.default": op.asinh,
    "aten.atan.default": op.atan,
    "aten.atanh.default": op.atanh,
    "aten.cos.default": op.cos,
    "aten.cosh.default": op.cosh,
    "aten.erf.default": op.erf,
    "aten.selu.default": op.nn.selu,
    "aten.silu.default": op.nn.silu,
    "aten.exp.default": op.exp,
    "aten.log.default": op.log,
    "aten.neg.default": op.negative,
    "aten.reciprocal.default": op.reciprocal,
    "aten.rsqrt.default": op.rsqrt,
    "aten.sigmoid.default": op.sigmoid,
    "aten.sin.default": op.sin,
    "aten.sinh.default": op.sinh,
    "aten.sqrt.default": op.sqrt,
    "aten.tan.default": op.tan,
    "aten.tanh.default": op.tanh,
}


@converts(*_SAME)
def unary(node: Node) -> Result:
    """The relax operator of the same meaning; of integers, most functions are floating-point numbers."""
    return _SAME[node.operator](node.tensor("self", node.out_dtype()))


_WHOLE: dict[str, Callable[[Expr], Expr]] = {
    "aten.ceil.default": op.ceil,
    "aten.floor.default": op.floor,
    "aten.round.default": op.round,
    "aten.trunc.default": op.trunc,
    "aten.fix.default": op.trunc,
}


@converts(*_WHOLE, "aten.sign.default", "aten.sgn.default")
def whole(node: Node) -> Result:
    """Rounding, and signs, of which PyTorch says 0 for what is no number; integers are whole already."""
    x = node.tensor("self")
    if node.name in ("sign", "sgn"):
        if not is_float(node.dtype()):
            return x if is_bool(node.dtype()) else op.sign(x)
        zero, one = node.like(0, x), node.like(1, x)
        return op.where(op.greater(x, zero), one, op.where(op.less(x, zero), op.negative(one), zero))
    return _WHOLE[node.operator](x) if is_float(node.dtype()) else x


@converts("aten.round.decimals")
def round_decimals(node: Node) -> Result:
    """Rounded to a number of decimals."""
    x = node.tensor("self")
    factor = node.like(10.0 ** node.integer("decimals"), x)
    return op.divide(op.round(op.multiply(x, factor)), factor)


def _elementwise(node: Node, function: Callable[[te.Expr], te.Expr], x: Expr) -> Expr:
    """A function of each element for which there is no relax operator."""

    def kernel(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *i: function(x[i]), name=function.__name__)

    return node.te(kernel, x, name=function.__name__)


_TESTS: dict[str, Callable[[Expr], Expr]] = {
    "aten.isfinite.default": op.isfinite,
    "aten.isinf.default": op.isinf,
    "aten.isnan.default": op.isnan,
}


@converts(*_TESTS)
def test(node: Node) -> Result:
    """What kind of number an element is; integers are finite."""
    x = node.tensor("self")
    if is_float(node.dtype()):
        return _TESTS[node.operator](x)
    return op.full(node.out_dims(), node.bb.const(node.name == "isfinite"))


@converts("aten.logical_not.default")
def logical_not(node: Node) -> Result:
    """Whether an element is zero."""
    x = node.tensor("self")
    return op.logical_not(x) if is_bool(node.dtype()) else op.equal(x, node.like(0, x))


@converts("aten.bitwise_not.default")
def bitwise_not(node: Node) -> Result:
    """All bits inverted; of truth values, the other one."""
    x = node.tensor("self")
    return op.logical_not(x) if is_bool(node.dtype()) else op.bitwise_not(x)


@converts("aten.square.default")
def square(node: Node) -> Result:
    """`x * x`."""
    x = node.tensor("self", node.out_dtype())
    return op.multiply(x, x)


_TAIL = (
    *(0.28209479, 0.282095202, 0.246819763, 0.176427064, 0.083889466),
    *(-0.012242512, -0.00711716, -0.200821607, 0.214867428, -0.066090714),
)
"""A polynomial in `t = 1 / (1 + z / 2)`, which from 0.5 on is `erfc(z) * exp(z * z) / t` within 2e-8."""


def erfc(x: te.Expr) -> te.Expr:
    """`1 - erf(x)`, also where that is small: `exp(-z * z)` of a rounded `z`, whose square is exact, times the rest."""
    is_double = str(x.dtype) == "f64"
    wide = x if is_double else te.cast(x, "f32")
    z = te.minimum(te.abs(wide), 30)  # where it is 0 in any dtype
    t = 1 / (1 + z * 0.5)
    series = te.const(_TAIL[-1], str(wide.dtype))
    for coefficient in reversed(_TAIL[:-1]):
        series = series * t + coefficient
    rounded = te.cast(te.cast(z, "f32" if is_double else "bf16"), str(wide.dtype))
    tail = t * series * te.exp(-rounded * rounded) * te.exp((rounded - z) * (rounded + z))
    far = te.select(wide < 0, 2 - tail, tail)
    return te.cast(te.select(z < (4 if is_double else 0.5), 1 - te.erf(wide), far), str(x.dtype))


_OF_ONE: dict[str, Callable[[Expr, Node], Expr]] = {
    "aten.expm1.default": lambda x, node: _elementwise(node, te.expm1, x),
    "aten.log1p.default": lambda x, node: _elementwise(node, te.log1p, x),
    "aten.log2.default": lambda x, node: _elementwise(node, te.log2, x),
    "aten.log10.default": lambda x, node: _elementwise(node, te.log10, x),
    "aten.exp2.default": lambda x, node: _elementwise(node, te.exp2, x),
    "aten.erfc.default": lambda x, node: _elementwise(node, erfc, x),
    "aten.frac.default": lambda x, _: op.subtract(x, op.trunc(x)),
    "aten.deg2rad.default": lambda x, node: op.multiply(x, node.like(math.pi / 180, x)),
    "aten.rad2deg.default": lambda x, node: op.multiply(x, node.like(180 / math.pi, x)),
}


@converts(*_OF_ONE)
def composed(node: Node) -> Result:
    """Functions that are made of others."""
    return _OF_ONE[node.operator](node.tensor("self", node.out_dtype()), node)


@converts("aten.sinc.default")
def sinc(node: Node) -> Result:
    """`sin(pi * x) / (pi * x)`, and 1 at zero."""
    x = node.tensor("self", node.out_dtype())
    scaled = op.multiply(x, node.like(math.pi, x))
    return op.where(op.equal(x, node.like(0, x)), node.like(1, x), op.divide(op.sin(scaled), scaled))


@converts("aten.signbit.default")
def signbit(node: Node) -> Result:
    """Whether a number has a minus sign, which a zero and what is no number may have, too."""
    x = node.tensor("self")
    if is_bool(node.dtype()):
        return op.zeros(node.out_dims(), node.out_dtype())
    if not is_float(node.dtype()):
        return op.less(x, node.like(0, x))
    return op.less(_elementwise(node, lambda value: te.copysign(te.const(1, value.dtype), value), x), node.like(0, x))


@converts("aten.angle.default")
def angle(node: Node) -> Result:
    """The angle of real numbers: half a turn of those below zero."""
    x = node.tensor("self", node.out_dtype())
    zero = node.like(0, x)
    return op.where(op.isnan(x), x, op.where(op.less(x, zero), node.like(math.pi, x), zero))


@converts("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def where(node: Node) -> Result:
    """Elements of one or the other tensor."""
    dtype = promoted([node.value("self"), node.value("other")])
    made = op.where(node.tensor("condition", i1), node.tensor("self", dtype), node.tensor("other", dtype))
    return node.matched(made, node.out_dtype())


@converts("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(node: Node) -> Result:
    """A value where a mask is true."""
    dtype = node.out_dtype()
    return op.where(node.tensor("mask", i1), node.tensor("value", dtype), node.tensor("self", dtype))


@converts("aten.clamp.default", "aten.clamp.Tensor", "aten.clip.default", "aten.clip.Tensor")
def clamp(node: Node) -> Result:
    """Elements no smaller and no larger than given ones; the least is applied first."""
    low, high, dtype = node.value("min"), node.value("max"), node.out_dtype()
    x = node.tensor("self", dtype)
    if isinstance(low, int | float) and isinstance(high, int | float) and low <= high:
        return op.clip(x, low, high)
    return _bounded(node, x, ("min", greater_of), ("max", lesser_of))


@converts("aten.clamp_min.default", "aten.clamp_min.Tensor", "aten.clamp_max.default", "aten.clamp_max.Tensor")
def clamp_one(node: Node) -> Result:
    """Elements no smaller, or no larger, than given ones."""
    x = node.tensor("self", node.out_dtype())
    return _bounded(node, x, ("min", greater_of), ("max", lesser_of))


def _bounded(node: Node, x: Expr, *bounds: tuple[str, Callable[[Expr, Any], Expr]]) -> Expr:
    for name, function in bounds:
        if node.has(name):
            x = function(x, node.tensor(name, node.out_dtype()))
    return x


@converts("aten.lerp.Tensor", "aten.lerp.Scalar")
def lerp(node: Node) -> Result:
    """`x + weight * (end - x)`."""
    dtype = node.out_dtype()
    x = node.tensor("self", dtype)
    return op.add(x, op.multiply(node.tensor("weight", dtype), op.subtract(node.tensor("end", dtype), x)))


@converts("aten.addcmul.default", "aten.addcdiv.default")
def added_product(node: Node) -> Result:
    """`x + value * a * b`, or `x + value * a / b`."""
    dtype = node.out_dtype()
    function = op.multiply if node.name == "addcmul" else op.divide
    part = function(node.tensor("tensor1", dtype), node.tensor("tensor2", dtype))
    if node.value("value") not in (None, 1):
        part = op.multiply(part, node.tensor("value", dtype))
    return op.add(node.tensor("self", dtype), part)


@converts("aten.relu.default")
def relu(node: Node) -> Result:
    """`max(x, 0)`."""
    return op.nn.relu(node.tensor("self"))


@converts("aten.relu6.default", "aten.hardtanh.default")
def hardtanh(node: Node) -> Result:
    """Elements within bounds."""
    if node.name == "relu6":
        return op.clip(node.tensor("self"), 0.0, 6.0)
    return op.clip(node.tensor("self"), node.exact_number("min_val"), node.exact_number("max_val"))


@converts("aten.leaky_relu.default")
def leaky_relu(node: Node) -> Result:
    """`x` if positive, else `slope * x`."""
    return op.nn.leakyrelu(node.tensor("self"), node.number("negative_slope"))


@converts("aten.prelu.default", "aten._prelu_kernel.default")
def prelu(node: Node) -> Result:
    """`x` if positive, else `slope * x`, with one slope for all or for each channel."""
    x, slope = node.tensor("self"), node.tensor("weight")
    if node.rank() == 0:
        slope = op.reshape(slope, [])
    if node.rank("weight") == 1 and node.rank() > 1:
        slope = op.expand_dims(slope, list(range(1, node.rank() - 1))) if node.rank() > 2 else slope
    return op.where(op.greater(x, node.like(0, x)), x, op.multiply(x, slope))


@converts("aten.elu.default")
def elu(node: Node) -> Result:
    """`scale * x` if positive, else `scale * alpha * (exp(input_scale * x) - 1)`."""
    x = node.tensor("self")
    scale, inner = node.number("scale", 1.0), node.number("input_scale", 1.0)
    return _elu(node, x, scale, node.number("alpha", 1.0) * scale, inner)


@converts("aten.celu.default")
def celu(node: Node) -> Result:
    """`x` if positive, else `alpha * (exp(x / alpha) - 1)`."""
    alpha = node.number("alpha", 1.0)
    return _elu(node, node.tensor("self"), 1.0, alpha, 1.0 / alpha)


def _elu(node: Node, x: Expr, above: float, below: float, inner: float) -> Expr:
    def kernel(x: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            return te.select(x[i] > 0, x[i] * above, te.expm1(te.minimum(x[i] * inner, 0)) * below)

        return te.compute(x.shape, element, name="elu")

    return node.te(kernel, x, name="elu")


@converts("aten.gelu.default")
def gelu(node: Node) -> Result:
    """The Gaussian error linear unit, or its approximation by a tanh."""
    function = op.nn.gelu_tanh if node.text("approximate") == "tanh" else op.nn.gelu
    return function(node.tensor("self"))


@converts("aten.hardsigmoid.default", "aten.hardswish.default")
def hardsigmoid(node: Node) -> Result:
    """`clip(x + 3, 0, 6) / 6`, and `x` times that."""
    x = node.tensor("self")
    line = op.multiply(op.clip(op.add(x, node.like(3, x)), 0.0, 6.0), node.like(1 / 6, x))
    return op.multiply(x, line) if node.name == "hardswish" else line


@converts("aten.softplus.default")
def softplus(node: Node) -> Result:
    """`log(1 + exp(beta * x)) / beta`."""
    return op.nn.softplus(node.tensor("self"), node.number("beta", 1.0), node.number("threshold", 20.0))


@converts("aten.mish.default")
def mish(node: Node) -> Result:
    """`x * tanh(softplus(x))`."""
    x = node.tensor("self")
    return op.multiply(x, op.tanh(op.nn.softplus(x)))


@converts("aten.log_sigmoid.default")
def log_sigmoid(node: Node) -> Result:
    """`-softplus(-x)`."""
    return op.negative(op.nn.softplus(op.negative(node.tensor("self"))))


@converts("aten.threshold.default")
def threshold(node: Node) -> Result:
    """A value where `x` is not above a threshold; what is no number stays."""
    x = node.tensor("self")
    dtype = node.out_dtype()
    return op.where(op.less_equal(x, node.tensor("threshold", dtype)), node.tensor("value", dtype), x)


@converts("aten.softshrink.default", "aten.hardshrink.default")
def shrink(node: Node) -> Result:
    """Elements near zero become 0; soft, the others come nearer."""
    x, limit = node.tensor("self"), node.number("lambd", 0.5)
    near = node.like(limit if node.name == "softshrink" else 0.0, x)
    below = op.where(op.less(x, node.like(-limit, x)), op.add(x, near), node.like(0, x))
    return op.where(op.greater(x, node.like(limit, x)), op.subtract(x, near), below)


@converts("aten.glu.default")
def glu(node: Node) -> Result:
    """One half along an axis, times the sigmoid of the other."""
    left, right = op.split(node.tensor("self"), sections=2, axis=node.axis())
    return op.multiply(left, op.sigmoid(right))


@converts("aten.softmax.int", "aten._softmax.default", "aten._safe_softmax.default")
def softmax(node: Node) -> Result:
    """Along one axis; safe, rows of minus infinity give zeros."""
    x, axis = _float(node), node.axis()
    made = op.nn.softmax(x, axis) if node.rank() else op.full_like(x, node.like(1, x))
    if node.name != "_safe_softmax":
        return made
    masked = op.equal(extreme(node.bb, x, [axis], "max", keepdims=True), node.like(float("-inf"), x))
    return op.where(masked, node.like(0, x), made)


@converts("aten.log_softmax.int", "aten._log_softmax.default")
def log_softmax(node: Node) -> Result:
    """The logarithm of softmax along one axis; a tensor of rank 0 is a row of one element."""
    if node.rank() == 0:
        return op.reshape(op.nn.log_softmax(op.reshape(_float(node), [1]), 0), [])
    return op.nn.log_softmax(_float(node), node.axis())


def _float(node: Node) -> Expr:
    """The operand in the dtype of the result."""
    return node.tensor("self", node.out_dtype() if is_float(node.out_dtype()) else None)

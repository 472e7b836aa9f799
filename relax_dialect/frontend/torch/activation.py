"""Activations."""

from __future__ import annotations

from collections.abc import Callable

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.extremes import extreme
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from tir_dialect import te
from tir_dialect.dtypes import is_float

_SAME: dict[str, Callable[[Expr], Expr]] = {
    "aten.selu.default": op.nn.selu,
    "aten.silu.default": op.nn.silu,
}


@converts(*_SAME)
def activation(node: Node) -> Result:
    """The relax operator of the same meaning."""
    return _SAME[node.operator](node.tensor("self"))


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

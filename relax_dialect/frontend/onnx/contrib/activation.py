"""Activations with what is fused into them."""

from __future__ import annotations

from collections.abc import Callable

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.domains import MICROSOFT
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts

GELU_LOGISTIC = 1.702
"""With this factor `x * sigmoid(factor * x)` is near the Gaussian error linear unit."""


@converts("Gelu", "BiasGelu", domain=MICROSOFT)
def gelu(node: Node) -> Result:
    """The Gaussian error linear unit, perhaps of data with a bias."""
    return op.nn.gelu(with_bias(node, 1))


@converts("FastGelu", domain=MICROSOFT)
def fast_gelu(node: Node) -> Result:
    """The approximation by a tanh, perhaps of data with a bias."""
    return op.nn.gelu_tanh(with_bias(node, 1))


@converts("QuickGelu", domain=MICROSOFT)
def quick_gelu(node: Node) -> Result:
    """`x * sigmoid(alpha * x)`."""
    x = node[0]
    return op.multiply(x, op.sigmoid(op.multiply(x, node.like(node.number("alpha", GELU_LOGISTIC)))))


@converts("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(node: Node) -> Result:
    """The first half of the channels with a bias, times the unit of the second half."""
    left, right = op.split(with_bias(node, 1), sections=2, axis=node.rank() - 1)
    return op.multiply(left, op.nn.gelu(right))


@converts("BiasAdd", domain=MICROSOFT)
def bias_add(node: Node) -> Result:
    """`x + bias + skip`."""
    return op.add(with_bias(node, 1), node[2])


_PLAIN: dict[str, Callable[[Expr], Expr]] = {
    "Relu": op.nn.relu,
    "Sigmoid": op.sigmoid,
    "Tanh": op.tanh,
    "Gelu": op.nn.gelu,
    "Silu": op.nn.silu,
}
"""Activations without parameters."""


def with_bias(node: Node, index: int) -> Expr:
    """The first operand, with the operand at `index` added if it is there."""
    return op.add(node[0], node[index]) if node.has(index) else node[0]


def activated(node: Node, x: Expr, name: str, parameters: list[float]) -> Expr:
    """What another operator ends with: an activation with its parameters in order, or none without a name.

    Raises `Refusal` for an activation that is not known.
    """
    if not name:
        return x
    if name in _PLAIN:
        return _PLAIN[name](x)
    given = dict(enumerate(parameters))
    if name == "LeakyRelu":
        return op.nn.leakyrelu(x, given.get(0, 0.01))
    if name == "Clip":
        return op.clip(x, given.get(0, float("-inf")), given.get(1, float("inf")))
    if name == "HardSigmoid":
        line = op.add(op.multiply(x, node.like(given.get(0, 0.2))), node.like(given.get(1, 0.5)))
        return op.maximum(op.minimum(line, node.like(1)), node.like(0))
    raise Refusal(f"the activation {name} is not supported")

"""Layer normalisation with what is fused into it."""

from __future__ import annotations

from xdsl.dialects.builtin import f32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.domains import MICROSOFT
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts


@converts("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(node: Node) -> Result:
    """The sum of two branches and a bias, normalised; as fourth output the sum."""
    total = _sum(node, 4)
    result = layer_norm(total, node[2], node.optional(3), node.number("epsilon", 1e-12))
    return [result, *_statistics(node, total, centred=True), total]


@converts("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_rms_norm(node: Node) -> Result:
    """The sum of two branches and a bias, divided by its root mean square; as fourth output the sum."""
    total = _sum(node, 3)
    result = rms_norm(total, node[2], [-1], node.number("epsilon", 1e-12))
    return [result, *_statistics(node, total, centred=False), total]


@converts("SimplifiedLayerNormalization")
@converts("SimplifiedLayerNormalization", domain=MICROSOFT)
def rms_norm_from(node: Node) -> Result:
    """The last dimensions, from an axis on, divided by their root mean square."""
    axes = list(range(node.axis(default=-1), node.rank()))
    epsilon, x = node.number("epsilon", 1e-5), node[0]
    result = rms_norm(x, node[1], axes, epsilon)
    return [result, *([_inverse(node, x, axes, epsilon)] if _wanted(node, 1) else [])]


def layer_norm(x: Expr, scale: Expr, shift: Expr | None, epsilon: float) -> Expr:
    """The last dimension normalised; of short floats in single precision."""
    gamma = _wide(scale)
    beta = op.full_like(gamma, 0.0) if shift is None else _wide(shift)
    return _narrowed(op.nn.layer_norm(_wide(x), gamma, beta, [-1], epsilon), x)


def rms_norm(x: Expr, scale: Expr, axes: list[int], epsilon: float) -> Expr:
    """`x / sqrt(mean(x ** 2) + epsilon) * scale`; of short floats in single precision."""
    return _narrowed(op.nn.rms_norm(_wide(x), _wide(scale), axes, epsilon), x)


def _wide(x: Expr) -> Expr:
    return op.astype(x, f32) if str(x.dtype) in ("f16", "bf16") else x


def _narrowed(made: Expr, x: Expr) -> Expr:
    return made if x.dtype is None or made.dtype == x.dtype else op.astype(made, x.dtype)


def _sum(node: Node, bias: int) -> Expr:
    total = op.add(node[0], node[1])
    return op.add(total, node[bias]) if node.has(bias) else total


def _wanted(node: Node, output: int) -> bool:
    return output < len(node.outputs) and bool(node.outputs[output])


def _statistics(node: Node, total: Expr, *, centred: bool) -> list[Expr | None]:
    """The mean and the inverse deviation, where somebody wants them."""
    mean = op.mean(total, [-1], keepdims=True)
    around = op.subtract(total, mean) if centred else total
    inverse = _inverse(node, around, [-1], node.number("epsilon", 1e-12))
    return [mean if _wanted(node, 1) else None, inverse if _wanted(node, 2) else None]


def _inverse(node: Node, x: Expr, axes: list[int], epsilon: float) -> Expr:
    return op.rsqrt(op.add(op.mean(op.multiply(x, x), axes, keepdims=True), node.like(epsilon)))

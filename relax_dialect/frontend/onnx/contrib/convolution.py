"""Convolutions with what is fused into them, and such on channels that come last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.contrib.activation import activated
from relax_dialect.frontend.onnx.convolution import with_bias
from relax_dialect.frontend.onnx.domains import MICROSOFT
from relax_dialect.frontend.onnx.forward_convolution import convolution
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.pooling import max_pool
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.onnx.values import Value


@converts("FusedConv", domain=MICROSOFT)
def fused_conv(node: Node) -> Result:
    """A convolution, a bias for each filter, another tensor added, and an activation."""
    made = with_bias(convolution(node, node[0], node[1]), node.optional(2))
    total = op.add(made, node[3]) if node.has(3) else made
    parameters = [float(each) for each in node.attribute("activation_params", [])]
    return activated(node, total, node.text("activation"), parameters)


@converts("NhwcConv", "NhwcFusedConv", domain=MICROSOFT)
def nhwc_conv(node: Node) -> Result:
    """The same on channels that come last, the kernel's included."""
    kernel = node.rank(1)
    first = channels_first(node, 0, 3)
    inputs = list(first.inputs)
    inputs[1] = Value(op.permute_dims(first[1], [0, kernel - 1, *range(1, kernel - 1)]))
    made = fused_conv(replace(first, inputs=inputs))
    assert isinstance(made, Expr)
    return channels_last(made)


@converts("NhwcMaxPool", domain=MICROSOFT)
def nhwc_max_pool(node: Node) -> Result:
    """The greatest element of each window, on channels that come last."""
    made = max_pool(channels_first(replace(node, outputs=node.outputs[:1]), 0))
    assert isinstance(made, Expr)
    return channels_last(made)


def channels_first(node: Node, *indices: int) -> Node:
    """The node with operands, those that are there, whose channels come second."""
    inputs = list(node.inputs)
    for index in indices:
        if node.has(index):
            rank = node.rank(index)
            inputs[index] = Value(op.permute_dims(node[index], [0, rank - 1, *range(1, rank - 1)]))
    return replace(node, inputs=inputs)


def channels_last(x: Expr) -> Expr:
    """A tensor whose channels come second, with channels that come last."""
    order: Sequence[int] = [0, *range(2, x.ndim or 0), 1]
    return op.permute_dims(x, order)

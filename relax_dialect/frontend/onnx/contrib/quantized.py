"""Operators on quantised tensors that go on with the numbers for which they stand, and quantise the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.contrib.convolution import channels_first, channels_last
from relax_dialect.frontend.onnx.domains import MICROSOFT
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.pooling import average_pool
from relax_dialect.frontend.onnx.quantization import dequantized, qlinear_conv, quantized_like
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.onnx.values import Value

_BINARY: dict[str, Callable[[Expr, Expr], Expr]] = {"QLinearAdd": op.add, "QLinearMul": op.multiply}


@converts(*_BINARY, domain=MICROSOFT)
def binary(node: Node) -> Result:
    """The sum or product."""
    made = _BINARY[node.op_type](dequantized(node, 0), dequantized(node, 3))
    return quantized_like(node, made, 6, node.dtype())


@converts("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", domain=MICROSOFT)
def unary(node: Node) -> Result:
    """An activation."""
    x = dequantized(node, 0)
    if node.op_type == "QLinearSigmoid":
        made = op.sigmoid(x)
    elif node.op_type == "QLinearLeakyRelu":
        made = op.nn.leakyrelu(x, node.number("alpha", 0.01))
    else:
        made = _softmax(node, x)
    return quantized_like(node, made, 3, node.dtype())


def _softmax(node: Node, x: Expr) -> Expr:
    """Along one axis, or over all from one on, as the version of the operator says that was quantised."""
    import math

    shape, is_flat = node.shape(), node.integer("opset", 13) < 13
    axis = node.axis(default=-1)
    if not is_flat or axis == len(shape) - 1:
        return op.nn.softmax(x, axis)
    flat = op.reshape(x, [math.prod(shape[:axis]), math.prod(shape[axis:])])
    return op.reshape(op.nn.softmax(flat, 1), shape)


@converts("QLinearWhere", domain=MICROSOFT)
def where(node: Node) -> Result:
    """Elements of two tensors by a condition."""
    return quantized_like(node, op.where(node[0], dequantized(node, 1), dequantized(node, 4)), 7, node.dtype(1))


@converts("QLinearConcat", domain=MICROSOFT)
def concat(node: Node) -> Result:
    """Tensors side by side; the scale and the zero point of the result come first."""
    parts = [dequantized(node, index) for index in range(2, len(node.inputs), 3)]
    return quantized_like(node, op.concat(parts, node.axis(rank=node.rank(2))), 0, node.dtype(2))


@converts("QLinearReduceMean", domain=MICROSOFT)
def reduce_mean(node: Node) -> Result:
    """The mean over axes."""
    axes = node.integers("axes")
    made = op.mean(
        dequantized(node, 0), None if axes is None else list(axes), keepdims=bool(node.integer("keepdims", 1))
    )
    return quantized_like(node, made, 3, node.dtype())


@converts("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MICROSOFT)
def pool(node: Node) -> Result:
    """The mean of each window, or of each channel."""
    ordered = channels_first(node, 0) if node.integer("channels_last") else node
    numbers = dequantized(ordered, 0)
    if node.op_type == "QLinearAveragePool":
        made = average_pool(replace(ordered, inputs=[Value(numbers)]))
        assert isinstance(made, Expr)
    else:
        made = op.mean(numbers, list(range(2, node.rank())), keepdims=True)
    return quantized_like(node, channels_last(made) if node.integer("channels_last") else made, 3, node.dtype())


@converts("QLinearConv", domain=MICROSOFT)
def convolution(node: Node) -> Result:
    """The convolution of the standard, perhaps on channels that come last."""
    if not node.integer("channels_last"):
        return qlinear_conv(node)
    made = qlinear_conv(channels_first(node, 0))
    assert isinstance(made, Expr)
    return channels_last(made)

"""Products of numbers for which bytes stand: those of the bytes, times the scales.

Models that are quantised node by node have `DequantizeLinear` in front of each product. Its integers are multiplied
exactly, where a product of the numbers would be rounded.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import f32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.byte_convolutions import (
    convolution_in,
    convolution_of_bytes,
    dtype_of_kernel_sums,
    scalar,
)
from relax_dialect.frontend.onnx.byte_products import product_of_bytes, weights_with_sign, zero_point
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.values import Dequantized, Value


def _operands(node: Node) -> tuple[Dequantized, Dequantized, Node] | None:
    """Both factors, and the node with their integers, scales and zero points, in the order of quantised operators."""
    if not node.has(1):
        return None
    x, w = node.value(0), node.value(1)
    if not isinstance(x, Dequantized) or not isinstance(w, Dequantized) or _count(x.operands[1]) != 1:
        return None
    return x, w, replace(node, inputs=(*x.operands, *w.operands))


def _count(parameter: Value | None) -> int | None:
    """How many elements a scale has; `None` if that depends on the call."""
    dims = () if parameter is None else parameter.shape
    return 1 if not dims else dims[0].constant_value


def dequantized_convolution(node: Node) -> Expr | None:
    """The convolution of a node without its bias; `None` if it is none of integers that are summed exactly.

    Those of groups are summed as numbers, where these are exact.
    """
    found = _operands(node)
    if found is None:
        return None
    _, w, of_bytes = found
    several = _count(w.operands[1]) != 1
    if several and w.axis != 0:
        return None
    made = convolution_of_bytes(of_bytes, (0, 2), (3, 5))
    if made is None and node.integer("group", 1) > 1 and dtype_of_kernel_sums(of_bytes, (0, 2), (3, 5)) == f32:
        made = convolution_in(of_bytes, (0, 2), (3, 5), f32)
    if made is None:
        return None
    scale = op.expand_dims(of_bytes[4], range(1, node.rank(0) - 1)) if several else scalar(of_bytes[4])
    return op.multiply(op.astype(made, f32), op.multiply(scale, scalar(of_bytes[1])))


def dequantized_product(node: Node, transposed: bool = False) -> Expr | None:
    """The product of two matrices, the second transposed if told; `None` if it is none of bytes."""
    found = _operands(node)
    if found is None or min(node.rank(0), node.rank(1)) < 2:
        return None
    _, w, of_bytes = found
    several = _count(w.operands[1]) != 1
    if several and (node.rank(1) != 2 or w.axis != (0 if transposed else 1)):
        return None
    weights, zero_w = weights_with_sign(of_bytes, 3, 5)
    if transposed:
        weights = op.permute_dims(weights, [1, 0])
    made = product_of_bytes(of_bytes[0], weights, _number(zero_point(of_bytes, 2)), zero_w)
    scale = of_bytes[4] if several else scalar(of_bytes[4])
    return op.multiply(op.astype(made, f32), op.multiply(scale, scalar(of_bytes[1])))


def _number(x: Expr | None) -> Expr | None:
    return None if x is None else scalar(x)

"""Recurrent layers with quantised weights."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import f32, i32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.domains import MICROSOFT
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.recurrent import recurrent
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.frontend.onnx.values import Value

OPERANDS = 8
"""Those that the operator of the standard has; scales and zero points of the weights follow."""


@converts("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(node: Node) -> Result:
    """The layer with the numbers for which its weights stand. Its data are not quantised, so that it is as exact as the
    weights are.
    """
    inputs = list(node.inputs[:OPERANDS])
    for index, scale in ((1, 8), (2, 10)):
        inputs[index] = Value(op.permute_dims(_weights(node, index, scale), [0, 2, 1]))
    return recurrent(replace(node, op_type="LSTM", inputs=inputs))


def _weights(node: Node, index: int, scale: int) -> Expr:
    """Weights by direction, input and unit; their scale is by direction, or by direction and unit."""
    by_unit = node.rank(scale) == 2
    spread = [1] if by_unit else [1, 2]
    zero = op.expand_dims(op.astype(node[scale + 1], i32), spread)
    integers = op.subtract(op.astype(node[index], i32), zero)
    return op.multiply(op.astype(integers, f32), op.expand_dims(node[scale], spread))

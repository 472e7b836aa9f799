"""Operator sets before version 7: nodes that mean the same since, or can be said in newer terms."""

from __future__ import annotations

from dataclasses import replace

from relax_dialect.builder import op
from relax_dialect.frontend.onnx.attributes import schema_of
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.values import Value

MODERN = 7
"""The first version with NumPy's broadcasting."""

_BROADCASTS = frozenset({"Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "PRelu", "Sub", "Xor"})
_INFERENCE = frozenset({"BatchNormalization", "Dropout"})
"""Operators with an attribute `is_test`, without which they train."""

_UNCHANGED = frozenset({"AveragePool", "Gemm"})
"""Operators of which newer versions allow more, and mean the same by what was allowed."""


def modernized(node: Node) -> Node:
    """The node in terms of version 7; `Refusal` if that cannot be said."""
    old, new = schema_of(node.op_type, node.version, ""), schema_of(node.op_type, MODERN, "")
    if old is None or (new is not None and old.since_version == new.since_version):
        return node
    if node.op_type in _BROADCASTS:
        return _aligned(node)
    trains = node.op_type in _INFERENCE and not node.integer("is_test")
    if trains or (node.op_type not in _INFERENCE and node.op_type not in _UNCHANGED):
        raise Refusal(
            f"version {node.version} of the operator is not supported: convert the model with onnx.version_converter"
        )
    return node


def _aligned(node: Node) -> Node:
    """The second operand with dimensions behind, so that its first one stands at the attribute `axis`."""
    x, y = node.rank(0), node.rank(1)
    axis = node.attributes.get("axis")
    if node.op_type == "PRelu":
        axis = 1 if x > 1 else 0
    elif axis is None or not node.integer("broadcast"):
        return node
    behind = x - int(axis) % max(x, 1) - y
    if behind <= 0 or node.shape(1) == node.shape(0):
        return node
    return replace(node, inputs=[node.value(0), Value(op.expand_dims(node[1], range(y, y + behind)))])

"""Nodes of operator sets before version 7, in terms of that version: today's broadcasting begins there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from relax_dialect.builder import op
from relax_dialect.frontend.onnx.dtypes import Refusal
from relax_dialect.frontend.onnx.node import Node, from_front, schema_of
from relax_dialect.frontend.onnx.values import Value

MODERN = 7
"""The first version with NumPy's broadcasting."""

_BROADCASTS = frozenset({"Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "PRelu", "Sub", "Xor"})
_INFERENCE = frozenset({"BatchNormalization", "Dropout"})
"""Operators with an attribute `is_test`, without which they train."""


def modernized(node: Node) -> Node:
    """The node in terms of version 7; `Refusal` if that cannot be said. Other differences than those below are
    attributes that say where results may be written, or what newer versions allow besides.
    """
    old, new = schema_of(node.op_type, node.version, ""), schema_of(node.op_type, MODERN, "")
    if old is None or (new is not None and old.since_version == new.since_version):
        return node
    if node.op_type in _BROADCASTS:
        return _aligned(node)
    if node.op_type in _INFERENCE and not node.integer("is_test"):
        raise Refusal(
            f"version {node.version} of the operator trains without is_test: convert the model with "
            "onnx.version_converter"
        )
    rewrite = _REWRITTEN.get(node.op_type)
    return node if rewrite is None else rewrite(node)


def _aligned(node: Node) -> Node:
    """The second operand with dimensions behind, so that its first one stands at the attribute `axis`."""
    x, y = node.rank(0), node.rank(1)
    axis = node.attributes.get("axis")
    if node.op_type == "PRelu":
        axis = 1 if x > 1 else 0
    elif axis is None or not node.integer("broadcast"):
        return node
    trailing = x - int(axis) % max(x, 1) - y
    if trailing <= 0 or node.shape(1) == node.shape(0):
        return node
    return replace(node, inputs=[node.value(0), Value(op.expand_dims(node[1], range(y, y + trailing)))])


def _with(node: Node, **attributes: Any) -> Node:
    return replace(node, attributes={**node.attributes, **attributes})


def _cast(node: Node) -> Node:
    """The dtype was a text."""
    name = node.attributes.get("to")
    if not isinstance(name, bytes):
        return node
    return _with(node, to=onnx.TensorProto.DataType.Value(name.decode().upper()))


def _reshape(node: Node) -> Node:
    """The shape was an attribute."""
    if "shape" not in node.attributes:
        return node
    return replace(node, inputs=[node.value(0), Value.of(np.array(node.integers("shape"), np.int64))])


def _split(node: Node) -> Node:
    """The lengths could be an operand, of the dtype of the data."""
    if not node.has(1):
        return node
    lengths = node.ints(1)
    if lengths is None:
        raise Refusal("the lengths of parts are data, and no integers")
    return replace(_with(node, split=lengths), inputs=[node.value(0)])


def _tile(node: Node) -> Node:
    """A number of tiles along one axis, both of the dtype of the data."""
    if not node.has(2):
        return node
    tiles, axis = node.ints(1), node.ints(2)
    if tiles is None or axis is None:
        raise Refusal("the number of tiles and their axis are data, and no integers")
    repeats = np.ones(node.rank(), np.int64)
    repeats[from_front(axis[0], node.rank())] = tiles[0]
    return replace(node, inputs=[node.value(0), Value.of(repeats)])


def _upsample(node: Node) -> Node:
    """Scales of the height and of the width."""
    scales = [1.0, 1.0, node.number("height_scale"), node.number("width_scale")]
    return _with(node, scales=scales, mode={"bilinear": b"linear"}.get(node.text("mode"), node.attribute("mode")))


_REWRITTEN: Mapping[str, Callable[[Node], Node]] = {
    "Cast": _cast,
    "Concat": lambda node: node if "axis" in node.attributes else _with(node, axis=1),
    "Pad": lambda node: _with(node, pads=node.attribute("paddings", node.attribute("pads"))),
    "Reshape": _reshape,
    "Split": _split,
    "Tile": _tile,
    "Upsample": _upsample,
}

"""Choice and search."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts


@converts("ArgMax", "ArgMin")
def arg(node: Node) -> Result:
    """The place of the greatest or least element, the first or the last one."""
    function = op.argmax if node.op_type == "ArgMax" else op.argmin
    axis, keep = node.axis(), bool(node.integer("keepdims", 1))
    if not node.integer("select_last_index"):
        return function(node[0], axis, keepdims=keep)
    found = function(op.flip(node[0], axis), axis, keepdims=keep)
    return op.subtract(_last(node, axis), found)


def _last(node: Node, axis: int) -> Expr:
    """The last place along an axis."""
    length = node.shape()[axis]
    if length.constant_value is not None:
        return node.bb.const(length.constant_value - 1, "i64")
    return op.reshape(op.shape_to_tensor([length - 1]), [])

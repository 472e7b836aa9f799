"""Order."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect.dims import Dim, constant


@converts("TopK")
def topk(node: Node) -> Result:
    """The first `k` elements along an axis in order, and their places."""
    axis = node.axis(default=-1)
    k = _count(node, axis)
    return op.topk(node[0], k, axis, smallest=not node.integer("largest", 1), dtype="i64")


def _count(node: Node, axis: int) -> Dim:
    if not node.has(1):
        return constant(node.integer("k"))
    known = node.dims(1)
    if known is not None:
        return known[0]
    tensor = node[1] if node.rank(1) == 1 else op.reshape(node[1], [1])
    return node.run_time_dims(tensor, node.hinted_dims(node.rank())[axis : axis + 1])[0]

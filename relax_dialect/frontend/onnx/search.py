"""Search and order: ArgMax, ArgMin, TopK, NonZero, Unique."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect.dims import Dim, constant


@converts("ArgMax", "ArgMin")
def arg(node: Node) -> Result:
    """The index of the greatest or least element, the first or the last one."""
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


@converts("NonZero")
def nonzero(node: Node) -> Result:
    """The indices of elements that are not zero: one row per dimension."""
    return op.nonzero(node[0])


@converts("Unique")
def unique(node: Node) -> Result:
    """Different elements or slices, their first places, and how often they occur; sorted, or in order of occurrence."""
    return unique_elements(node)


def unique_elements(node: Node) -> Sequence[Expr]:
    """The four results of `Unique`."""
    axis = node.attributes.get("axis")
    made = op.unique(
        node[0] if axis is not None or node.rank() == 1 else op.flatten(node[0]),
        node.axis() if axis is not None else None,
        sorted=bool(node.integer("sorted", 1)),
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    values, first, inverse, counts = (node.graph.settled(each, None) for each in made)
    return values, first, op.flatten(inverse) if inverse.ndim != 1 else inverse, counts

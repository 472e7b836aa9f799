"""Sets of elements."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts


@converts("NonZero")
def nonzero(node: Node) -> Result:
    """The places of elements that are not zero: one row per dimension."""
    return op.nonzero(node[0])


@converts("Unique")
def unique(node: Node) -> Result:
    """Different elements or slices, their first places, and how often they occur; sorted, or in order of occurrence."""
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

"""Tensors as sets."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.promotion import promoted
from relax_dialect.frontend.torch.registry import Result, converts


@converts("aten._unique2.default", "aten.unique_dim.default")
def unique(node: Node) -> Result:
    """The different elements, or slices along an axis, in ascending order."""
    axis = node.axis() if node.has("dim") else None
    values, inverse, counts = op.unique(node.tensor("self"), axis, return_inverse=True, return_counts=True)
    shaped = op.reshape(inverse, list(node.shape())) if axis is None else inverse
    return [values, shaped if node.wants(1) else None, counts if node.wants(2) else None]


@converts("aten.isin.Tensor_Tensor")
def isin(node: Node) -> Result:
    """Whether elements are among others."""
    dtype = promoted([node.value("elements"), node.value("test_elements")])
    rank = node.rank("elements")
    x = op.expand_dims(node.tensor("elements", dtype), [rank])
    same = op.equal(x, op.flatten(node.tensor("test_elements", dtype)))
    found = op.astype(op.max(op.astype(same, "ui8"), [rank]), "i1")
    return op.logical_not(found) if node.flag("invert") else found

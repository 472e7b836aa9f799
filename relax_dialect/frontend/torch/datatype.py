"""Conversions, and copies."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.frontend.torch.binary import truth
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from tir_dialect.dtypes import is_bool


@converts(
    "aten._to_copy.default",
    "aten.to.device",
    "aten.to.dtype",
    "aten.to.dtype_layout",
    "aten.to.other",
    "aten.type_as.default",
    "prims.convert_element_type.default",
)
def to(node: Node) -> Result:
    """Elements in another dtype; numbers are true unless they are zero."""
    x = node.tensor("a" if node.has("a") else "self")
    return truth(node, x) if is_bool(node.out_dtype()) else node.matched(x, node.out_dtype())


@converts(
    "aten.alias.default",
    "aten.clone.default",
    "aten.contiguous.default",
    "aten.detach.default",
    "aten.detach_copy.default",
    "aten.lift.default",
    "aten.lift_fresh_copy.default",
    "aten.positive.default",
)
def same(node: Node) -> Result:
    """The tensor itself: no tensor of the program is changed."""
    return node.tensor("self")


@converts("aten.copy.default")
def copy(node: Node) -> Result:
    """Another tensor in the shape and dtype of this one."""
    source = node.tensor("src", node.out_dtype())
    return source if node.shape("src") == node.shape() else op.broadcast_to(source, node.out_dims())

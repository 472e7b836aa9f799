"""Searching."""

from __future__ import annotations

from xdsl.dialects.builtin import i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.promotion import promoted
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import symbol


@converts("aten.argmax.default", "aten.argmin.default")
def argmax(node: Node) -> Result:
    """The place of the greatest or least element along an axis, or of all."""
    function = op.argmax if node.name == "argmax" else op.argmin
    if node.has("dim"):
        return function(node.tensor("self"), node.axis(), keepdims=node.flag("keepdim"))
    found = function(op.flatten(node.tensor("self")), 0)
    return op.reshape(found, node.out_dims()) if node.flag("keepdim") else found


@converts("aten.bucketize.Tensor", "aten.searchsorted.Tensor", "aten.bucketize.Scalar")
def bucketize(node: Node) -> Result:
    """The interval between ascending boundaries in which each element lies."""
    name = "boundaries" if node.has("boundaries") else "sorted_sequence"
    dtype = promoted([node.value("self"), node.value(name)])
    if node.rank(name) != 1:
        raise Refusal("only boundaries of rank 1 are supported")
    right = node.flag("right") or node.text("side") == "right"
    made = op.bucketize(node.tensor("self", dtype), node.tensor(name, dtype), right=right)
    return node.matched(made, node.out_dtype())


@converts("aten.nonzero.default")
def nonzero(node: Node) -> Result:
    """The places of the elements that are not zero, one in each row."""
    return op.permute_dims(op.nonzero(node.tensor("self")), [1, 0])


@converts("aten.masked_select.default")
def masked_select(node: Node) -> Result:
    """The elements at which a mask is true."""
    dims = node.shape()
    mask = node.tensor("mask")
    mask = mask if node.shape("mask") == dims else op.broadcast_to(mask, list(dims))
    return op.take(op.flatten(node.tensor("self")), where_true(node, op.flatten(mask)), 0)


def where_true(node: Node, mask: Expr) -> Expr:
    """The places at which a mask of rank 1 is true."""
    name = node.bb.fresh_symbol("k")
    return op.squeeze(node.graph.match(op.nonzero(mask), TensorType([1, symbol(name)], i64)), [0])

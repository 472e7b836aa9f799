"""Searching."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.indexing import indices
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.promotion import promoted
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.frontend.torch.sorting import scalar_as_vector
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import broadcast, constant, symbol


@converts("aten.argmax.default", "aten.argmin.default")
@scalar_as_vector
def argmax(node: Node) -> Result:
    """The index of the greatest or least element along an axis, or of all."""
    function = op.argmax if node.name == "argmax" else op.argmin
    if node.has("dim"):
        return function(node.tensor("self"), node.axis(), keepdims=node.flag("keepdim"))
    found = function(op.flatten(node.tensor("self")), 0)
    return op.reshape(found, node.out_dims()) if node.flag("keepdim") else found


@converts("aten.bucketize.Tensor", "aten.searchsorted.Tensor", "aten.bucketize.Scalar", "aten.searchsorted.Scalar")
def bucketize(node: Node) -> Result:
    """The interval between ascending boundaries in which each element lies."""
    name = "boundaries" if node.has("boundaries") else "sorted_sequence"
    dtype = promoted([node.value("self"), node.value(name)])
    right = node.flag("right") or node.text("side") == "right"
    x, boundaries = node.tensor("self", dtype), node.tensor(name, dtype)
    if node.has("sorter"):
        boundaries = op.gather_elements(
            boundaries, indices(node, "sorter", node.rank(name) - 1, name), node.rank(name) - 1
        )
    if node.rank(name) == 1:
        return node.matched(op.bucketize(x, boundaries, right=right), node.out_dtype())
    return node.matched(node.te(_of_rows(right=right), x, boundaries, name="searchsorted"), node.out_dtype())


def _of_rows(*, right: bool) -> Callable[[te.Tensor, te.Tensor], te.Tensor]:
    """How many boundaries of a row are before each element of it; all are before NaN."""

    def kernel(x: te.Tensor, boundaries: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            k = te.reduce_axis(boundaries.shape[-1], "k")
            value, bound = x[i], boundaries[(*i[:-1], k)]
            is_after = bound > value if right else bound >= value
            return te.sum(te.if_then_else(is_after, te.const(0, "i64"), te.const(1, "i64")), k)

        return te.compute(x.shape, element, name="searchsorted")

    return kernel


@converts("aten.nonzero.default")
def nonzero(node: Node) -> Result:
    """The indices of the elements that are not zero, one in each row."""
    return op.permute_dims(op.nonzero(node.tensor("self")), [1, 0])


@converts("aten.nonzero_static.default")
def nonzero_static(node: Node) -> Result:
    """The indices of so many elements that are not zero; rows of a number follow where there are fewer."""
    size, dims = node.dim("size"), node.out_dims()
    found = op.permute_dims(op.nonzero(node.tensor("self")), [1, 0])
    rest = op.full(list(dims), node.const(node.integer("fill_value", -1), i64))
    return node.matched(op.strided_slice(op.concat([found, rest], 0), [0], [0], [size]), i64)


@converts("aten.masked_select.default")
def masked_select(node: Node) -> Result:
    """The elements at which a mask is true."""
    x, mask = (_broadcast(node, name) for name in ("self", "mask"))
    return op.take(op.flatten(x), where_true(node, op.flatten(mask)), 0)


def _broadcast(node: Node, name: str) -> Expr:
    """A tensor or its mask, in the shape that both have together."""
    shapes = node.shape(), node.shape("mask")
    rank = max(map(len, shapes))
    aligned = [(constant(1),) * (rank - len(shape)) + shape for shape in shapes]
    dims = [broadcast(*sizes) for sizes in zip(*aligned, strict=True)]
    return node.tensor(name) if list(node.shape(name)) == dims else op.broadcast_to(node.tensor(name), dims)


def where_true(node: Node, mask: Expr) -> Expr:
    """The places at which a mask of rank 1 is true."""
    name = node.bb.fresh_symbol("k")
    return op.squeeze(node.graph.match(op.nonzero(mask), TensorType([1, symbol(name)], i64)), [0])

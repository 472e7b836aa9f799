"""Counting elements by value."""

from __future__ import annotations

from xdsl.dialects.builtin import i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.struct_info.types import ShapeType
from tir_dialect.dims import Dim, to_dim


@converts("aten.histc.default")
def histc(node: Node) -> Result:
    """How many elements are in each of so many intervals of one width; the last one has its end."""
    x, bins = op.flatten(node.tensor("self")), node.integer("bins", 100)
    low, high = _range(node, x)
    width = op.subtract(high, low)
    inside = op.logical_and(op.greater_equal(x, low), op.less_equal(x, high))
    at = op.divide(op.multiply(op.subtract(x, low), node.like(bins, x)), width)
    at = op.minimum(op.astype(op.where(inside, at, node.like(0, x)), i64), node.const(bins - 1, i64))
    at = op.where(inside, at, node.const(bins, i64))
    ones = op.where(inside, node.like(1, x), node.like(0, x))
    return op.strided_slice(added_at(node, at, ones, to_dim(bins + 1)), [0], [0], [bins])


def _range(node: Node, x: Expr) -> tuple[Expr, Expr]:
    """The ends of all intervals: those of the data where both are equal, and 1 apart where these are."""
    ends = node.exact_number("min"), node.exact_number("max")
    if ends[0] != ends[1]:
        return node.like(ends[0], x), node.like(ends[1], x)
    low, high = op.min(x), op.max(x)
    same, one = op.equal(low, high), node.like(1, x)
    return op.where(same, op.subtract(low, one), low), op.where(same, op.add(high, one), high)


@converts("aten.bincount.default")
def bincount(node: Node) -> Result:
    """How often each number from 0 on comes up, or the sum of the weights where it does."""
    x, (count,) = node.tensor("self", i64), node.out_dims()
    least = node.const([node.integer("minlength") - 1], i64)
    length = op.add(op.max(op.concat([x, least], 0)), node.const(1, i64))
    node.graph.match(op.tensor_to_shape(op.reshape(length, [1])), ShapeType([count]))
    dtype = node.out_dtype()
    weights = node.optional("weights", dtype)
    return added_at(node, x, op.full(list(node.shape()), node.const(1, dtype)) if weights is None else weights, count)


def added_at(node: Node, at: Expr, values: Expr, count: Dim) -> Expr:
    """Sums of values by the index that each has, of `count` indices."""
    assert values.dtype is not None
    return op.index_put(op.zeros([count], values.dtype), values, [at], accumulate=True)

"""Counting elements by value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i1, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.inference import ZERO
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.dims import Dim, product, to_dim


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


@converts("aten.histogram.bin_ct", "aten.histogram.bins_tensor")
def histogram(node: Node) -> Result:
    """How many elements are in each interval, or the sums of their weights, and the ends of the intervals."""
    x = op.flatten(node.tensor("self"))
    if node.has("range") or isinstance(node.value("bins"), int):
        edges = _edges(node, x, node.integer("bins", 100), node.value("range"))
    else:
        edges = node.tensor("bins")
    return [_in_intervals(node, [x], [edges]), edges]


@converts("aten._histogramdd_bin_edges.default")
def edges_of_columns(node: Node) -> Result:
    """The ends of the intervals of each column."""
    return _edges_of_columns(node, _columns(node))


@converts("aten._histogramdd_from_bin_cts.default", "aten._histogramdd_from_bin_tensors.default")
def histogram_of_columns(node: Node) -> Result:
    """How many rows are in each box of intervals, one of each column."""
    columns = _columns(node)
    is_given = node.operator.endswith("tensors.default")
    return _in_intervals(node, columns, node.tensors("bins") if is_given else _edges_of_columns(node, columns))


def _columns(node: Node) -> list[Expr]:
    """The last dimension's elements, each of all others."""
    *lead, count = node.shape()
    if count.constant_value is None:
        raise Refusal("a number of columns that depends on sizes is not supported")
    flat = op.reshape(node.tensor("self"), [product(lead), count])
    return [op.take(flat, node.const(at, i64), 1) for at in range(count.constant_value)]


def _edges_of_columns(node: Node, columns: Sequence[Expr]) -> list[Expr]:
    bins, ends = node.integers("bins"), node.value("range")
    return [
        _edges(node, x, count, None if ends is None else ends[2 * at : 2 * at + 2])
        for at, (x, count) in enumerate(zip(columns, bins, strict=True))
    ]


def _edges(node: Node, x: Expr, bins: int, ends: Sequence[float] | None) -> Expr:
    """The ends of so many intervals of one width, which cover the data if no range is given."""
    low, high = _covered(node, x) if ends is None else (node.like(float(each), x) for each in ends)
    same, half = op.equal(low, high), node.like(0.5, x)
    low, high = op.where(same, op.subtract(low, half), low), op.where(same, op.add(high, half), high)
    steps, width = np.arange(bins + 1), op.divide(op.subtract(high, low), node.like(bins, x))
    from_low = op.add(low, op.multiply(node.const(steps, node.out_dtype()), width))
    from_high = op.subtract(high, op.multiply(node.const(bins - steps, node.out_dtype()), width))
    return op.where(node.const(steps < (bins + 1) // 2, i1), from_low, from_high)


def _covered(node: Node, x: Expr) -> tuple[Expr, Expr]:
    """The ends of the data; 0 and 1 if there is none."""
    if isinstance(x.type, TensorType) and x.type.known_dims is not None and ZERO in x.type.known_dims:
        return node.like(0, x), node.like(1, x)
    return op.min(x), op.max(x)


def _in_intervals(node: Node, columns: Sequence[Expr], edges: Sequence[Expr]) -> Expr:
    """Counts, or sums of weights, by intervals; the last one of each column has its end."""
    dtype, dims = node.out_dtype(), list(node.out_dims())
    at: Expr | None = None
    inside: Expr | None = None
    for x, ends, count in zip(columns, edges, dims, strict=True):
        last = op.take(ends, node.graph.dimension(count, i64), 0)
        number = node.graph.dimension(count, i64)
        found = op.subtract(op.bucketize(x, ends, right=True), node.const(1, i64))
        found = op.where(op.equal(x, last), op.subtract(number, node.const(1, i64)), found)
        within = op.logical_and(op.greater_equal(found, node.const(0, i64)), op.less_equal(x, last))
        found = op.where(within, found, node.const(0, i64))
        at = found if at is None else op.add(op.multiply(at, number), found)
        inside = within if inside is None else op.logical_and(inside, within)
    assert at is not None
    assert inside is not None
    zero = node.const(0, dtype)
    weights = node.const(1, dtype) if not node.has("weight") else op.flatten(node.tensor("weight", dtype))
    counts = op.reshape(added_at(node, at, op.where(inside, weights, zero), product(dims)), dims)
    if not node.flag("density"):
        return counts
    for axis, ends in enumerate(edges):
        many = dims[axis]
        widths = op.subtract(*(op.strided_slice(ends, [0], [by], [many + by]) for by in (1, 0)))
        others = [each for each in range(len(dims)) if each != axis]
        counts = op.divide(counts, op.expand_dims(widths, others) if others else widths)
    return op.divide(counts, op.sum(op.where(inside, weights, zero)))


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

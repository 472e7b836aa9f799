"""Gathering and scattering."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.range_checks import indices_within
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.indexing import indices
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.frontend.torch.sorting import scalar_as_vector
from tir_dialect.dims import product
from tir_dialect.dtypes import integer_limits, is_bool, is_float

_REDUCTIONS = {
    **{"add": "add", "sum": "add", "multiply": "mul", "prod": "mul"},
    **{"amax": "max", "amin": "min", "max": "max", "min": "min"},
}


@converts("aten.gather.default")
def gather(node: Node) -> Result:
    """One element for each index; no indices may have any rank."""
    if any(dim.constant_value == 0 for dim in node.out_dims()):
        return op.zeros(node.out_dims(), node.out_dtype())
    if node.rank() and node.rank("index"):
        return op.gather_elements(node.tensor("self"), indices(node, "index", node.axis()), node.axis())
    if not node.rank():
        return op.broadcast_to(node.tensor("self"), node.out_dims())
    return op.take(node.tensor("self"), indices(node, "index", 0), 0)


@converts("aten.scatter.src", "aten.scatter.value", "aten.scatter.reduce", "aten.scatter.value_reduce")
@scalar_as_vector
def scatter(node: Node) -> Result:
    """Elements replaced, or combined with others, at places along an axis."""
    reduction = _REDUCTIONS[node.text("reduce")] if node.has("reduce") else "update"
    return _scatter(node, node.tensor("self"), reduction)


@converts("aten.scatter_add.default")
@scalar_as_vector
def scatter_add(node: Node) -> Result:
    """Elements added at places along an axis."""
    return _scatter(node, node.tensor("self"), "add")


@converts("aten.scatter_reduce.two")
@scalar_as_vector
def scatter_reduce(node: Node) -> Result:
    """Elements combined with others at indices along an axis."""
    return _combined(node, indices(node, "index", node.axis()), _source(node))


@converts("aten.index_reduce.default")
@scalar_as_vector
def index_reduce(node: Node) -> Result:
    """Slices combined with others at indices along an axis."""
    axis, source = node.axis(), node.tensor("source", node.dtype())
    index = indices_within(node.bb, node.tensor("index"), [node.shape()[axis]], f"'{node.name}' index", from_back=False)
    others = [each for each in range(node.rank()) if each != axis]
    return _combined(node, op.broadcast_to(op.expand_dims(index, others), list(node.shape("source"))), source)


def _combined(node: Node, index: Expr, source: Expr) -> Expr:
    """Elements combined with others by the node's reduction; without those that are there, unless it includes them."""
    x, axis, how = node.tensor("self"), node.axis(), node.text("reduce")
    reduction = "add" if how == "mean" else _REDUCTIONS[how]
    if not node.flag("include_self"):
        neutral = op.full_like(source, node.const(_neutral(node.dtype(), reduction), node.dtype()))
        x = op.scatter_elements(x, index, neutral, axis, "update")
    found = op.scatter_elements(x, index, source, axis, reduction)
    if how != "mean":
        return found
    counts, ones = op.ones_like(x), op.ones_like(source)
    if not node.flag("include_self"):
        counts = op.scatter_elements(counts, index, op.zeros_like(source), axis, "update")
    counts = op.scatter_elements(counts, index, ones, axis, "add")
    return (op.divide if is_float(node.dtype()) else op.floor_divide)(found, counts)


def _neutral(dtype: Attribute, reduction: str) -> float:
    """What changes nothing in a reduction."""
    if is_bool(dtype):
        return reduction in ("mul", "min")
    if reduction in ("add", "mul"):
        return float(reduction == "mul")
    if is_float(dtype):
        return -math.inf if reduction == "max" else math.inf
    least, most = integer_limits(dtype)
    return least if reduction == "max" else most


def _scatter(node: Node, x: Expr, reduction: str) -> Expr:
    return op.scatter_elements(x, indices(node, "index", node.axis()), _source(node), node.axis(), reduction)


def _source(node: Node) -> Expr:
    """What is written at each index."""
    dims = node.shape("index")
    if node.has("value"):
        return op.full(list(dims), node.tensor("value", node.dtype()))
    if node.shape("src") == dims:
        return node.tensor("src")
    return op.strided_slice(node.tensor("src"), list(range(len(dims))), [0] * len(dims), list(dims))


@converts("aten.index_add.default", "aten.index_copy.default", "aten.index_fill.int_Scalar")
@scalar_as_vector
def index_slices(node: Node) -> Result:
    """Slices at places along an axis replaced, filled, or added to."""
    axis, dtype = node.axis(), node.dtype()
    if node.has("source"):
        source = node.tensor("source", dtype)
    else:
        dims = list(node.shape())
        dims[axis] = node.shape("index")[0]
        source = op.full(dims, node.tensor("value", dtype))
    if node.value("alpha") not in (None, 1):
        source = (op.logical_and if is_bool(dtype) else op.multiply)(source, node.tensor("alpha", dtype))
    order = [axis, *(each for each in range(node.rank()) if each != axis)]
    x, source = op.permute_dims(node.tensor("self"), order), op.permute_dims(source, order)
    extents, from_back = [node.shape()[axis]], node.name == "index_fill"
    index = indices_within(node.bb, node.tensor("index"), extents, f"'{node.name}' index", from_back=from_back)
    made = op.index_put(x, source, [index], accumulate=node.name == "index_add")
    return op.permute_dims(made, [order.index(each) for each in range(node.rank())])


@converts("aten.put.default")
def put(node: Node) -> Result:
    """Elements of the flattened tensor replaced, or added to."""
    x, count = op.flatten(node.tensor("self")), product(node.shape())
    index = indices_within(node.bb, op.flatten(node.tensor("index")), [count], "'put' index", from_back=True)
    source = op.flatten(node.tensor("source", node.dtype()))
    return op.reshape(op.index_put(x, source, [index], accumulate=node.flag("accumulate")), node.out_dims())


@converts("aten.segment_reduce.default")
def segment_reduce(node: Node) -> Result:
    """Slices of each segment along an axis combined, segments being given by their lengths or by where they begin."""
    axis, dtype, how = node.axis(of="data"), node.dtype("data"), node.text("reduce")
    given = node.tensor("offsets" if node.has("offsets") else "lengths", i64)
    if given.ndim != 1 or axis:
        raise Refusal("segments of other axes than the first are not supported")
    ends = given if node.has("offsets") else op.concat([node.const([0], i64), op.cumsum(given, 0)], 0)
    data, dims = node.tensor("data"), node.out_dims()
    at = op.bucketize(op.arange(0, node.shape("data")[0], 1, i64), ends, right=True)
    reduction = "add" if how == "mean" else _REDUCTIONS[how]
    start = node.number("initial", _neutral(dtype, reduction))
    rows = [dims[0] + 2, *dims[1:]]  # also for what is before the first segment, and after the last one
    index = op.broadcast_to(op.expand_dims(at, list(range(1, len(dims)))), list(node.shape("data")))
    found = op.scatter_elements(op.full(rows, node.const(start, dtype)), index, data, 0, reduction)
    if how == "mean":
        counts = op.scatter_elements(op.zeros(rows, dtype), index, op.ones_like(data), 0, "add")
        nothing = node.const(node.number("initial", math.nan), dtype)
        found = op.where(op.greater(counts, node.like(0, counts)), op.divide(found, counts), nothing)
    return op.strided_slice(found, [0], [1], [dims[0] + 1])


@converts("aten.embedding_renorm.default")
def embedding_renorm(node: Node) -> Result:
    """A table whose rows that are named are made shorter where their norm is above a bound."""
    x, order, bound = node.tensor("self"), node.number("norm_type"), node.number("max_norm")
    rows = node.shape()[0]
    index = op.reshape(node.tensor("indices"), [-1])
    index = indices_within(node.bb, index, [rows], "'embedding_renorm' index", from_back=False)
    named = op.index_put(op.zeros([rows], node.dtype()), node.like(1, x), [index])
    norms = op.power(op.sum(op.power(op.abs(x), node.like(order, x)), [1]), node.like(1 / order, x))
    is_long = op.logical_and(op.greater(named, node.like(0, x)), op.greater(norms, node.like(bound, x)))
    scale = op.divide(node.like(bound, x), op.add(norms, node.like(1e-7, x)))
    return op.multiply(x, op.expand_dims(op.where(is_long, scale, node.like(1, x)), [1]))

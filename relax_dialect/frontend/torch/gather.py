"""Gathering and scattering, positions given by tensors that broadcast, and writes into slices."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.edge_cases import indices_within, numbers_at_most
from relax_dialect.frontend.torch.manipulation import indices, positions, scalar_as_vector
from relax_dialect.frontend.torch.node import Node, Result, converts
from relax_dialect.frontend.torch.program import Refusal
from relax_dialect.inference import DEFAULT_PROVER
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import product, symbol
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
    """Elements replaced, or combined with others, at indices along an axis."""
    reduction = _REDUCTIONS[node.text("reduce")] if node.has("reduce") else "update"
    return _scatter(node, node.tensor("self"), reduction)


@converts("aten.scatter_add.default")
@scalar_as_vector
def scatter_add(node: Node) -> Result:
    """Elements added at indices along an axis."""
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
    """Slices at indices along an axis replaced, filled, or added to."""
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


@dataclass(frozen=True)
class Positions:
    """Index tensors, and the dimensions that they are for."""

    tensors: list[Expr]
    axes: list[int]
    rank: int

    @property
    def order(self) -> list[int]:
        """The dimensions of the tensor with those that are indexed in front."""
        return [*self.axes, *(axis for axis in range(self.rank) if axis not in self.axes)]

    @property
    def width(self) -> int:
        """The rank of the index tensors, broadcast."""
        return max(each.ndim or 0 for each in self.tensors)

    @property
    def result_order(self) -> list[int]:
        """Where the dimensions of the result are, of what has the broadcast ones in front: at the first axis that is
        indexed, unless there are others between them.
        """
        first, width, count = self.axes[0], self.width, self.rank - len(self.axes)
        if self.axes != list(range(first, first + len(self.axes))):
            return list(range(width + count))
        before = list(range(width, width + first))
        return [*before, *range(width), *range(width + first, width + count)]


def _positions(node: Node) -> Positions:
    tensors, axes, axis = list[Expr](), list[int](), 0
    for index in node.value("indices"):
        if index is None:
            axis += 1
            continue
        several = (
            _of_mask(node, index) if is_bool(index.dtype) or str(index.dtype) == "ui8" else [_at(node, index, axis)]
        )
        tensors += several
        axes += range(axis, axis + len(several))
        axis += len(several)
    return Positions(tensors, axes, node.rank())


def _at(node: Node, index: Expr, axis: int) -> Expr:
    return indices_within(node.bb, index, [node.shape()[axis]], f"'{node.name}' index {axis}")


def _of_mask(node: Node, mask: Expr) -> list[Expr]:
    """The coordinates at which a mask is true."""
    rank = mask.ndim or 0
    if rank == 0:
        raise Refusal("masks of rank 0 are not supported")
    name = node.bb.fresh_symbol("k")
    found = node.graph.match(op.nonzero(mask), TensorType([rank, symbol(name)], i64))
    return (
        [op.squeeze(part, [0]) for part in op.split(found, sections=rank, axis=0)]
        if rank > 1
        else [op.squeeze(found, [0])]
    )


@converts("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(node: Node) -> Result:
    """The elements, or slices, at indices."""
    where = _positions(node)
    x = _ordered(node.tensor("self"), where.order)
    if where.axes == [0] and where.width == 1:
        return op.take(x, where.tensors[0], 0)
    return _ordered(op.index_tensor(x, where.tensors), where.result_order)


def _ordered(x: Expr, order: list[int]) -> Expr:
    return x if order == sorted(order) else op.permute_dims(x, order)


def _inverse(order: list[int]) -> list[int]:
    return [order.index(axis) for axis in range(len(order))]


@converts("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(node: Node) -> Result:
    """The tensor with values written to, or added at, indices."""
    given = [each for each in node.value("indices") if each is not None]
    values = node.tensor("values", node.dtype())
    first = node.value("indices")[0]
    if (
        len(given) == 1
        and first is not None
        and is_bool(first.dtype)
        and not values.ndim
        and not node.flag("accumulate")
    ):
        after = list(range(first.ndim, node.rank()))
        mask = op.expand_dims(first, after) if after else first
        return op.where(mask, values, node.tensor("self"))
    where = _positions(node)
    x = _ordered(node.tensor("self"), where.order)
    if where.result_order != sorted(where.result_order):
        width = len(where.result_order)
        missing = list(range(width - (values.ndim or 0)))
        values = op.expand_dims(values, missing) if missing else values
        values = op.permute_dims(values, _inverse(where.result_order))
    made = op.index_put(x, values, where.tensors, accumulate=node.flag("accumulate"))
    return _ordered(made, _inverse(where.order))


@converts("aten.masked_scatter.default")
def masked_scatter(node: Node) -> Result:
    """The tensor with the elements of a source, in order, where a mask is true."""
    dims, count = node.out_dims(), product(node.shape("source"))
    mask, x = (op.broadcast_to(node.tensor(name), dims) for name in ("mask", "self"))
    number = op.cumsum(op.reshape(op.astype(mask, i64), [product(dims)]), 0)
    number = numbers_at_most(
        node.bb, number, count, "'masked_scatter' needs as many elements as the mask has, the source"
    )
    source = op.reshape(node.tensor("source"), [count])
    if not DEFAULT_PROVER.less_equal(1, count):  # something to read where the mask is nowhere true
        source = op.concat([source, op.zeros([1], node.dtype())], 0)
    last = op.maximum(op.subtract(number, node.const(1, i64)), node.const(0, i64))
    return op.where(mask, op.reshape(op.take(source, last, 0), dims), x)


@converts("aten.slice_scatter.default")
def slice_scatter(node: Node) -> Result:
    """The tensor with a slice replaced."""
    axis = node.axis()
    start, end = positions(node, node.shape()[axis])
    source = node.tensor("src", node.dtype())
    return op.slice_scatter(node.tensor("self"), source, start, end, node.integer("step", 1), axis)


@converts("aten.select_scatter.default")
def select_scatter(node: Node) -> Result:
    """The tensor with the slice at one position replaced."""
    axis, at = node.axis(), node.dim("index")
    start = node.shape()[axis] - 1 if at.constant_value == -1 else at
    source = op.expand_dims(node.tensor("src", node.dtype()), [axis])
    return op.slice_scatter(node.tensor("self"), source, start, start + 1, 1, axis)


@converts("aten.diagonal_scatter.default")
def diagonal_scatter(node: Node) -> Result:
    """The tensor with a diagonal replaced."""
    offset, one, other = node.integer("offset"), node.axis("dim1"), node.axis("dim2")

    def kernel(x: te.Tensor, source: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            position = i[one] + min(offset, 0)
            rest = [each for at, each in enumerate(i) if at not in (one, other)]
            inside = te.logical_and(i[other] - i[one] == offset, position >= 0)
            return te.if_then_else(inside, source[(*rest, position)], x[i])

        return te.compute(x.shape, element, name="diagonal_scatter")

    return node.te(kernel, node.tensor("self"), node.tensor("src", node.dtype()), name="diagonal_scatter")

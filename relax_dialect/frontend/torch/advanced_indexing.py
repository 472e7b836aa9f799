"""Places given by tensors that broadcast, and writes into slices."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.range_checks import indices_within, numbers_at_most
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.indexing import positions
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.inference import DEFAULT_PROVER
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import product, symbol
from tir_dialect.dtypes import is_bool


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
    """The elements, or slices, at places."""
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
    """The tensor with values written to, or added at, places."""
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
    """The tensor with the slice at one place replaced."""
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

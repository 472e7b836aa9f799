"""Slices and selections."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.range_checks import indices_within
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.frontend.torch.sorting import scalar_as_vector
from tir_dialect import te
from tir_dialect.dims import Dim, constant, product, to_dim

END = 1 << 62
"""What is at or behind this place stands for the end of a dimension."""


@converts("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(node: Node) -> Result:
    """Every `step`-th element from a start to an end; the tensor itself if that is all."""
    axis, step = node.axis(), node.integer("step", 1)
    start, end = positions(node, node.shape()[axis])
    if start.constant_value == 0 and step == 1 and list(node.shape()) == node.out_dims():
        return node.tensor("self")
    return op.strided_slice(node.tensor("self"), [axis], [start], [end], [step])


def positions(node: Node, length: Dim) -> tuple[Dim, Dim]:
    """The start and end of a slice of a dimension."""
    end = node.value("end")
    return node.dim("start"), length if end is None or (isinstance(end, int) and end >= END) else node.dim("end")


@converts("aten.narrow.default", "aten.narrow_copy.default")
def narrow(node: Node) -> Result:
    """A number of elements from a start on."""
    start = node.dim("start")
    return op.strided_slice(node.tensor("self"), [node.axis()], [start], [start + node.dim("length")])


@converts("aten.select.int", "aten.select_copy.int")
def select(node: Node) -> Result:
    """The slice at one place of an axis."""
    axis, index = node.axis(), node.dim("index")
    end = to_dim(node.shape()[axis]) if index.constant_value == -1 else index + 1
    return op.squeeze(op.strided_slice(node.tensor("self"), [axis], [index], [end]), [axis])


@converts("aten.index_select.default")
@scalar_as_vector
def index_select(node: Node) -> Result:
    """The slices at places along an axis."""
    index = indices(node, "index", node.axis())
    return op.take(node.tensor("self"), index if index.ndim else op.expand_dims(index, [0]), node.axis())


def indices(node: Node, name: str, axis: int, of: str = "self") -> Expr:
    """An argument whose elements are places along an axis of another one, which PyTorch counts from the front only."""
    shape = node.shape(of)
    extent = shape[axis] if shape else constant(1)
    return indices_within(node.bb, node.tensor(name), [extent], f"'{node.name}' {name}", from_back=False)


@converts("aten.take.default")
def take(node: Node) -> Result:
    """Elements at offsets of the flattened tensor."""
    x = op.flatten(node.tensor("self"))
    found = indices_within(node.bb, node.tensor("index"), [product(node.shape())], "'take' index")
    return op.take(x, found, 0)


@converts("aten.as_strided.default", "aten.as_strided_copy.default")
def as_strided(node: Node) -> Result:
    """Elements of memory, as strides say; the tensor is taken as it lies in memory if nothing was moved."""

    def kernel(x: te.Tensor) -> te.Tensor:
        return te.compute(node.out_dims(), lambda *i: x[_offset(node, i)], name="as_strided")

    return node.te(kernel, op.flatten(node.tensor("self")), name="as_strided")


@converts("aten.as_strided_scatter.default")
def as_strided_scatter(node: Node) -> Result:
    """The tensor, in which elements of memory, as strides say, are those of another."""
    x, dims = node.tensor("self"), node.shape("src")

    def kernel() -> te.Tensor:
        return te.compute(dims, lambda *i: te.cast(_offset(node, i), "i64"), name="offsets")

    offsets = op.flatten(node.te(kernel, name="offsets"))
    written = op.scatter_elements(op.flatten(x), offsets, op.flatten(node.tensor("src", node.dtype())), 0)
    return op.reshape(written, node.out_dims())


def _offset(node: Node, indices: Sequence[te.Expr]) -> te.Expr:
    """Where an element is in memory, by the node's strides and offset."""
    found: te.Expr = te.cast(node.dim("storage_offset"), "index")
    for at, stride in zip(indices, node.dims("stride"), strict=True):
        found = found + at * te.cast(stride, "index")
    return found


@converts("aten.unfold.default", "aten.unfold_copy.default")
def unfold(node: Node) -> Result:
    """Windows that slide along a dimension, their elements as last dimension."""
    axis, step = node.axis("dimension"), node.integer("step")

    def kernel(x: te.Tensor) -> te.Tensor:
        def element(*i: te.Expr) -> te.Expr:
            return x[(*i[:axis], i[axis] * step + i[-1], *i[axis + 1 : -1])]

        return te.compute(node.out_dims(), element, name="unfold")

    x = node.tensor("self")
    return node.te(kernel, x if node.rank() else op.reshape(x, [1]), name="unfold")

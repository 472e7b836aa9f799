"""Joining, cutting and repeating."""

from __future__ import annotations

from xdsl.dialects.builtin import i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.struct_info.types import ShapeType
from tir_dialect.dims import Dim, product, to_dim


@converts("aten.cat.default", "aten.concat.default", "aten.concatenate.default")
def cat(node: Node) -> Result:
    """Tensors one after the other; what has rank 1 and no elements does not count."""
    rank = len(node.out_dims())
    parts = [each for each in node.tensors("tensors", node.out_dtype()) if each.ndim == rank]
    return parts[0] if len(parts) == 1 else op.concat(parts, node.integer("dim") % rank)


@converts("aten.stack.default")
def stack(node: Node) -> Result:
    """Tensors along a new axis."""
    return op.stack(node.tensors("tensors", node.out_dtype()), node.integer("dim"))


@converts("aten.split.Tensor", "aten.split_copy.Tensor", "aten.chunk.default")
def split(node: Node) -> Result:
    """Parts of one size, the last one smaller if need be."""
    sizes = [node.out_dims(index)[node.axis()] for index in range(len(node.results))]
    return _parts(node, sizes)


@converts("aten.split_with_sizes.default", "aten.split_with_sizes_copy.default", "aten.split.sizes")
def split_with_sizes(node: Node) -> Result:
    """Parts of given sizes."""
    return _parts(node, node.dims("split_sizes" if node.has("split_sizes") else "split_size"))


@converts("aten.tensor_split.indices", "aten.tensor_split.sections")
def tensor_split(node: Node) -> Result:
    """Parts whose sizes PyTorch says."""
    return split(node)


def _parts(node: Node, sizes: list[Dim]) -> Result:
    """The tensor cut into parts of these sizes along the axis of the node."""
    if len(sizes) == 1:
        return [node.tensor("self")]
    ends = [sum(sizes[: at + 1], to_dim(0)) for at in range(len(sizes) - 1)]
    return list(op.split(node.tensor("self"), indices=ends, axis=node.axis()))


@converts("aten.unbind.int", "aten.unbind_copy.int")
def unbind(node: Node) -> Result:
    """The slices along an axis."""
    axis, count = node.axis(), len(node.results)
    if count == 0:
        return []
    parts = op.split(node.tensor("self"), sections=count, axis=axis) if count > 1 else [node.tensor("self")]
    return [op.squeeze(part, [axis]) for part in parts]


@converts("aten.repeat.default", "aten.tile.default")
def repeat(node: Node) -> Result:
    """The tensor laid side by side."""
    times = node.dims("repeats" if node.has("repeats") else "dims")
    fixed = [each.constant_value for each in times]
    if None not in fixed:
        return op.tile(node.tensor("self"), [each for each in fixed if each is not None])
    rank = max(len(times), node.rank())
    shape = [to_dim(1)] * (rank - node.rank()) + list(node.shape())
    times = [to_dim(1)] * (rank - len(times)) + times
    return _spread(node, shape, [[many, each] for many, each in zip(times, shape, strict=True)], new=0)


@converts("aten.repeat_interleave.self_int")
def repeat_interleave(node: Node) -> Result:
    """Each element several times along an axis; without an axis, of the flattened tensor."""
    axis = node.axis() if node.has("dim") else None
    times = node.dim("repeats")
    if times.constant_value is not None:
        return op.repeat(node.tensor("self"), times.constant_value, axis)
    shape = list(node.shape()) if axis is not None else [product(node.shape())]
    pairs = [[each, times if at == (axis or 0) else to_dim(1)] for at, each in enumerate(shape)]
    return _spread(node, shape, pairs, new=1)


def _spread(node: Node, shape: list[Dim], pairs: list[list[Dim]], *, new: int) -> Expr:
    """The tensor of a shape with each dimension as a pair of itself and a number of repeats, at index `new` of it."""
    split = [pair[1 - new] if at != new else to_dim(1) for pair in pairs for at in (0, 1)]
    spread = op.broadcast_to(op.reshape(node.tensor("self"), split), [each for pair in pairs for each in pair])
    return op.reshape(spread, [first * second for first, second in pairs])


@converts("aten.repeat_interleave.Tensor")
def indices_repeated(node: Node) -> Result:
    """The index of each element as often as the element says."""
    times = node.tensor("repeats", i64)
    ends = op.cumsum(times, 0)
    (count,) = node.out_dims()
    length = op.tensor_to_shape(op.reshape(op.sum(times), [1]))
    node.graph.match(length, ShapeType([count]))
    return node.matched(op.bucketize(op.arange(0, count, 1, dtype=i64), ends, right=True), node.out_dtype())


@converts("aten.meshgrid.default", "aten.meshgrid.indexing")
def meshgrid(node: Node) -> Result:
    """Vectors, or scalars, as coordinates of a grid."""
    vectors = [op.reshape(each, [1]) if each.ndim == 0 else each for each in node.tensors("tensors")]
    return list(op.meshgrid(vectors, node.text("indexing", "ij")))

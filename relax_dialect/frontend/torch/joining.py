"""Joining, cutting and repeating."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from tir_dialect.dims import Dim, to_dim


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
    return op.tile(node.tensor("self"), node.integers("repeats" if node.has("repeats") else "dims"))


@converts("aten.repeat_interleave.self_int")
def repeat_interleave(node: Node) -> Result:
    """Each element several times along an axis; without an axis, of the flattened tensor."""
    axis = node.axis() if node.has("dim") else None
    return op.repeat(node.tensor("self"), node.integer("repeats"), axis)


@converts("aten.meshgrid.default", "aten.meshgrid.indexing")
def meshgrid(node: Node) -> Result:
    """Vectors as coordinates of a grid."""
    return list(op.meshgrid(node.tensors("tensors"), node.text("indexing", "ij")))

"""Joining, cutting and repeating."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.builder import op
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, ceildiv, constant, total


@converts("Concat")
def concat(node: Node) -> Result:
    """Tensors one after the other."""
    parts = [node[index] for index in range(len(node.inputs))]
    return parts[0] if len(parts) == 1 else op.concat(parts, node.axis())


@converts("Split")
def split(node: Node) -> Result:
    """Parts of given sizes, or as equal as can be."""
    axis = node.axis()
    length, count = node.shape()[axis], len(node.outputs)
    sizes = _sizes(node, length, count)
    rest = length - total(sizes)
    if rest.constant_value or any((size.constant_value or 0) < 0 for size in sizes):
        raise Refusal(f"a dimension of {length} is cut into parts of {', '.join(map(str, sizes))}")
    places = [total(sizes[:at]) for at in range(1, len(sizes))]
    if not places:
        return node.value(0)
    parts = list(op.split(node[0], indices=places, axis=axis))
    if not rest.is_constant:
        shape = [sizes[-1] if at == axis else dim for at, dim in enumerate(node.shape())]
        parts[-1] = node.bb.match_cast(parts[-1], TensorType(shape, node.dtype()))
    return parts


def _sizes(node: Node, length: Dim, count: int) -> Sequence[Dim]:
    given = node.integers("split")
    if given is not None:
        return [constant(size) for size in given]
    if node.has(1):
        known = node.dims(1)
        return node.run_time_dims(node[1]) if known is None else known
    parts = node.integer("num_outputs", count) or count
    if parts != count:
        raise Refusal(f"the tensor is cut into {parts} parts, but the node has {count} outputs")
    size = ceildiv(length, parts)
    rest = length - size * (parts - 1)
    return [size] * (parts - 1) + [rest]


@converts("Tile")
def tile(node: Node) -> Result:
    """The tensor repeated along each dimension."""
    repeats = node.ints(1)
    if repeats is not None:
        return op.tile(node[0], repeats)
    known = node.dims(1)
    factors = node.run_time_dims(node[1]) if known is None else known
    shape = node.shape()
    if len(factors) != len(shape):
        raise Refusal(f"expected {len(shape)} repeats, got {len(factors)}")
    wide = node.named([dim * factor for dim, factor in zip(shape, factors, strict=True)])
    return node.te(
        lambda x: te.compute(
            wide, lambda *i: x[tuple(te.floormod(at, dim) for at, dim in zip(i, shape, strict=True))], name="tile"
        ),
        node[0],
    )

"""Embeddings, and channels moved in space."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import i64

from relax_dialect.builder import op
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.indexing import indices
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts


@converts("aten.embedding.default")
def embedding(node: Node) -> Result:
    """Rows of a table."""
    return op.take(node.tensor("weight"), indices(node, "indices", 0, "weight"), 0)


@converts("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def embedding_bag(node: Node) -> Result:
    """Sums, means or greatest elements of the rows of a table that are in one bag; `offsets` says where each begins."""
    if any(node.wants(index) for index in (1, 2, 3)):
        raise Refusal("only the first result is supported: the others are for training")
    positions, (bags, width) = node.tensor("indices", i64), node.out_dims()
    (count,) = node.shape("indices")
    starts, last = node.tensor("offsets", i64), node.graph.dimension(bags - 1, i64)
    bag = op.subtract(op.bucketize(op.arange(0, count, 1, dtype=i64), starts, right=True), node.const(1, i64))
    rows = op.take(node.tensor("weight"), positions, 0)
    seen = op.less_equal(bag, last)  # the last offset may be the end of the last bag
    if node.integer("padding_idx", -1) >= 0:
        seen = op.logical_and(seen, op.not_equal(positions, node.const(node.integer("padding_idx"), i64)))
    seen, bag = op.expand_dims(seen, [1]), op.minimum(bag, last)
    if node.has("per_sample_weights"):
        rows = op.multiply(rows, op.expand_dims(node.tensor("per_sample_weights"), [1]))
    mode, none, zero = node.integer("mode"), node.like(-math.inf, rows), node.like(0, rows)
    if mode == 2:
        rows, base = op.where(seen, rows, none), op.full([bags, width], none)
        made = op.scatter_nd(base, op.expand_dims(bag, [1]), rows, "max")
        return [op.where(op.equal(made, none), zero, made), None, None, None]
    made = op.index_put(op.full([bags, width], zero), op.where(seen, rows, zero), [bag], accumulate=True)
    if mode == 1:
        members = op.index_put(op.full([bags, 1], zero), op.astype(seen, node.dtype("weight")), [bag], accumulate=True)
        made = op.divide(made, op.maximum(members, node.like(1, rows)))
    return [made, None, None, None]


@converts("aten.pixel_shuffle.default")
def pixel_shuffle(node: Node) -> Result:
    """Channels laid out in space."""
    return op.nn.pixel_shuffle(node.tensor("self"), node.integer("upscale_factor"))


@converts("aten.pixel_unshuffle.default")
def pixel_unshuffle(node: Node) -> Result:
    """Blocks of space as channels."""
    x, r = node.tensor("self"), node.integer("downscale_factor")
    *lead, c, h, w = node.shape()
    rank = len(lead)
    split = op.reshape(x, [*lead, c, h // r, r, w // r, r])
    order = [*range(rank), rank, rank + 2, rank + 4, rank + 1, rank + 3]
    return op.reshape(op.permute_dims(split, order), node.out_dims())


@converts("aten.channel_shuffle.default")
def channel_shuffle(node: Node) -> Result:
    """Channels of several groups in turn."""
    groups, (n, c, *rest) = node.integer("groups"), node.shape()
    split = op.reshape(node.tensor("self"), [n, groups, c // groups, *rest])
    order = [0, 2, 1, *range(3, len(rest) + 3)]
    return op.reshape(op.permute_dims(split, order), node.out_dims())

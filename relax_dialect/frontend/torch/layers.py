"""Layers that do little in inference, and embeddings."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.indexing import indices
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts


@converts("aten.embedding.default")
def embedding(node: Node) -> Result:
    """Rows of a table."""
    return op.take(node.tensor("weight"), indices(node, "indices", 0, "weight"), 0)


@converts("aten.native_dropout.default")
def dropout(node: Node) -> Result:
    """The data as they are, and a mask that is true everywhere; dropping is random."""
    if node.flag("train") and node.number("p"):
        raise Refusal("dropout in training is random: export the module after eval()")
    return node.tensor("input"), op.full(node.out_dims(), node.bb.const(True))


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

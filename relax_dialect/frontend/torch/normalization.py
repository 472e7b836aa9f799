"""Normalisation, embeddings, and channels moved in space."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.manipulation import indices
from relax_dialect.frontend.torch.node import Node, Result, converts
from relax_dialect.frontend.torch.program import Refusal
from tir_dialect.dims import Dim, product

_EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}
"""The distance of 1 to the next number, which is the default of `rms_norm`."""


def _given(node: Node, name: str, value: float, dims: Sequence[Dim]) -> Expr:
    """An argument, or a tensor of one value."""
    found = node.optional(name)
    return op.full(list(dims), node.const(value, node.out_dtype())) if found is None else found


@converts("aten.layer_norm.default", "aten.native_layer_norm.default")
def layer_norm(node: Node) -> Result:
    """Over the last dimensions; and mean and inverse deviation, for which only training has a use."""
    dims = node.dims("normalized_shape")
    axes = list(range(-len(dims), 0))
    made = op.nn.layer_norm(
        node.tensor("input"),
        _given(node, "weight", 1.0, dims),
        _given(node, "bias", 0.0, dims),
        axes,
        node.number("eps"),
        center=node.has("bias"),
        scale=node.has("weight"),
    )
    return made if node.name == "layer_norm" else [made, *_mean_and_inverse_deviation(node, node.tensor("input"), axes)]


def _mean_and_inverse_deviation(node: Node, x: Expr, axes: Sequence[int]) -> list[Expr | None]:
    """Results 1 and 2 of a normalisation over some axes of `x`, those that are used."""

    def as_result(index: int, value: Expr) -> Expr:
        return op.reshape(node.matched(value, node.out_dtype(index)), node.out_dims(index))

    found: list[Expr | None] = [None, None]
    if node.wants(1):
        found[0] = as_result(1, op.mean(x, list(axes)))
    if node.wants(2):
        variance = op.variance(x, list(axes))
        found[1] = as_result(2, op.rsqrt(op.add(variance, node.like(node.number("eps"), variance))))
    return found


@converts("aten.rms_norm.default")
def rms_norm(node: Node) -> Result:
    """By the root of the mean square of the last dimensions."""
    dims = node.dims("normalized_shape")
    epsilon = node.number("eps", _EPSILON[str(node.dtype("input"))])
    return op.nn.rms_norm(node.tensor("input"), _given(node, "weight", 1.0, dims), list(range(-len(dims), 0)), epsilon)


@converts("aten.group_norm.default")
def group_norm(node: Node) -> Result:
    """Groups of channels, each with all that is in them."""
    return _in_groups(node, node.integer("num_groups"))


@converts("aten.native_group_norm.default")
def native_group_norm(node: Node) -> Result:
    """Groups of channels; and mean and inverse deviation, for which only training has a use."""
    items, channels, *spatial = node.shape("input")
    groups = node.integer("group")
    size = product([channels // groups, *spatial])
    x = op.reshape(node.tensor("input"), [items, groups, size])
    return [_in_groups(node, groups), *_mean_and_inverse_deviation(node, x, [2])]


def _in_groups(node: Node, groups: int) -> Expr:
    channels = node.shape("input")[1:2]
    gamma, beta = _given(node, "weight", 1.0, channels), _given(node, "bias", 0.0, channels)
    axes = list(range(2, node.rank("input")))
    return op.nn.group_norm(node.tensor("input"), gamma, beta, groups, 1, axes, node.number("eps"))


@converts("aten._native_batch_norm_legit_no_training.default")
def batch_norm(node: Node) -> Result:
    """Each channel with a mean and variance that are known."""
    return [_batch_norm(node, node.tensor("running_mean"), node.tensor("running_var")), *_no_statistics(node)]


@converts("aten._native_batch_norm_legit.no_stats")
def batch_norm_of_batch(node: Node) -> Result:
    """Each channel with the mean and variance of the batch."""
    mean, variance = _statistics(node)
    return [_batch_norm(node, mean, variance), *_statistics_of_batch(node)]


@converts("aten._native_batch_norm_legit_functional.default")
def batch_norm_in_training(node: Node) -> Result:
    """With the mean and variance of the batch, which also move those that are kept."""
    old = node.tensor("running_mean"), node.tensor("running_var")
    if not node.flag("training"):
        return [_batch_norm(node, *old), *_no_statistics(node), *old]
    mean, variance = _statistics(node)
    dims = node.shape("input")
    count = node.graph.dimension(product([dims[0], *dims[2:]]), node.out_dtype())
    unbiased = op.multiply(variance, op.divide(count, op.subtract(count, node.like(1, count))))
    rate = node.number("momentum")
    moved = [
        op.add(op.multiply(kept, node.like(1 - rate, kept)), op.multiply(new, node.like(rate, kept)))
        for kept, new in zip(old, (mean, unbiased), strict=True)
    ]
    return [_batch_norm(node, mean, variance), *_statistics_of_batch(node), *moved]


def _statistics_of_batch(node: Node) -> list[Expr | None]:
    """The mean and the inverse deviation of each channel, those that are used."""
    return _mean_and_inverse_deviation(node, node.tensor("input"), [0, *range(2, node.rank("input"))])


def _no_statistics(node: Node) -> list[Expr]:
    """What stands for them where none are made."""
    return [op.zeros(node.out_dims(index), node.out_dtype(index)) for index in (1, 2)]


def _statistics(node: Node) -> tuple[Expr, Expr]:
    """The mean and variance of each channel."""
    axes = [0, *range(2, node.rank("input"))]
    return op.mean(node.tensor("input"), axes), op.variance(node.tensor("input"), axes)


def _batch_norm(node: Node, mean: Expr, variance: Expr) -> Expr:
    channels = node.shape("input")[1:2]
    gamma, beta = _given(node, "weight", 1.0, channels), _given(node, "bias", 0.0, channels)
    return op.nn.batch_norm(node.tensor("input"), gamma, beta, mean, variance, 1, node.number("eps"))


@converts("aten.instance_norm.default")
def instance_norm(node: Node) -> Result:
    """Each channel of each item by itself, or with a mean and variance that are known."""
    if not node.flag("use_input_stats"):
        return _batch_norm(node, node.tensor("running_mean"), node.tensor("running_var"))
    channels = node.shape("input")[1:2]
    gamma, beta = _given(node, "weight", 1.0, channels), _given(node, "bias", 0.0, channels)
    axes = list(range(2, node.rank("input")))
    return op.nn.instance_norm(node.tensor("input"), gamma, beta, 1, axes, node.number("eps"))


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

"""Pooling."""

from __future__ import annotations

import math

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.frontend.torch.windows import batched, each, padding

_MAX = {1: op.nn.max_pool1d, 2: op.nn.max_pool2d, 3: op.nn.max_pool3d}
_AVERAGE = {1: op.nn.avg_pool1d, 2: op.nn.avg_pool2d, 3: op.nn.avg_pool3d}
_ADAPTIVE = {1: op.nn.adaptive_avg_pool1d, 2: op.nn.adaptive_avg_pool2d, 3: op.nn.adaptive_avg_pool3d}


def _rank(node: Node) -> int:
    """The number of spatial dimensions, which the name says: `max_pool2d_with_indices`."""
    return int(node.name[node.name.index("d", node.name.index("pool")) - 1])


@converts(*(f"aten.max_pool{rank}d.default" for rank in _MAX))
def max_pool(node: Node) -> Result:
    """The greatest element of each window."""
    return _max_pool(node)


@converts("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool_with_indices(node: Node) -> Result:
    """The greatest element of each window; where it is, is not supported."""
    if node.wants(1):
        raise Refusal("the places of the greatest elements are not supported")
    return [_max_pool(node), None]


def _max_pool(node: Node) -> Expr:
    rank = _rank(node)
    sizes = each(node, "kernel_size", rank)

    def apply(x: Expr) -> Expr:
        return _MAX[rank](
            x,
            sizes,
            strides=each(node, "stride", rank) if node.integers("stride") else sizes,
            padding=padding(node, rank),
            dilation=each(node, "dilation", rank, 1),
            ceil_mode=node.flag("ceil_mode"),
        )

    return batched(node.tensor("self"), rank, apply)


@converts(*(f"aten.avg_pool{rank}d.default" for rank in _AVERAGE))
def avg_pool(node: Node) -> Result:
    """The mean of each window, or its sum divided by a number."""
    rank = _rank(node)
    sizes, divisor = each(node, "kernel_size", rank), node.value("divisor_override")
    if divisor is not None and node.flag("ceil_mode"):
        raise Refusal("a divisor together with ceil_mode is not supported")

    def apply(x: Expr) -> Expr:
        made = _AVERAGE[rank](
            x,
            sizes,
            strides=each(node, "stride", rank) if node.integers("stride") else sizes,
            padding=padding(node, rank),
            ceil_mode=node.flag("ceil_mode"),
            count_include_pad=node.flag("count_include_pad") or divisor is not None,
        )
        return made if divisor is None else op.multiply(made, node.like(math.prod(sizes) / divisor, made))

    return batched(node.tensor("self"), rank, apply)


@converts(
    *(f"aten.adaptive_avg_pool{rank}d.default" for rank in _ADAPTIVE),
    "aten._adaptive_avg_pool2d.default",
    "aten._adaptive_avg_pool3d.default",
)
def adaptive_avg_pool(node: Node) -> Result:
    """Means over a number of windows that cover the data."""
    rank = _rank(node)
    sizes = [dim.constant_value for dim in node.out_dims()[-rank:]]
    if sizes == [1] * rank:
        return op.mean(node.tensor("self"), list(range(-rank, 0)), keepdims=True)
    fixed = [size for size in sizes if size is not None]
    if len(fixed) < rank:
        raise Refusal("the number of windows depends on sizes")
    return batched(node.tensor("self"), rank, lambda x: _ADAPTIVE[rank](x, fixed))


@converts(*(f"aten.adaptive_max_pool{rank}d.default" for rank in _MAX))
def adaptive_max_pool(node: Node) -> Result:
    """The greatest elements of a number of windows of one size."""
    rank = _rank(node)
    if node.wants(1):
        raise Refusal("the places of the greatest elements are not supported")
    lengths, counts = (dims[-rank:] for dims in (node.shape(), node.out_dims()))
    if all(count.constant_value == 1 for count in counts):
        return [op.max(node.tensor("self"), list(range(-rank, 0)), keepdims=True), None]
    pairs = [(each.constant_value, count.constant_value) for each, count in zip(lengths, counts, strict=True)]
    windows = [length // count for length, count in pairs if length and count and length % count == 0]
    if len(windows) < rank:
        raise Refusal("windows of different sizes are not supported")
    return [batched(node.tensor("self"), rank, lambda x: _MAX[rank](x, windows, strides=windows)), None]

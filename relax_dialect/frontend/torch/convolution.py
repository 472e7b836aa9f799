"""Convolutions, and the windows that they have in common with pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.program import Refusal
from relax_dialect.frontend.torch.registry import Result, converts


def each(node: Node, name: str, rank: int, default: int | None = None) -> list[int]:
    """One number per spatial dimension; PyTorch writes one for all, and nothing for the default."""
    found = node.integers(name)
    if not found:
        return [0 if default is None else default] * rank
    return found * rank if len(found) == 1 else found


def padding(node: Node, rank: int) -> list[int]:
    """What is before each dimension, then what is behind each."""
    return each(node, "padding", rank) * 2


def batched(x: Expr, rank: int, function: Callable[[Expr], Expr]) -> Expr:
    """A function of data with a batch dimension, applied to data with or without one."""
    if x.ndim == rank + 2:
        return function(x)
    if x.ndim != rank + 1:
        raise Refusal(f"expected data of rank {rank + 1} or {rank + 2}, got rank {x.ndim}")
    return op.squeeze(function(op.expand_dims(x, [0])), [0])


def with_bias(x: Expr, bias: Expr | None, spatial: int) -> Expr:
    """`x` with a bias for each channel, behind which there are spatial dimensions."""
    if bias is None:
        return x
    return op.add(x, op.expand_dims(bias, list(range(1, spatial + 1))) if spatial else bias)


def same_padding(kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """The padding with which the size stays: the larger half behind."""
    totals = [by * (size - 1) for size, by in zip(kernel, dilation, strict=True)]
    return [total // 2 for total in totals] + [total - total // 2 for total in totals]


_FORWARD = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}
_TRANSPOSED = {1: op.nn.conv1d_transpose, 2: op.nn.conv2d_transpose, 3: op.nn.conv3d_transpose}


@converts("aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default")
def conv(node: Node) -> Result:
    """A convolution, and a bias for each filter."""
    return _forward(node, padding(node, _rank(node)))


@converts("aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding")
def conv_padding(node: Node) -> Result:
    """A convolution without padding, or with one that keeps the size."""
    rank = _rank(node)
    if node.text("padding") == "valid":
        return _forward(node, [0] * 2 * rank)
    kernel = [dim.constant_value or 1 for dim in node.shape("weight")[2:]]
    return _forward(node, same_padding(kernel, each(node, "dilation", rank, 1)))


@converts("aten.conv_transpose1d.default", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input")
def conv_transpose(node: Node) -> Result:
    """A transposed convolution, and a bias for each filter."""
    return _transposed(node)


@converts("aten.convolution.default")
def convolution(node: Node) -> Result:
    """Either of them."""
    return _transposed(node) if node.flag("transposed") else _forward(node, padding(node, _rank(node)))


def _rank(node: Node) -> int:
    """The number of spatial dimensions."""
    rank = node.rank("weight") - 2
    if rank not in _FORWARD:
        raise Refusal(f"convolutions over {rank} dimensions are not supported")
    return rank


def _forward(node: Node, pads: list[int]) -> Expr:
    rank = _rank(node)

    def apply(x: Expr) -> Expr:
        return _FORWARD[rank](
            x,
            node.tensor("weight"),
            strides=each(node, "stride", rank, 1),
            padding=pads,
            dilation=each(node, "dilation", rank, 1),
            groups=node.integer("groups", 1),
        )

    return batched(node.tensor("input"), rank, lambda x: with_bias(apply(x), node.optional("bias"), rank))


def _transposed(node: Node) -> Expr:
    rank = _rank(node)

    def apply(x: Expr) -> Expr:
        return _TRANSPOSED[rank](
            x,
            node.tensor("weight"),
            strides=each(node, "stride", rank, 1),
            padding=padding(node, rank),
            output_padding=each(node, "output_padding", rank),
            dilation=each(node, "dilation", rank, 1),
            groups=node.integer("groups", 1),
        )

    return batched(node.tensor("input"), rank, lambda x: with_bias(apply(x), node.optional("bias"), rank))

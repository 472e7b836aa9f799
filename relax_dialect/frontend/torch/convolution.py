"""Convolutions."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.errors import Refusal
from relax_dialect.frontend.torch.node import Node
from relax_dialect.frontend.torch.registry import Result, converts
from relax_dialect.frontend.torch.windows import batched, each, padding, same_padding, with_bias

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

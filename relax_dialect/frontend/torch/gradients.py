"""Gradients of convolutions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.convolution import FORWARD, TRANSPOSED, each
from relax_dialect.frontend.torch.node import Node, Result, converts
from relax_dialect.frontend.torch.program import Refusal
from tir_dialect.dims import Dim, product


@converts("aten.convolution_backward.default")
def convolution_backward(node: Node) -> Result:
    """The gradients of the data, the weights and the bias of a convolution, those that are used."""
    rank = node.rank("weight") - 2
    if rank not in FORWARD:
        raise Refusal(f"convolutions over {rank} dimensions are not supported")
    gradient = node.tensor("grad_output")
    spatial = list(range(2, rank + 2))
    return [
        _gradient_of_data(node, rank) if node.wants(0) else None,
        _gradient_of_weights(node, rank) if node.wants(1) else None,
        op.sum(gradient, [0, *spatial]) if node.wants(2) else None,
    ]


def _gradient_of_data(node: Node, rank: int) -> Expr:
    """The other kind of convolution of the gradient, with the same weights."""
    gradient, weight = node.tensor("grad_output"), node.tensor("weight")
    strides, pads, dilation = (each(node, name, rank) for name in ("stride", "padding", "dilation"))
    lengths = node.shape("input")[2:]
    if node.flag("transposed"):
        found = FORWARD[rank](
            gradient, weight, strides=strides, padding=pads * 2, dilation=dilation, groups=node.integer("groups", 1)
        )
        return _first(found, lengths)
    found = TRANSPOSED[rank](
        gradient,
        weight,
        strides=strides,
        padding=pads * 2,
        output_padding=[stride - 1 for stride in strides],  # as much as a stride may have left out
        dilation=dilation,
        groups=node.integer("groups", 1),
    )
    return _first(found, lengths)


def _first(x: Expr, lengths: Sequence[Dim]) -> Expr:
    """As many elements of each spatial dimension."""
    if x.shape is not None and x.shape[2:] == tuple(lengths):
        return x
    return op.strided_slice(x, axes=list(range(2, len(lengths) + 2)), begin=[0] * len(lengths), end=list(lengths))


def _gradient_of_weights(node: Node, rank: int) -> Expr:
    """A matrix product over batch and positions of what convolves with what each element of a window sees."""
    groups = node.integer("groups", 1)
    names = ("grad_output", "input") if node.flag("transposed") else ("input", "grad_output")
    data, positions = (node.tensor(name) for name in names)
    (batch, channels, *_), (_, filters, *extents) = (node.shape(name) for name in names)
    count = batch * product(extents)
    windows = _windows(node, data, extents, rank)
    size = len(windows)

    # for each group, filters by positions times positions by channels and elements of the window
    spatial = list(range(2, rank + 2))
    left = op.reshape(op.permute_dims(positions, [1, 0, *spatial]), [groups, filters // groups, count])
    seen = op.stack(windows, 1) if size > 1 else op.expand_dims(windows[0], [1])
    right = op.reshape(
        op.permute_dims(seen, [2, 1, 0, *(axis + 1 for axis in spatial)]),
        [groups, channels // groups * size, count],
    )
    made = op.matmul(left, op.permute_dims(right, [0, 2, 1]))
    return op.reshape(made, node.shape("weight"))


def _windows(node: Node, data: Expr, extents: Sequence[Dim], rank: int) -> list[Expr]:
    """For each element of a window, in order: the data that it is multiplied with, at all positions of the window."""
    strides, pads, dilation = (each(node, name, rank) for name in ("stride", "padding", "dilation"))
    kernel = [dim.constant_value for dim in node.shape("weight")[2:]]
    widths = [0] * 4 + [width for pad, extra in zip(pads, strides, strict=True) for width in (pad, pad + extra)]
    padded = op.nn.pad(data, widths)
    axes = list(range(2, rank + 2))
    found: list[Expr] = []
    for at in itertools.product(*(range(size or 0) for size in kernel)):
        begin = [by * index for by, index in zip(dilation, at, strict=True)]
        end = [first + stride * (length - 1) + 1 for first, stride, length in zip(begin, strides, extents, strict=True)]
        found.append(op.strided_slice(padded, axes=axes, begin=begin, end=end, strides=strides))
    if not found:
        raise Refusal("the size of the window is not known")
    return found

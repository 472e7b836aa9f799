"""The convolution that a node describes, of what operands ever."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.windows import kernel_sizes, window_attributes

_FORWARD = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}


def convolution(node: Node, x: Expr, w: Expr, index: int = 1) -> Expr:
    """The convolution of a node without its bias; `index` is the operand that is the kernel."""
    lengths = node.shape()[2:]
    if len(lengths) not in _FORWARD:
        raise Refusal(f"convolutions over {len(lengths)} dimensions are not supported")
    windows = window_attributes(node, lengths, kernel_sizes(node, index))
    return _FORWARD[len(lengths)](
        x,
        w,
        strides=windows.strides,
        padding=windows.pads,
        dilation=windows.dilations,
        groups=node.integer("group", 1),
    )

"""Convolutions of bytes less their zero points: channels last, so that the products of a window are sums of bytes.

The permutations of the dimensions before and after meet those of neighbours and go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.byte_products import weights_with_sign
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.windows import kernel_sizes, window_attributes

_CONVOLUTIONS = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}
_LETTERS = {1: "W", 2: "HW", 3: "DHW"}


def convolution_of_bytes(node: Node, data: tuple[int, int], kernel: tuple[int, int]) -> Expr | None:
    """The convolution of data and a kernel, each operand with its zero point, as `i32`.

    `None` where it is no sum of products of bytes alone: of groups, for zero points of the data that are not known, or
    of the kernel that are not 0.
    """
    rank = node.rank(data[0]) - 2
    points = node.known(data[1]) if node.has(data[1]) else np.zeros(1)
    weights, zero_w = weights_with_sign(node, *kernel)
    if rank not in _CONVOLUTIONS or node.integer("group", 1) != 1 or zero_w is not None:
        return None
    if points is None or points.size != 1:
        return None
    last = (0, *range(2, rank + 2), 1)
    x, w, zero = op.permute_dims(node[data[0]], last), op.permute_dims(weights, last), int(points.reshape(-1)[0])
    lengths = node.shape(data[0])[2:]
    windows = window_attributes(node, lengths, kernel_sizes(node, kernel[0]))
    letters = _LETTERS[rank]
    total = _CONVOLUTIONS[rank](
        _padded(x, windows.pads, zero),
        w,
        strides=windows.strides,
        dilation=windows.dilations,
        data_layout=f"N{letters}C",
        kernel_layout=f"O{letters}I",
        out_dtype=i32,
    )
    if zero:
        sums = op.sum(op.astype(w, i32), range(1, rank + 2))
        total = op.subtract(total, op.multiply(sums, node.const(zero, i32)))
    return op.permute_dims(total, (0, rank + 1, *range(1, rank + 1)))


def _padded(x: Expr, pads: Sequence[int], zero: int) -> Expr:
    """Data with their zero point around them."""
    if not any(pads):
        return x
    rank = len(pads) // 2
    around = [each for axis in range(rank) for each in (pads[axis], pads[axis + rank])]
    return op.nn.pad(x, [0, 0, *around, 0, 0], pad_value=zero)

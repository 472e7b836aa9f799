"""Convolutions of bytes less their zero points.

`channels-last` lets them compute in an order in which the products of a window are sums of neighbouring bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.byte_products import weights_with_sign
from relax_dialect.frontend.onnx.exact_sums import dtype_of_sums
from relax_dialect.frontend.onnx.forward_convolution import convolution
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.windows import kernel_sizes, window_attributes
from tir_dialect.dims import constant

_CONVOLUTIONS = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}


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
    zero = int(points.reshape(-1)[0])
    lengths = node.shape(data[0])[2:]
    windows = window_attributes(node, lengths, kernel_sizes(node, kernel[0]))
    total = _CONVOLUTIONS[rank](
        _padded(node[data[0]], windows.pads, zero),
        weights,
        strides=windows.strides,
        dilation=windows.dilations,
        out_dtype=i32,
    )
    if zero:
        sums = op.sum(op.astype(weights, i32), range(1, rank + 2))
        total = op.subtract(total, op.expand_dims(op.multiply(sums, node.const(zero, i32)), range(1, rank + 1)))
    return total


def convolution_in(node: Node, data: tuple[int, int], kernel: tuple[int, int], dtype: Attribute) -> Expr:
    """The convolution of two operands less their zero points as numbers of a dtype."""
    x, w = op.astype(node[data[0]], dtype), op.astype(node[kernel[0]], dtype)
    if node.has(data[1]):
        x = op.subtract(x, scalar(op.astype(node[data[1]], dtype)))
    if node.has(kernel[1]):
        w = op.subtract(w, by_filter(op.astype(node[kernel[1]], dtype), node.rank(kernel[0])))
    return convolution(node, x, w, kernel[0])


def integer_convolution(node: Node, data: tuple[int, int], kernel: tuple[int, int], bias: int | None = None) -> Expr:
    """The convolution of two operands, each with its zero point: of bytes, as `i32`, or of numbers that are exact."""
    made = convolution_of_bytes(node, data, kernel)
    if made is not None:
        return made
    return convolution_in(node, data, kernel, dtype_of_kernel_sums(node, data, kernel, bias))


def dtype_of_kernel_sums(
    node: Node, data: tuple[int, int], kernel: tuple[int, int], bias: int | None = None
) -> Attribute:
    """`f32` if the sums of a convolution, also with a bias, are exact in it, else `i32`."""
    return dtype_of_sums(node, data, kernel, range(1, node.rank(kernel[0])), bias)


def scalar(x: Expr) -> Expr:
    """The one element of a tensor."""
    return x if x.ndim == 0 else op.reshape(x, [])


def by_filter(x: Expr, rank: int) -> Expr:
    """A number for each filter, or one for all."""
    if x.ndim == 0 or x.shape == (constant(1),):
        return scalar(x)
    return op.expand_dims(x, range(1, rank))


def _padded(x: Expr, pads: Sequence[int], zero: int) -> Expr:
    """Data with their zero point around them."""
    if not any(pads):
        return x
    rank = len(pads) // 2
    around = [each for axis in range(rank) for each in (pads[axis], pads[axis + rank])]
    return op.nn.pad(x, [0, 0, 0, 0, *around], pad_value=zero)

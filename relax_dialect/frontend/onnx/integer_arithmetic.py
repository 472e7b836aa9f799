"""Matrix multiplications and convolutions of quantised operands: computed in integers, or in `f32` where that is exact.

`sum (a - p) * (b - q) = sum a * b - q * sum a - p * sum (b - q)`, exactly, as integers wrap around. The sums of known
weights are known too, so that zero points cost a number for each column, or nothing where they are 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.values import Array, Dequantized, Value, integer_limits
from relax_dialect.frontend.onnx.windows import convolution, kernel_sizes, padded_data
from tir_dialect import te
from tir_dialect.dims import constant

FIRST_INEXACT = 1 << 24
"""`f32` has all integers below."""


def dtype_of_sums(
    node: Node, data: tuple[int, int], weights: tuple[int, int], axes: Sequence[int], bias: int | None = None
) -> Attribute:
    """`f32` if all sums of products of data and weights over axes of the weights, and of a bias, are exact in it,
    whatever the data are; else `i32`.

    Data and weights are operands with their zero points. Of these there is one, or several for the filters of a
    convolution, which are the indices of the first axis, or for the columns of a matrix.
    """
    known, start = _elements(node, weights[0]), 0 if bias is None else _greatest(node, bias)
    zero = _elements(node, weights[1]) if node.has(weights[1]) else np.zeros((), np.int64)
    if known is None or zero is None or start is None:
        return i32
    spread = zero.reshape(-1, *[1] * (known.ndim - 1)) if len(axes) > 1 else zero
    total = np.abs(known - spread).sum(tuple(axes)).max(initial=0)
    return f32 if int(total) * _reach(node, *data) + start < FIRST_INEXACT else i32


def _elements(node: Node, index: int) -> Array | None:
    """The integers of an operand, if they are known."""
    found = node.value(index).known
    return None if found is None or found.dtype == object else found.astype(np.int64)


def _greatest(node: Node, index: int) -> int | None:
    """The greatest magnitude in an operand, 0 if it is absent; `None` if its elements are not known."""
    found = _elements(node, index) if node.has(index) else np.zeros((), np.int64)
    return None if found is None else int(np.abs(found).max(initial=0))


def _reach(node: Node, index: int, zero: int) -> int:
    """How far data may be from their zero point."""
    low, high = integer_limits(node.dtype(index))
    points = _elements(node, zero) if node.has(zero) else np.zeros((), np.int64)
    if points is None or not points.size:
        return high - low
    return max(high - int(points.min()), int(points.max()) - low)


MOST_TAPS = 1024
"""Of a depthwise convolution that is one of bytes."""

MIDDLE = 128
"""The zero point of weights without a sign that are as good as weights with one."""


def product_of_bytes(x: Expr, w: Expr, zero_x: Expr | None, zero_w: Expr | None) -> Expr:
    """The product of two matrices of bytes less their zero points, as `i32`.

    Zero points are `i32`: one number, or for `x` one for each row, as a column, and for `w` one for each column.
    """
    total = op.matmul(x, w, i32)
    if zero_w is not None:
        rows = op.sum(op.astype(x, i32), [-1], keepdims=True)
        total = op.subtract(total, op.multiply(rows, zero_w))
    if zero_x is not None:
        distance = op.astype(w, i32) if zero_w is None else op.subtract(op.astype(w, i32), zero_w)
        total = op.subtract(total, op.multiply(zero_x, op.sum(distance, [-2], keepdims=True)))
    return total


def weights_with_sign(node: Node, index: int, zero: int) -> tuple[Expr, Expr | None]:
    """The right operand of a product and its zero point as `i32`, `None` if that is 0.

    Known weights without a sign whose zero point is 128 become weights with one.
    """
    known, points = node.value(index).known, node.known(zero) if node.has(zero) else None
    if known is not None and points is not None and known.dtype == np.uint8 and bool((points == MIDDLE).all()):
        return node.const((known ^ MIDDLE).view(np.int8), i8), None
    return node[index], zero_point(node, zero)


def zero_point(node: Node, index: int) -> Expr | None:
    """A zero point as `i32`; `None` if it is absent or known to be 0."""
    points = node.known(index) if node.has(index) else np.zeros(())
    return op.astype(node[index], i32) if points is None or bool(points.any()) else None


_CONVOLUTIONS = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}


def convolution_of_bytes(node: Node, data: tuple[int, int], kernel: tuple[int, int]) -> Expr | None:
    """The convolution of data and a kernel, each operand with its zero point, as `i32`.

    `None` where it is no sum of products of bytes alone: of groups, unless each channel of an image is one, for zero
    points of the data that are not known, or of the kernel that are not 0.
    """
    rank = node.rank(data[0]) - 2
    points = node.known(data[1]) if node.has(data[1]) else np.zeros(1)
    weights, zero_w = weights_with_sign(node, *kernel)
    groups = node.integer("group", 1)
    if rank not in _CONVOLUTIONS or zero_w is not None:
        return None
    if groups != 1 and not (rank == 2 and _is_depthwise(node, data[0], kernel[0], groups)):
        return None
    if points is None or points.size != 1:
        return None
    zero = int(points.reshape(-1)[0])
    x, windows, _ = padded_data(
        node, node[data[0]], kernel_sizes(node, kernel[0]), lambda x: te.const(zero, x.dtype), data[0]
    )
    total = _CONVOLUTIONS[rank](
        _padded(x, windows.pads, zero),
        weights,
        strides=windows.strides,
        dilation=windows.dilations,
        groups=groups,
        out_dtype=i32,
    )
    if zero:
        sums = op.sum(op.astype(weights, i32), range(1, rank + 2))
        total = op.subtract(total, op.expand_dims(op.multiply(sums, node.const(zero, i32)), range(1, rank + 1)))
    return total


def _is_depthwise(node: Node, data: int, kernel: int, groups: int) -> bool:
    """Whether each channel is a group, and has one filter, whose window is not larger than kernels of bytes take."""
    channels, (filters, _, *sizes) = node.shape(data)[1], node.shape(kernel)
    taps = [size.constant_value or MOST_TAPS for size in sizes]
    return channels.constant_value == filters.constant_value == groups and math.prod(taps) <= MOST_TAPS


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


def _operands(node: Node) -> tuple[Dequantized, Dequantized, Node] | None:
    """Both factors, and the node with their integers, scales and zero points, in the order of quantised operators."""
    if not node.has(1):
        return None
    x, w = node.value(0), node.value(1)
    if not isinstance(x, Dequantized) or not isinstance(w, Dequantized) or _count(x.operands[1]) != 1:
        return None
    return x, w, replace(node, inputs=(*x.operands, *w.operands))


def _count(parameter: Value | None) -> int | None:
    """How many elements a scale has; `None` if that depends on the call."""
    dims = () if parameter is None else parameter.shape
    return 1 if not dims else dims[0].constant_value


def dequantized_convolution(node: Node) -> Expr | None:
    """The convolution of a node without its bias; `None` if it is none of integers that are summed exactly.

    Those of groups are summed as numbers, where these are exact.
    """
    found = _operands(node)
    if found is None:
        return None
    _, w, of_bytes = found
    several = _count(w.operands[1]) != 1
    if several and w.axis != 0:
        return None
    made = convolution_of_bytes(of_bytes, (0, 2), (3, 5))
    if made is None and node.integer("group", 1) > 1 and dtype_of_kernel_sums(of_bytes, (0, 2), (3, 5)) == f32:
        made = convolution_in(of_bytes, (0, 2), (3, 5), f32)
    if made is None:
        return None
    scale = op.expand_dims(of_bytes[4], range(1, node.rank(0) - 1)) if several else scalar(of_bytes[4])
    return op.multiply(op.astype(made, f32), op.multiply(scale, scalar(of_bytes[1])))


def dequantized_product(node: Node, transposed: bool = False) -> Expr | None:
    """The product of two matrices, the second transposed if told; `None` if it is none of bytes."""
    found = _operands(node)
    if found is None or min(node.rank(0), node.rank(1)) < 2:
        return None
    _, w, of_bytes = found
    several = _count(w.operands[1]) != 1
    if several and (node.rank(1) != 2 or w.axis != (0 if transposed else 1)):
        return None
    weights, zero_w = weights_with_sign(of_bytes, 3, 5)
    if transposed:
        weights = op.permute_dims(weights, [1, 0])
    made = product_of_bytes(of_bytes[0], weights, _number(zero_point(of_bytes, 2)), zero_w)
    scale = of_bytes[4] if several else scalar(of_bytes[4])
    return op.multiply(op.astype(made, f32), op.multiply(scale, scalar(of_bytes[1])))


def _number(x: Expr | None) -> Expr | None:
    return None if x is None else scalar(x)

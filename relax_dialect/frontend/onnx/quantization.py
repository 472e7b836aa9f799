"""Conversions between dtypes; quantised tensors, and their matrix multiplications and convolutions, computed in
integers, or in `f32` where that is exact.

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
from relax_dialect.frontend.onnx.node import Node, Result, converts
from relax_dialect.frontend.onnx.values import Array, Dequantized, Refusal, Value, integer_limits
from relax_dialect.frontend.onnx.windows import convolution, kernel_sizes, padded_data
from relax_dialect.ops.datatype import DequantizeBlocksOp
from tir_dialect import te
from tir_dialect.block_arrays import encode_integers
from tir_dialect.dims import constant
from tir_dialect.dtypes import finite_range, is_bool, is_float, is_narrow, is_small_float, parse_dtype

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


@converts("Cast")
def cast(node: Node) -> Result:
    """Every element converted."""
    dtype = node.element_type("to")
    if dtype is None:
        raise Refusal("the element type to convert to is missing")
    return converted(node[0], dtype, *_small_float_options(node))


@converts("CastLike")
def cast_like(node: Node) -> Result:
    """Every element converted to the dtype of another tensor."""
    return converted(node[0], node.dtype(1), *_small_float_options(node))


def _small_float_options(node: Node) -> tuple[bool, str]:
    """Whether small floats saturate, and how those without mantissa are rounded."""
    return bool(node.integer("saturate", 1)), node.text("round_mode", "up")


def converted(x: Expr, dtype: Attribute, saturate: bool = True, round_mode: str = "up") -> Expr:
    """A tensor of a dtype; truth is what is not zero, and integers below 8 bits are the lowest bits."""
    if x.dtype == dtype or x.dtype is None:
        return op.astype(x, dtype) if x.dtype is None else x
    if is_bool(dtype):
        return op.not_equal(x, 0 if not is_float(x.dtype) else 0.0)
    if is_small_float(dtype):
        return small_float(x, dtype, saturate, round_mode)
    if is_narrow(dtype) and is_float(x.dtype):
        return op.astype(op.astype(x, i32), dtype)
    return op.astype(x, dtype)


def small_float(x: Expr, dtype: Attribute, saturate: bool, round_mode: str = "up") -> Expr:
    """Numbers as small floats; what is too large becomes the greatest number if they saturate, or what the dtype has
    for it. Powers of two are rounded as the mode says.
    """
    wide = op.astype(x, f32)
    _, greatest = finite_range(dtype)
    if saturate:
        least = -greatest if str(dtype) != "f8E8M0FNU" else 2.0**-127
        wide = op.minimum(op.maximum(wide, least), greatest)
    rounded = op.astype(wide, dtype)
    if str(dtype) != "f8E8M0FNU" or round_mode == "nearest":
        return rounded
    found = op.astype(rounded, f32)
    beyond, factor = (op.less(found, wide), 2.0) if round_mode == "up" else (op.greater(found, wide), 0.5)
    return op.astype(op.where(beyond, op.multiply(found, factor), found), dtype)


@converts("QuantizeLinear")
def quantize_linear(node: Node) -> Result:
    """`clip(round(x / scale) + zero_point)`, by tensor, axis or block."""
    dtype = node.element_type("output_dtype") or (node.dtype(2) if node.has(2) else parse_dtype("ui8"))
    kind = f32 if not is_float(node.dtype()) else node.dtype()
    x, scale = as_dtype(node[0], kind), as_dtype(node[1], kind)
    scaled = op.divide(x, _spread(node, scale))
    if is_float(dtype):
        if not is_small_float(dtype):
            raise Refusal(f"quantised numbers of {dtype} are not supported; the dtype has to have 8 bits or less")
        return small_float(scaled, dtype, bool(node.integer("saturate", 1)))
    zero_point = node.optional(2)
    return requantized(node, scaled, None if zero_point is None else _spread(node, zero_point), dtype)


@converts("DequantizeLinear")
def dequantize_linear(node: Node) -> Result:
    """`(x - zero_point) * scale`, by tensor, axis or block."""
    scale = node.shape(1)
    dtype = node.element_type("output_dtype") or node.dtype(1)
    known = _known_blocks(node, dtype)
    if known is not None:
        return known
    if dtype != f32 or not is_byte(node.dtype()) or node.integer("block_size") or len(scale) > 1:
        return _numbers(node, dtype)
    several = scale not in ((), (constant(1),))
    return Dequantized(node.inputs, node.axis(default=1) if several else 0, lambda: _numbers(node, dtype))


def _numbers(node: Node, dtype: Attribute) -> Expr:
    exact = f32 if is_float(node.dtype()) else i32
    x = op.astype(node[0], exact)
    if node.has(2):
        x = op.subtract(x, _spread(node, op.astype(node[2], exact)))
    return as_dtype(op.multiply(op.astype(x, f32), _spread(node, as_dtype(node[1], f32))), dtype)


_BITS = {"ui4": (4, 0), "i4": (4, 8), "ui8": (8, 0), "i8": (8, 128)}
"""How many bits integers have, and what makes them greater than or equal to 0."""


def _known_blocks(node: Node, dtype: Attribute) -> Expr | None:
    """A matrix whose elements are known, in blocks that a format has, as packed weights."""
    size, x, scale = node.integer("block_size"), node.stored(0), node.stored(1)
    bits, offset = _BITS.get(str(node.dtype()), (0, 0))
    if dtype != f32 or not bits or not size or size % 32 or x is None or scale is None or x.ndim != 2:
        return None
    zero = node.stored(2) if node.has(2) else np.zeros(scale.shape, np.float32)
    axis = node.axis(default=1)
    if zero is None or zero.shape != scale.shape or scale.ndim != 2 or x.shape[axis] != scale.shape[axis] * size:
        return None
    if x.shape[1 - axis] != scale.shape[1 - axis]:
        return None
    integers, origins = x.astype(np.int32) + offset, zero.astype(np.float32) + np.float32(offset)
    if axis:
        return packed_weights(node, integers, scale, origins, bits, size)
    return op.permute_dims(packed_weights(node, integers.T, scale.T, origins.T, bits, size), [1, 0])


def packed_weights(node: Node, integers: Array, scale: Array, zero: Array, bits: int, size: int) -> Expr:
    """Rows of `(integers - zero) * scale`, blocks of `size` having one scale and zero, as packed weights."""
    scales, zeros = (np.repeat(each, size // 32, axis=-1) for each in (scale, zero))
    blocks = encode_integers(integers, scales, zeros, bits)
    constant_ = node.bb.const(np.ascontiguousarray(blocks.packed))
    return node.bb.emit(DequantizeBlocksOp(constant_.value, blocks.block_format.name))


def is_byte(dtype: Attribute) -> bool:
    """Whether integers have 8 bits."""
    return dtype in (parse_dtype("i8"), parse_dtype("ui8"))


def as_dtype(x: Expr, dtype: Attribute) -> Expr:
    """`x` in a dtype."""
    return x if x.dtype == dtype else op.astype(x, dtype)


def dequantized(node: Node, index: int) -> Expr:
    """The numbers that a quantised operand stands for, its scale and zero point following; each of them is one."""
    x = op.astype(node[index], i32)
    if node.has(index + 2):
        x = op.subtract(x, op.astype(scalar(node[index + 2]), i32))
    return op.multiply(op.astype(x, f32), as_dtype(scalar(node[index + 1]), f32))


def quantized_like(node: Node, x: Expr, scale: int, dtype: Attribute) -> Expr:
    """Numbers by the scale of an operand and the zero point that follows it, which is 0 of a dtype if it is absent."""
    scaled = op.divide(x, as_dtype(scalar(node[scale]), f32))
    if not node.has(scale + 1):
        return requantized(node, scaled, None, dtype)
    return requantized(node, scaled, scalar(node[scale + 1]))


def _spread(node: Node, parameter: Expr) -> Expr:
    """A scale or zero point in a shape that goes with the data: by tensor, along an axis, or by blocks of it."""
    rank, dims = node.rank(), parameter.shape or ()
    if not dims or (len(dims) == 1 and dims[0] is constant(1)):
        return parameter if not dims else op.reshape(parameter, [])
    axis = node.axis(default=1)
    size = node.integer("block_size")
    if len(dims) == 1 and not size:
        return op.expand_dims(parameter, [at for at in range(rank) if at != axis])
    if not size:
        raise Refusal("scales of several dimensions need a block_size")
    repeated = op.repeat(parameter, size, axis)
    length = node.shape()[axis]
    return repeated if repeated.shape == node.shape() else op.strided_slice(repeated, [axis], [0], [length])


@converts("MatMulInteger")
def matmul_integer(node: Node) -> Result:
    """The product of integers less their zero points, as `i32`."""
    return integer_product(node, (0, 2), (1, 3))


def integer_product(node: Node, a: tuple[int, int], b: tuple[int, int]) -> Expr:
    """The product of two matrices of integers, each with its zero point, as `i32`."""
    if min(node.rank(a[0]), node.rank(b[0])) < 2:
        left, right = (shifted(node, x, node.optional(zero)) for x, zero in (a, b))
        return op.matmul(left, right)
    weights, zero_w = weights_with_sign(node, *b)
    zero_x = zero_point(node, a[1])
    if zero_x is not None and zero_x.ndim == 1 and zero_x.shape != (constant(1),):
        zero_x = op.expand_dims(zero_x, [1])
    return product_of_bytes(node[a[0]], weights, zero_x, zero_w)


def shifted(node: Node, index: int, zero_point: Expr | None, dtype: Attribute = i32) -> Expr:
    """A matrix less its zero point, of which there may be one for each row of the first, or column of the second."""
    x = op.astype(node[index], dtype)
    if zero_point is None:
        return x
    zero = op.astype(zero_point, dtype)
    if index == 0 and zero.ndim == 1 and zero.shape != (constant(1),) and node.rank(index) > 1:
        zero = op.expand_dims(zero, [1])
    return op.subtract(x, zero)


@converts("ConvInteger")
def conv_integer(node: Node) -> Result:
    """The convolution of integers less their zero points, as `i32`."""
    return as_dtype(integer_convolution(node, (0, 2), (1, 3)), i32)


@converts("QLinearMatMul")
def qlinear_matmul(node: Node) -> Result:
    """The product of quantised matrices, quantised."""
    made = as_dtype(integer_product(node, (0, 2), (3, 5)), f32)
    scale = op.multiply(_columned(as_dtype(node[1], f32), node.rank()), as_dtype(node[4], f32))
    product = op.multiply(made, op.divide(scale, as_dtype(node[6], f32)))
    return requantized(node, product, node[7])


def _columned(scale: Expr, rank: int) -> Expr:
    """A scale for each row stands in a column."""
    several = scale.ndim == 1 and scale.shape != (constant(1),) and rank > 1
    return op.expand_dims(scale, [1]) if several else scale


@converts("QLinearConv")
def qlinear_conv(node: Node) -> Result:
    """The convolution of quantised data, quantised."""
    made, rank = integer_convolution(node, (0, 2), (3, 5), 8), node.rank()
    if node.has(8):
        bias = as_dtype(node[8], made.dtype or i32)
        made = op.add(made, op.expand_dims(bias, range(1, rank - 1)))
    factor = op.divide(op.multiply(scalar(node[1]), node[4]), scalar(node[6]))
    spread = factor if factor.ndim == 0 else by_filter(factor, rank - 1)
    return requantized(node, op.multiply(as_dtype(made, f32), spread), node[7])


def requantized(node: Node, x: Expr, zero_point: Expr | None, dtype: Attribute | None = None) -> Expr:
    """Scaled numbers as integers of a dtype, by default that of the zero point: rounded, the zero point
    added if there is one, and clipped to the limits of the dtype.
    """
    if dtype is None:
        dtype = (None if zero_point is None else zero_point.dtype) or parse_dtype("ui8")
    wide, limits = f32 if str(x.dtype) == "f16" else x.dtype or f32, integer_limits(dtype)
    shifted = op.round(as_dtype(x, wide))
    if zero_point is not None:
        shifted = op.add(shifted, as_dtype(zero_point, wide))
    low, high = node.const(limits[0], wide), node.const(limits[1], wide)
    return op.astype(op.minimum(op.maximum(shifted, low), high), dtype)

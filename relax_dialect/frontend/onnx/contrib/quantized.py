"""Quantised operators and recurrent layers of ONNX Runtime: integers, byte weights in blocks, and quantised tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.contrib.attention import dims_of, self_attention
from relax_dialect.frontend.onnx.contrib.fused import channels_first, channels_last
from relax_dialect.frontend.onnx.layers import lengths_of, or_zeros, properties_of, recurrent, with_batch_of_states
from relax_dialect.frontend.onnx.model import MICROSOFT
from relax_dialect.frontend.onnx.node import Node, Result, converts, fixed, from_front
from relax_dialect.frontend.onnx.quantization import (
    as_dtype,
    dequantized,
    integer_product,
    packed_weights,
    product_of_bytes,
    qlinear_conv,
    quantized_like,
    requantized,
    scalar,
    shifted,
    weights_with_sign,
)
from relax_dialect.frontend.onnx.values import Array, Refusal, Value
from relax_dialect.frontend.onnx.windows import average_pool
from relax_dialect.ops.recurrent import DIRECTIONS
from tir_dialect.dims import Dim
from tir_dialect.dtypes import is_float, parse_dtype

HIGHEST = 255.0
"""The greatest integer of data that are quantised while the program runs."""


@converts("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(node: Node) -> Result:
    """The product of quantised matrices, and a bias."""
    product = as_dtype(integer_product(node, (0, 4), (1, 5)), f32)
    return _plus(node, op.multiply(product, op.multiply(_one(node[2]), _one(node[3]))), 6)


@converts("MatMulInteger16", domain=MICROSOFT)
def matmul_integer16(node: Node) -> Result:
    """The product of matrices of 16-bit integers, as `i32`."""
    return op.matmul(op.astype(node[0], i32), op.astype(node[1], i32))


@converts("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(node: Node) -> Result:
    """The product with a quantised matrix of data that are quantised by their greatest and least element."""
    data, scale, zero = dynamically_quantized(node, node[0])
    weights, zero_w = weights_with_sign(node, 1, 3)
    product = product_of_bytes(data, weights, op.astype(zero, i32), zero_w)
    return _plus(node, op.multiply(op.astype(product, f32), op.multiply(scale, _one(node[2]))), 4)


def dynamically_quantized(node: Node, x: Expr, extremes: Expr | None = None) -> tuple[Expr, Expr, Expr]:
    """Data as integers from 0 to 255 with their scale and zero point, as `DynamicQuantizeLinear` does it.

    `extremes` have the same least and greatest element, if these are not those of the data, which may be empty.
    """
    zero, highest = node.const(0, f32), node.const(HIGHEST, f32)
    among = x if extremes is None else extremes
    low, high = op.minimum(op.min(among), zero), op.maximum(op.max(among), zero)
    spread = op.divide(op.subtract(high, low), highest)
    scale = op.where(op.equal(spread, zero), node.const(1, f32), spread)
    position = op.round(op.minimum(op.maximum(op.divide(op.negative(low), scale), zero), highest))
    point = op.astype(position, parse_dtype("ui8"))
    return requantized(node, op.divide(x, scale), point), scale, point


@converts("QGemm", domain=MICROSOFT)
def qgemm(node: Node) -> Result:
    """`alpha * a @ b + c` of quantised matrices, as numbers, or quantised if there is a scale for that."""
    a, b = _transposed(node, shifted(node, 0, node.optional(2)), "transA"), shifted(node, 3, None)
    if node.has(5):
        # A number for each column of a product; the matrix may have it as a row.
        by_row = bool(node.integer("transB"))
        one = _one(op.astype(node[5], i32))
        b = op.subtract(b, op.expand_dims(one, [1]) if by_row and one.ndim == 1 else one)
    product = op.matmul(a, _transposed(node, b, "transB"))
    total = op.add(product, node[6]) if node.has(6) else product
    alpha = node.const(node.number("alpha", 1.0), f32)
    made = op.multiply(op.astype(total, f32), op.multiply(op.multiply(scalar(node[1]), _one(node[4])), alpha))
    return quantized_like(node, made, 7, node.dtype()) if node.has(7) else made


def _transposed(node: Node, x: Expr, flag: str) -> Expr:
    return op.permute_dims(x, [1, 0]) if node.integer(flag) else x


@converts("MulInteger", domain=MICROSOFT)
def mul_integer(node: Node) -> Result:
    """The product of elements."""
    return op.multiply(_less_zero(node, 0), _less_zero(node, 2))


@converts("QAttention", domain=MICROSOFT)
def quantized_attention(node: Node) -> Result:
    """Attention whose projection is a product of quantised matrices."""
    product = as_dtype(integer_product(node, (0, 6), (1, 7)), f32)
    projected = op.add(op.multiply(product, op.multiply(_one(node[3]), _one(node[4]))), node[2])
    return self_attention(node, projected, mask=5, past=8, bias=9)


def _less_zero(node: Node, index: int) -> Expr:
    x = op.astype(node[index], i32)
    return op.subtract(x, op.astype(scalar(node[index + 1]), i32)) if node.has(index + 1) else x


def _one(x: Expr) -> Expr:
    """One number as such; several, by column, as they are."""
    return scalar(x) if x.shape and x.shape[0] is not None and x.shape[0].constant_value == 1 else x


def _plus(node: Node, x: Expr, bias: int) -> Expr:
    return op.add(x, node[bias]) if node.has(bias) else x


FP4 = (0.0, 0.005208333, 0.6666667, 1.0, 0.3333333, 0.5, 0.16666667, 0.25)
"""Numbers of a sign and three bits; those with the sign are the same, negative."""

NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
    *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
    *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
"""Quantiles of the normal distribution."""


@converts("MatMulNBits", domain=MICROSOFT)
def matmul_nbits(node: Node) -> Result:
    """The product with a matrix whose rows, one for each column of the result, are integers in blocks."""
    if node.integer("weight_prepacked"):
        raise Refusal("weights packed for one machine are not supported")
    bits, size, k, n = (node.integer(name) for name in ("bits", "block_size", "K", "N"))
    bits = bits or 4
    blocks = -(-k // size)
    dtype = node.dtype()
    known = None if node.has(4) else _known_blocks(node, bits, (n, blocks, size), k)
    if known is not None:
        product = op.matmul(node[0], op.permute_dims(known, [1, 0]))
        return op.add(product, node[5]) if node.has(5) else product
    integers = op.astype(op.reshape(unpacked(node, node[1], bits), (n, blocks, size)), dtype)
    zero, scale = _zero_points(node, (n, blocks), bits, dtype), op.astype(op.reshape(node[2], (n, blocks, 1)), dtype)
    if node.has(4):  # the block of each element
        integers = op.reshape(integers, (n, blocks * size, 1))
        zero, scale = (op.take(each, node[4], 1) if each.ndim else each for each in (zero, scale))
    scaled = op.multiply(op.subtract(integers, zero), scale)
    rows = op.strided_slice(op.reshape(scaled, (n, blocks * size)), [1], [0], [k])
    product = op.matmul(node[0], op.permute_dims(rows, [1, 0]))
    return op.add(product, node[5]) if node.has(5) else product


def _known_blocks(node: Node, bits: int, shape: tuple[int, int, int], k: int) -> Expr | None:
    """The matrix that is multiplied, packed, if all of it is known, and a format has such blocks."""
    (n, blocks, size), weights, scale = shape, node.stored(1), node.stored(2)
    if bits not in (4, 8) or size % 32 or blocks * size != k or node.dtype() != f32 or weights is None or scale is None:
        return None
    zero = _known_zero_points(node, (n, blocks), bits)
    if zero is None or weights.size != n * blocks * size * bits // 8 or scale.size != n * blocks:
        return None
    bytes_ = weights.reshape(n, -1).astype(np.uint8)
    integers = bytes_ if bits == 8 else np.stack([bytes_ & 15, bytes_ >> 4], axis=-1).reshape(n, -1)
    return packed_weights(node, integers, scale.reshape(n, blocks), zero, bits, size)


def _known_zero_points(node: Node, shape: tuple[int, int], bits: int) -> Array | None:
    """What `_zero_points` gives, if it is known."""
    n, blocks = shape
    if not node.has(3):
        return np.full(shape, 1 << (bits - 1), np.float32)
    known = node.stored(3)
    if known is None or is_float(node.dtype(3)) or bits == 8:
        return None if known is None or known.size != n * blocks else known.reshape(shape).astype(np.float32)
    bytes_ = known.astype(np.uint8).reshape(-1)
    if bytes_.size != n * -(-blocks // 2):
        return None
    return np.stack([bytes_ & 15, bytes_ >> 4], axis=-1).reshape(n, -1)[:, :blocks].astype(np.float32)


def _zero_points(node: Node, shape: tuple[int, int], bits: int, dtype: Attribute) -> Expr:
    """The zero point of each block, packed like weights by row, or as it is; half of the range if there is none."""
    n, blocks = shape
    if not node.has(3):
        return node.const(1 << (bits - 1), dtype)
    if is_float(node.dtype(3)):
        return op.astype(op.reshape(node[3], (n, blocks, 1)), dtype)
    packed = op.reshape(node[3], (n, -(-blocks * bits // 8)))
    points = op.strided_slice(unpacked(node, packed, bits), [1], [0], [blocks])
    return op.astype(op.reshape(points, (n, blocks, 1)), dtype)


def unpacked(node: Node, x: Expr, bits: int) -> Expr:
    """Integers of 2, 4 or 8 bits in bytes along the last dimension, the lowest bits first, each in a byte."""
    if bits == 8:
        return x
    if bits not in (2, 4):
        raise Refusal(f"weights of {bits} bits are not supported")
    byte = parse_dtype("ui8")
    whole = op.astype(x, byte)
    parts = [
        op.bitwise_and(op.right_shift(whole, node.const(at, byte)) if at else whole, node.const((1 << bits) - 1, byte))
        for at in range(0, 8, bits)
    ]
    *rest, last = dims_of(x, x.ndim or 0)
    return op.reshape(op.stack(parts, len(rest) + 1), (*rest, last * (8 // bits)))


@converts("MatMulBnb4", domain=MICROSOFT)
def matmul_bnb4(node: Node) -> Result:
    """The product with a matrix whose elements are positions in a table, in blocks with a greatest magnitude."""
    k, n, size = (node.integer(name) for name in ("K", "N", "block_size"))
    table = NF4 if node.integer("quant_type") == 1 else (*FP4, *(-each for each in FP4))
    bytes_ = op.flatten(node[1])
    high = op.right_shift(bytes_, node.const(4, parse_dtype("ui8")))
    low = op.bitwise_and(bytes_, node.const(15, parse_dtype("ui8")))
    positions = op.flatten(op.stack([high, low], 1))
    numbers = op.take(node.const(table, node.dtype()), op.astype(positions, i32), 0)
    numbers, scales = (op.strided_slice(each, [0], [0], [n * k]) for each in (numbers, op.repeat(node[2], size, 0)))
    weights = op.reshape(op.multiply(numbers, scales), (n, k))
    return op.matmul(node[0], op.permute_dims(weights, [1, 0]) if node.integer("transB", 1) else weights)


@converts("GatherBlockQuantized", domain=MICROSOFT)
def gather_block_quantized(node: Node) -> Result:
    """Slices of a tensor whose elements are integers in blocks along an axis."""
    rank, bits = node.rank(), node.integer("bits", 4)
    gathered, blocked = (
        from_front(node.integer(name, default), rank) for name, default in (("gather_axis", 0), ("quantize_axis", 1))
    )
    if blocked != rank - 1 or gathered == blocked or str(node.dtype()) != "ui8":
        raise Refusal("blocks along another axis than the last one are not supported")
    size, kind = node.integer("block_size", 128), node.dtype(2)
    data = unpacked(node, op.take(node[0], node[1], gathered), bits)
    scale = op.take(node[2], node[1], gathered)
    *rest, length = dims_of(data, data.ndim or 0)
    blocks = fixed(dims_of(scale, scale.ndim or 0)[-1:], "the number of blocks")[0]
    if node.has(3):
        zero = unpacked(node, op.take(node[3], node[1], gathered), bits)
        zero = op.strided_slice(zero, [len(rest)], [0], [blocks])
    else:
        zero = op.full_like(op.astype(scale, parse_dtype("ui8")), 1 << (bits - 1))
    spread = [_by_element(op.astype(each, f32), size, len(rest), length) for each in (zero, scale)]
    return op.astype(op.multiply(op.subtract(op.astype(data, f32), spread[0]), spread[1]), kind)


def _by_element(x: Expr, size: int, axis: int, length: Dim) -> Expr:
    """A value of each block, repeated for each of its elements."""
    whole = op.repeat(x, size, axis)
    shape = whole.shape or ()
    return whole if shape[axis] is length else op.strided_slice(whole, [axis], [0], [length])


_BINARY: dict[str, Callable[[Expr, Expr], Expr]] = {"QLinearAdd": op.add, "QLinearMul": op.multiply}


@converts(*_BINARY, domain=MICROSOFT)
def binary(node: Node) -> Result:
    """The sum or product."""
    made = _BINARY[node.op_type](dequantized(node, 0), dequantized(node, 3))
    return quantized_like(node, made, 6, node.dtype())


@converts("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", domain=MICROSOFT)
def unary(node: Node) -> Result:
    """An activation."""
    x = dequantized(node, 0)
    if node.op_type == "QLinearSigmoid":
        made = op.sigmoid(x)
    elif node.op_type == "QLinearLeakyRelu":
        made = op.nn.leakyrelu(x, node.number("alpha", 0.01))
    else:
        made = _softmax(node, x)
    return quantized_like(node, made, 3, node.dtype())


def _softmax(node: Node, x: Expr) -> Expr:
    """Along one axis, or over all from one on, as the version of the operator says that was quantised."""
    import math

    shape, is_flat = node.shape(), node.integer("opset", 13) < 13
    axis = node.axis(default=-1)
    if not is_flat or axis == len(shape) - 1:
        return op.nn.softmax(x, axis)
    flat = op.reshape(x, [math.prod(shape[:axis]), math.prod(shape[axis:])])
    return op.reshape(op.nn.softmax(flat, 1), shape)


@converts("QLinearWhere", domain=MICROSOFT)
def where(node: Node) -> Result:
    """Elements of two tensors by a condition."""
    return quantized_like(node, op.where(node[0], dequantized(node, 1), dequantized(node, 4)), 7, node.dtype(1))


@converts("QLinearConcat", domain=MICROSOFT)
def concat(node: Node) -> Result:
    """Tensors side by side; the scale and the zero point of the result come first."""
    parts = [dequantized(node, index) for index in range(2, len(node.inputs), 3)]
    return quantized_like(node, op.concat(parts, node.axis(rank=node.rank(2))), 0, node.dtype(2))


@converts("QLinearReduceMean", domain=MICROSOFT)
def reduce_mean(node: Node) -> Result:
    """The mean over axes."""
    axes = node.integers("axes")
    made = op.mean(
        dequantized(node, 0), None if axes is None else list(axes), keepdims=bool(node.integer("keepdims", 1))
    )
    return quantized_like(node, made, 3, node.dtype())


@converts("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MICROSOFT)
def pool(node: Node) -> Result:
    """The mean of each window, or of each channel."""
    ordered = channels_first(node, 0) if node.integer("channels_last") else node
    numbers = dequantized(ordered, 0)
    if node.op_type == "QLinearAveragePool":
        made = average_pool(replace(ordered, inputs=[Value(numbers)]))
        assert isinstance(made, Expr)
    else:
        made = op.mean(numbers, list(range(2, node.rank())), keepdims=True)
    return quantized_like(node, channels_last(made) if node.integer("channels_last") else made, 3, node.dtype())


@converts("QLinearConv", domain=MICROSOFT)
def convolution(node: Node) -> Result:
    """The convolution of the standard, perhaps on channels that come last."""
    if not node.integer("channels_last"):
        return qlinear_conv(node)
    made = qlinear_conv(channels_first(node, 0))
    assert isinstance(made, Expr)
    return channels_last(made)


OPERANDS = 8
"""Those that the operator of the standard has; scales and zero points of the weights follow."""


@converts("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(node: Node) -> Result:
    """The layer on data and states that are quantised as it goes, so that products are of bytes.

    Weights that the model does not store become the numbers for which they stand, and nothing is quantised.
    """
    if node.stored(1) is not None and node.stored(2) is not None:
        return _layer_of_bytes(node)
    inputs = list(node.inputs[:OPERANDS])
    for index, scale in ((1, 8), (2, 10)):
        # Weights by direction, input and unit; their scale is by direction, or by direction and unit.
        by_unit = node.rank(scale) == 2
        spread = [1] if by_unit else [1, 2]
        zero = op.expand_dims(op.astype(node[scale + 1], i32), spread)
        integers = op.subtract(op.astype(node[index], i32), zero)
        inputs[index] = Value(
            op.permute_dims(op.multiply(op.astype(integers, f32), op.expand_dims(node[scale], spread)), [0, 2, 1])
        )
    return recurrent(replace(node, op_type="LSTM", inputs=inputs))


def _layer_of_bytes(node: Node) -> Result:
    """For each direction a product with the data of all steps, then a recurrence."""
    node = with_batch_of_states(node, batch_first=False)
    directions, units, width = node.shape(2)
    length, batch, features = node.shape()
    rows = op.reshape(node[0], (length * batch, features))
    # One row of zeros, so that there is a least element if there are no data.
    flat, step, point = dynamically_quantized(node, rows, op.nn.pad(rows, [0, 1, 0, 0]))
    zero = op.astype(point, i32)
    bias = or_zeros(node, 3, (directions, 2 * width))
    states = [or_zeros(node, index, (directions, batch, units)) for index in (5, 6)]
    states.append(or_zeros(node, 7, (directions, 3 * units)))
    weights, rest = _Bytes.of(node, 1, 8), _Bytes.of(node, 2, 10)
    found: list[tuple[Expr, ...]] = []
    for d, properties in enumerate(_by_direction(properties_of(node, "lstm"))):
        w, r, b = weights.at(d), rest.at(d), _at(bias, d)
        product = product_of_bytes(flat, op.reshape(w.integers, (features, width)), zero, w.zero)
        gates = op.multiply(op.astype(product, f32), op.multiply(step, w.scale))
        gates = op.add(gates, op.strided_slice(b, [1], [0], [width]))
        found.append(
            op.nn.quantized_recurrence(
                op.reshape(gates, (length, batch, width)),
                r.integers,
                r.scale,
                op.full_like(r.sums, 0) if r.zero is None else r.zero,
                r.sums,
                op.strided_slice(b, [1], [width], [2 * width]),
                lengths_of(node, batch, batch_first=False),
                [_at(state, d) for state in states],
                "lstm",
                **properties,
            )
        )
    if len(found) == 1:
        return found[0]
    return tuple(op.concat(list(each), axis) for each, axis in zip(zip(*found, strict=True), (1, 0, 0), strict=True))


def _by_direction(properties: dict[str, Any]) -> list[dict[str, Any]]:
    """The properties of a layer for each of its directions."""
    direction = properties["direction"]
    names = [direction] if DIRECTIONS[direction] == 1 else ["forward", "reverse"]
    found: list[dict[str, Any]] = []
    for d, name in enumerate(names):
        own = {**properties, "direction": name}
        if "activations" in own:
            functions = own["activations"].split()
            some = slice(d * len(functions) // len(names), (d + 1) * len(functions) // len(names))
            own["activations"] = " ".join(functions[some])
            own |= {key: own[key][some] for key in ("alphas", "betas") if key in own}
        found.append(own)
    return found


def _at(x: Expr, direction: int) -> Expr:
    """What belongs to a direction."""
    return op.strided_slice(x, [0], [direction], [direction + 1])


@dataclass(frozen=True)
class _Bytes:
    """Weights by direction, input, and gate times unit; by direction and gate times unit scales and zero points, `None`
    if these are 0, and sums of the weights less these.
    """

    integers: Expr
    scale: Expr
    zero: Expr | None
    sums: Expr

    @classmethod
    def of(cls, node: Node, index: int, scale: int) -> _Bytes:
        """An operand with its scale, which its zero point follows; of each there may be one for a direction."""
        integers, zero = weights_with_sign(node, index, scale + 1)
        directions, _, width = node.shape(index)

        def spread(x: Expr) -> Expr:
            column = op.expand_dims(x, [1]) if x.ndim == 1 else x
            return op.broadcast_to(column, (directions, width))

        zero = None if zero is None else spread(zero)
        sums = op.astype(integers, i32)
        sums = sums if zero is None else op.subtract(sums, op.expand_dims(zero, [1]))
        return cls(integers, spread(node[scale]), zero, op.sum(sums, [1]))

    def at(self, direction: int) -> _Bytes:
        """Those of a direction."""
        zero = None if self.zero is None else _at(self.zero, direction)
        return _Bytes(_at(self.integers, direction), _at(self.scale, direction), zero, _at(self.sums, direction))

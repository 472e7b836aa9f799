"""Weights of a few bits in blocks, each with a scale."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.contrib.scores import dims_of
from relax_dialect.frontend.onnx.domains import MICROSOFT
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node, fixed, from_front
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect.dims import Dim
from tir_dialect.dtypes import is_float, parse_dtype

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
    if node.has(4) or node.integer("weight_prepacked"):
        raise Refusal("permuted groups, and weights packed for one machine, are not supported")
    bits, size, k, n = (node.integer(name) for name in ("bits", "block_size", "K", "N"))
    bits = bits or 4
    blocks = -(-k // size)
    dtype = node.dtype()
    integers = op.reshape(unpacked(node, node[1], bits), (n, blocks, size))
    weights = op.subtract(op.astype(integers, dtype), _zero_points(node, (n, blocks), bits, dtype))
    scaled = op.multiply(weights, op.astype(op.reshape(node[2], (n, blocks, 1)), dtype))
    rows = op.strided_slice(op.reshape(scaled, (n, blocks * size)), [1], [0], [k])
    product = op.matmul(node[0], op.permute_dims(rows, [1, 0]))
    return op.add(product, node[5]) if node.has(5) else product


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
    """The product with a matrix whose elements are places in a table, in blocks with a greatest magnitude."""
    k, n, size = (node.integer(name) for name in ("K", "N", "block_size"))
    table = NF4 if node.integer("quant_type") == 1 else (*FP4, *(-each for each in FP4))
    bytes_ = op.flatten(node[1])
    high = op.right_shift(bytes_, node.const(4, parse_dtype("ui8")))
    low = op.bitwise_and(bytes_, node.const(15, parse_dtype("ui8")))
    places = op.flatten(op.stack([high, low], 1))
    numbers = op.take(node.const(table, node.dtype()), op.astype(places, i32), 0)
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
    """What is said of blocks, for each element of them."""
    whole = op.repeat(x, size, axis)
    shape = whole.shape or ()
    return whole if shape[axis] is length else op.strided_slice(whole, [axis], [0], [length])

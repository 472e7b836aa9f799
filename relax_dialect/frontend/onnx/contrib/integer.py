"""Products of integers less their zero points, scaled."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, i32

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.byte_products import product_of_bytes, weights_with_sign
from relax_dialect.frontend.onnx.contrib.attention import self_attention
from relax_dialect.frontend.onnx.domains import MICROSOFT
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.quantization import (
    as_dtype,
    integer_product,
    quantized_like,
    requantized,
    scalar,
    shifted,
)
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect.dtypes import parse_dtype

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


def dynamically_quantized(node: Node, x: Expr) -> tuple[Expr, Expr, Expr]:
    """Data as integers from 0 to 255 with their scale and zero point, as `DynamicQuantizeLinear` does it."""
    zero, highest = node.const(0, f32), node.const(HIGHEST, f32)
    low, high = op.minimum(op.min(x), zero), op.maximum(op.max(x), zero)
    spread = op.divide(op.subtract(high, low), highest)
    scale = op.where(op.equal(spread, zero), node.const(1, f32), spread)
    place = op.round(op.minimum(op.maximum(op.divide(op.negative(low), scale), zero), highest))
    point = op.astype(place, parse_dtype("ui8"))
    return requantized(node, op.divide(x, scale), point), scale, point


@converts("QGemm", domain=MICROSOFT)
def qgemm(node: Node) -> Result:
    """`alpha * a @ b + c` of quantised matrices, as numbers, or quantised if there is a scale for that."""
    a, b = _transposed(node, shifted(node, 0, node.optional(2)), "transA"), shifted(node, 3, None)
    if node.has(5):
        b = op.subtract(b, _along_columns(op.astype(node[5], i32), by_row=bool(node.integer("transB"))))
    product = op.matmul(a, _transposed(node, b, "transB"))
    total = op.add(product, node[6]) if node.has(6) else product
    alpha = node.const(node.number("alpha", 1.0), f32)
    made = op.multiply(op.astype(total, f32), op.multiply(op.multiply(scalar(node[1]), _one(node[4])), alpha))
    return quantized_like(node, made, 7, node.dtype()) if node.has(7) else made


def _transposed(node: Node, x: Expr, flag: str) -> Expr:
    return op.permute_dims(x, [1, 0]) if node.integer(flag) else x


def _along_columns(x: Expr, *, by_row: bool) -> Expr:
    """A number for each column of a product; the matrix may have it as a row."""
    one = _one(x)
    return op.expand_dims(one, [1]) if by_row and one.ndim == 1 else one


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

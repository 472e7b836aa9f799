"""Conversions between dtypes."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.dtypes import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect.dtypes import finite_range, is_bool, is_float, is_narrow, is_small_float


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

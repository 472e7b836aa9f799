"""Conversions between dtypes."""

from __future__ import annotations

from xdsl.ir import Attribute

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect.dtypes import is_bool


@converts("Cast")
def cast(node: Node) -> Result:
    """Every element converted."""
    dtype = node.element_type("to")
    if dtype is None:
        raise Refusal("the element type to convert to is missing")
    return converted(node[0], dtype)


@converts("CastLike")
def cast_like(node: Node) -> Result:
    """Every element converted to the dtype of another tensor."""
    return converted(node[0], node.dtype(1))


def converted(x: Expr, dtype: Attribute) -> Expr:
    """A tensor of a dtype; truth is what is not zero."""
    if x.dtype == dtype:
        return x
    if is_bool(dtype) and x.dtype is not None:
        return op.not_equal(x, 0 if not _is_float(x.dtype) else 0.0)
    return op.astype(x, dtype)


def _is_float(dtype: Attribute) -> bool:
    from tir_dialect.dtypes import is_float

    return is_float(dtype)

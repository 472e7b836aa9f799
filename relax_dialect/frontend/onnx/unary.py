"""Elementwise operators of one tensor."""

from __future__ import annotations

from xdsl.dialects.builtin import i1

from relax_dialect.builder import op
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect import te
from tir_dialect.dtypes import is_bool

_SAME = {
    "Abs": op.abs,
    "Acos": op.acos,
    "Acosh": op.acosh,
    "Asin": op.asin,
    "Asinh": op.asinh,
    "Atan": op.atan,
    "Atanh": op.atanh,
    "BitwiseNot": op.bitwise_not,
    "Ceil": op.ceil,
    "Cos": op.cos,
    "Cosh": op.cosh,
    "Erf": op.erf,
    "Exp": op.exp,
    "Floor": op.floor,
    "IsNaN": op.isnan,
    "Log": op.log,
    "Neg": op.negative,
    "Not": op.logical_not,
    "Reciprocal": op.reciprocal,
    "Round": op.round,
    "Sigmoid": op.sigmoid,
    "Sign": op.sign,
    "Sin": op.sin,
    "Sinh": op.sinh,
    "Sqrt": op.sqrt,
    "Tan": op.tan,
    "Tanh": op.tanh,
}


@converts(*_SAME)
def unary(node: Node) -> Result:
    """The relax operator of the same meaning."""
    return _SAME[node.op_type](node[0])


@converts("Identity")
def identity(node: Node) -> Result:
    """The operand itself."""
    return node.value(0)


@converts("IsInf")
def isinf(node: Node) -> Result:
    """Infinities of the signs that are asked for."""
    x, zero = node[0], node.like(0)
    positive, negative = node.integer("detect_positive", 1), node.integer("detect_negative", 1)
    if positive and negative:
        return op.isinf(x)
    if not positive and not negative:
        return op.logical_and(op.isinf(x), node.const(False, i1))
    side = op.greater(x, zero) if positive else op.less(x, zero)
    return op.logical_and(op.isinf(x), side)


@converts("BitCast")
def bitcast(node: Node) -> Result:
    """The same bits read as another dtype of equal width."""
    dtype = node.element_type("to")
    if dtype is None:
        return node.value(0)

    if is_bool(node.dtype()) or is_bool(dtype):
        return op.astype(node[0], dtype)

    def reread(x: te.Tensor) -> te.Tensor:
        return te.compute(x.shape, lambda *i: te.reinterpret(x[i], str(dtype)), name="bitcast")

    return node.te(reread, node[0])

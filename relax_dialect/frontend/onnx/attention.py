"""Attention."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.dtypes import UseFunction, onnx_type
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect.dtypes import is_bool

MASK, PAST_KEY, PAST_VALUE, LENGTHS = 3, 4, 5, 6


@converts("Attention", since=23)
def attention(node: Node) -> Result:
    """Scaled dot-product attention with caches of keys and values; the rarer forms by the body of the function."""
    dtype = node.dtype()
    precision = node.integer("softmax_precision")
    if not isinstance(dtype, Float32Type | Float64Type) or precision not in (0, onnx_type(dtype)):
        raise UseFunction
    windows = (node.integer(f"{side}_window_size", -1) for side in ("left", "right"))
    if (
        node.number("softcap")
        or any(size != -1 for size in windows)
        or node.has(LENGTHS)
        or "".join(node.outputs[3:])
        or not _have_rank(node)
    ):
        raise UseFunction
    heads = node.integer("q_num_heads"), node.integer("kv_num_heads")
    q, k, v = (_with_heads(node, index, count) for index, count in enumerate((heads[0], heads[1], heads[1])))
    if node.has(PAST_KEY):
        k, v = op.concat([node[PAST_KEY], k], axis=2), op.concat([node[PAST_VALUE], v], axis=2)
    result = _attention(node, q, k, v)
    if node.rank() == 3:
        batch, length = node.shape()[:2]
        features = node.shape(2)[-1] // heads[1] * heads[0]
        result = op.reshape(op.permute_dims(result, [0, 2, 1, 3]), (batch, length, features))
    return [result, k, v]


def _have_rank(node: Node) -> bool:
    """Whether queries, keys and values all have heads, as many or a known number of them, or none."""
    ranks = {node.rank(index) for index in range(3)}
    if ranks == {3}:
        return node.integer("q_num_heads") > 0 and node.integer("kv_num_heads") > 0
    if ranks != {4}:
        return False
    q, k = node.shape(0)[1], node.shape(1)[1]
    return q is k or None not in (q.constant_value, k.constant_value)


def _with_heads(node: Node, index: int, heads: int) -> Expr:
    """An operand by batch, head, place and feature."""
    if node.rank(index) == 4:
        return node[index]
    batch, length, features = node.shape(index)
    split = op.reshape(node[index], (batch, length, heads, features // heads))
    return op.permute_dims(split, [0, 2, 1, 3])


def _attention(node: Node, q: Expr, k: Expr, v: Expr) -> Expr:
    scale = node.attributes.get("scale")
    given = None if scale is None else float(scale)
    order = dict.fromkeys(("q_layout", "k_layout", "v_layout", "out_layout"), "BHSD")
    causal = _causal(node)
    if not node.has(MASK):
        return op.nn.attention(q, k, v, scale=given, causal_mask=causal, **order)
    lengths = [node.shape(index)[-2] for index in (1, PAST_KEY) if node.has(index)]
    if node.shape(MASK)[-1] is not sum(lengths[1:], lengths[0]):
        raise UseFunction  # a short mask is filled up
    is_given = is_bool(node.dtype(MASK)) or node.dtype(MASK) == node.dtype()
    bias = node[MASK] if is_given else op.astype(node[MASK], node.dtype())
    result = op.nn.attention_bias(q, k, v, bias, scale=given, causal_mask=causal, **order)
    return result if is_bool(node.dtype(MASK)) else _with_zeros(node, result, causal)


def _is_integer(node: Node) -> bool:
    return isinstance(node.dtype(MASK), IntegerType) and not is_bool(node.dtype(MASK))


def _causal(node: Node) -> str | None:
    """Where a causal mask starts: what is in the cache is before the queries."""
    if not node.integer("is_causal"):
        return None
    if not node.has(PAST_KEY):
        return "TopLeft"
    if node.shape(0)[-2] is not node.shape(1)[-2]:
        raise UseFunction
    return "BottomRight"


def _with_zeros(node: Node, result: Expr, causal: str | None) -> Expr:
    """Zeros for queries whose biases are all minus infinity."""
    known = node.known(MASK)
    if _is_integer(node) or (known is not None and bool(np.all(known > -math.inf))):
        return result
    if causal is not None:
        raise UseFunction
    greatest = op.max(node[MASK], axes=[-1], keepdims=True)
    return op.where(op.equal(greatest, node.like(-math.inf, MASK)), node.like(0.0), result)

"""Attention over several heads, its projection included or not."""

from __future__ import annotations

from collections.abc import Sequence

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.contrib.scores import attend, scores_bias, split_heads
from relax_dialect.frontend.onnx.domains import MICROSOFT
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts

CACHE_FLAGS = ("do_rotary", "past_present_share_buffer")


@converts("Attention", domain=MICROSOFT)
def attention(node: Node) -> Result:
    """The projection to queries, keys and values by one matrix, and attention; as second output the cache."""
    _refuse_operands(node, (6,))
    projected = op.matmul(node[0], node[1])
    return self_attention(node, op.add(projected, node[2]) if node.has(2) else projected, mask=3, past=4, bias=5)


def self_attention(node: Node, projected: Expr, *, mask: int, past: int, bias: int) -> list[Expr]:
    """Attention from queries, keys and values side by side; `past` is a cache of keys and values."""
    if any(node.integer(flag) for flag in CACHE_FLAGS):
        raise Refusal("rotation, and caches in the memory of older ones, are not supported here")
    sizes, heads = node.integers("qkv_hidden_sizes"), node.integer("num_heads")
    if sizes:
        parts = op.split(projected, indices=[sizes[0], sizes[0] + sizes[1]], axis=2)
    else:
        parts = op.split(projected, sections=3, axis=2)
    q, k, v = (split_heads(part, heads) for part in parts)
    if node.has(past):
        k, v = (op.concat([_item(node[past], 0, at), new], 2) for at, new in enumerate((k, v)))
    result = attend(node, q, k, v, scores_bias(node, mask, bias, k), causal=bool(node.integer("unidirectional")))
    has_cache = len(node.outputs) > 1 and node.outputs[1]
    return [result, *([op.stack([k, v], 0)] if has_cache else [])]


@converts("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(node: Node) -> Result:
    """Attention of queries, keys and values, each perhaps with a bias; further outputs are keys and values."""
    _refuse_operands(node, (8, 9))
    if "".join(node.outputs[3:]):
        raise Refusal("scores as an output are not supported")
    q, k, v = _with_heads(node)
    if node.has(6):
        k, v = op.concat([node[6], k], 2), op.concat([node[7], v], 2)
    bias = scores_bias(node, 4, 5, k)
    return [attend(node, q, k, v, bias, causal=bool(node.integer("unidirectional"))), k, v]


def _with_heads(node: Node) -> Sequence[Expr]:
    """Queries, keys and values by batch, head, place and feature: each by itself, or packed, or from a cache."""
    heads = node.integer("num_heads")
    if node.rank(0) == 5:
        return [op.permute_dims(_item(node[0], 3, at), [0, 2, 1, 3]) for at in range(3)]
    q, *biases = _biased(node, heads)
    if node.rank(1) == 5:
        return [q, *(op.permute_dims(_item(node[1], 3, at), [0, 2, 1, 3]) for at in range(2))]
    if node.rank(1) == 4:
        return [q, node[1], node[2]]
    return [
        q,
        *(
            split_heads(node[at] if bias is None else op.add(node[at], bias), heads)
            for at, bias in enumerate(biases, 1)
        ),
    ]


def _biased(node: Node, heads: int) -> tuple[Expr, Expr | None, Expr | None]:
    """The queries with their part of the bias, and the parts for keys and values."""
    if not node.has(3):
        return split_heads(node[0], heads), None, None
    features = node.shape()[2]
    first, second, third = op.split(node[3], indices=[features, features * 2], axis=0)
    return split_heads(op.add(node[0], first), heads), second, third


def _item(x: Expr, axis: int, at: int) -> Expr:
    """One place of a dimension."""
    return op.squeeze(op.strided_slice(x, [axis], [at], [at + 1]), [axis])


def _refuse_operands(node: Node, indices: Sequence[int]) -> None:
    if any(node.has(index) for index in indices):
        raise Refusal("caches that share their memory with older ones are not supported")

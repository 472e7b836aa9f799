"""What attention adds to its scores: masks and biases, in the ways in which ONNX Runtime's operators write them."""

from __future__ import annotations

import math

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node, fixed
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim

MASKED = -10000.0
"""What is added to the scores of keys that are masked, if a node says nothing else."""


def scores_bias(node: Node, mask: int, bias: int, keys: Expr) -> Expr | None:
    """What is added to the scores of keys, by the operands at `mask` and `bias`; `None` if nothing is.

    It broadcasts to batch, head, query and key.
    """
    given = node.optional(bias)
    if not node.has(mask):
        return given
    nothing, masked = (op.full([], node.const(each, keys.dtype or node.dtype())) for each in (0, _masked(node)))
    chosen = op.where(_seen(node, mask, dims_of(keys, 4)[2]), nothing, masked)
    return chosen if given is None else op.add(given, chosen)


def _masked(node: Node) -> float:
    return node.number("mask_filter_value", MASKED)


def _seen(node: Node, index: int, keys: Dim) -> Expr:
    """Which keys count: a mask by key, or by query and key, or the lengths of the sequences."""
    mask, batch = node[index], node.shape()[0]
    rank = node.rank(index)
    if rank in (2, 3):
        truth = op.greater(mask, op.full_like(mask, 0))
        return op.expand_dims(truth, [1, 2] if rank == 2 else [1])
    if rank != 1:
        raise Refusal(f"a mask of rank {rank} is not supported")
    has_starts = node.shape(index)[0] is batch * 2
    if not has_starts:
        mask = node.bb.match_cast(mask, TensorType([batch], node.dtype(index)))
    return node.te(lambda ends: _within(ends, batch, keys, has_starts=has_starts), mask, name="within_lengths")


def _within(ends: te.Tensor, batch: Dim, keys: Dim, *, has_starts: bool) -> te.Tensor:
    """Keys before the ends, which come first, and from the starts on, which follow them."""

    def element(b: te.Expr, _h: te.Expr, _q: te.Expr, key: te.Expr) -> te.Expr:
        before = key < te.cast(ends[b], "index")
        if not has_starts:
            return before
        return te.logical_and(before, key >= te.cast(ends[b + te.cast(batch, "index")], "index"))

    return te.compute((batch, 1, 1, keys), element, name="within_lengths")


def attend(node: Node, q: Expr, k: Expr, v: Expr, bias: Expr | None, *, causal: bool) -> Expr:
    """Attention of operands by batch, head, place and feature; the result by batch and place, heads side by side."""
    given = node.number("scale")
    scale, mask = given or None, "BottomRight" if causal else None
    order = dict.fromkeys(("q_layout", "k_layout", "v_layout", "out_layout"), "BHSD")
    if bias is None:
        made = op.nn.attention(q, k, v, scale=scale, causal_mask=mask, **order)
    else:
        made = op.nn.attention_bias(q, k, v, bias, scale=scale, causal_mask=mask, **order)
    return merged_heads_first(made)


def attend_in_parts(node: Node, q: Expr, k: Expr, v: Expr, bias: Expr, *, softcap: float, sink: Expr | None) -> Expr:
    """The same where scores are bounded by `softcap` unless it is 0, or where a score of each head, the sink, takes
    part in the sum of the softmax and has no value.
    """
    heads, features = dims_of(q, 4)[1], fixed(dims_of(q, 4)[3:], "the number of features")[0]
    shared = fixed([heads], "the number of heads")[0] // fixed([dims_of(k, 4)[1]], "the number of heads")[0]
    keys, values = (each if shared == 1 else op.repeat(each, shared, 1) for each in (k, v))
    scale = node.number("scale") or 1 / math.sqrt(features)
    scores = op.multiply(op.matmul(q, op.permute_dims(keys, [0, 1, 3, 2])), node.like(scale))
    if softcap:
        scores = op.multiply(op.tanh(op.divide(scores, node.like(softcap))), node.like(softcap))
    scores = op.add(scores, bias)
    if sink is None:
        return merged_heads_first(op.matmul(op.nn.softmax(scores, 3), values))
    places = dims_of(scores, 4)
    spread = op.broadcast_to(op.reshape(sink, (1, heads, 1, 1)), (*places[:3], 1))
    weights = op.nn.softmax(op.concat([scores, spread], 3), 3)
    return merged_heads_first(op.matmul(op.strided_slice(weights, [3], [0], [places[3]]), values))


def merged_heads_first(x: Expr) -> Expr:
    """Heads that are a dimension behind the batch, side by side."""
    return merged_heads(op.permute_dims(x, [0, 2, 1, 3]))


def split_heads(x: Expr, heads: int) -> Expr:
    """Heads that lie side by side, as a dimension behind the batch."""
    batch, length, features = dims_of(x, 3)
    return op.permute_dims(op.reshape(x, (batch, length, heads, features // heads)), [0, 2, 1, 3])


def merged_heads(x: Expr) -> Expr:
    """Heads behind the places, side by side."""
    batch, length, heads, features = dims_of(x, 4)
    return op.reshape(x, (batch, length, heads * features))


def dims_of(x: Expr, rank: int) -> tuple[Dim, ...]:
    """The dimensions of a tensor of a rank; `Refusal` if it has another one."""
    found = tuple(dim for dim in x.shape or () if dim is not None)
    if len(found) != rank:
        raise Refusal(f"expected an operand of rank {rank}, got {x.type}")
    return found

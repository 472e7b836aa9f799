"""Attention to caches of keys and values, in which what is new is written behind what is valid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i32, i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.edge_cases import indices_within
from relax_dialect.frontend.onnx.contrib.attention import (
    attend,
    dims_of,
    rotated,
    scores_bias,
    split_heads,
)
from relax_dialect.frontend.onnx.contrib.layers import rms_norm
from relax_dialect.frontend.onnx.model import MICROSOFT
from relax_dialect.frontend.onnx.node import Node, Result, converts, fixed
from relax_dialect.frontend.onnx.values import Refusal
from tir_dialect import te
from tir_dialect.dims import Dim, constant, maximum

PAST_KEY, PAST_VALUE, LAST, TOTAL, COS, SIN, POSITIONS, BIAS = range(3, 11)
QUERY_SCALE, KEY_SCALE = 14, 15
SINK, CACHE_SCALES = 11, (12, 13)


@converts("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(node: Node) -> Result:
    """Attention to a cache and new keys, which are written behind what is valid of each sequence."""
    if any(node.has(index) for index in CACHE_SCALES) or node.integer("sliding_window_cache"):
        raise Refusal("caches that are quantised, or hold a window only, are not supported")
    if "".join(node.outputs[3:]):
        raise Refusal("scores as an output are not supported")
    q, k, v = _with_heads_and_rotation(node)
    totals = node.dims(TOTAL)
    total = totals[0] if totals else node.run_time_dims(op.reshape(node[TOTAL], [1]))[0]
    past = node.shape(PAST_KEY)[2] if node.has(PAST_KEY) else constant(0)
    (length,) = node.named([total if past.constant_value == 0 else maximum(total, past)])
    count = op.add(op.astype(op.reshape(node[LAST], [node.shape()[0]]), i64), 1)
    cache = Cache.of(node, dims_of(q, 4)[2], total, length, count)
    if node.has(QUERY_SCALE):
        epsilon = node.number("qk_norm_epsilon", 1e-6)
        q, k = rms_norm(q, node[QUERY_SCALE], [-1], epsilon), rms_norm(k, node[KEY_SCALE], [-1], epsilon)
    if node.integer("do_rotary"):
        interleaved = bool(node.integer("rotary_interleaved"))
        positions = node[POSITIONS] if node.has(POSITIONS) else cache.positions()
        q, k = (rotated(each, positions, node[COS], node[SIN], interleaved=interleaved) for each in (q, k))
    keys, values = cache.written(PAST_KEY, k), cache.written(PAST_VALUE, v)
    return [_attended(node, q, keys, values, cache.seen()), keys, values]


def _attended(node: Node, q: Expr, k: Expr, v: Expr, seen: Expr) -> Expr:
    """Attention to what is seen; with a smooth softmax a sink of 0 unless there are sinks."""
    sink = node.optional(SINK)
    if sink is None and node.integer("smooth_softmax", -1) > 0:
        sink = op.full([dims_of(q, 4)[1]], node.like(0))
    bias = op.where(seen, node[BIAS], node.like(-math.inf)) if node.has(BIAS) else seen
    return attend(node, q, k, v, bias, causal=False, softcap=node.number("softcap") or None, sink=sink)


def _with_heads_and_rotation(node: Node) -> tuple[Expr, Expr, Expr]:
    """Queries, keys and values by batch, head, position and feature: each by itself, or side by side."""
    heads, few = node.integer("num_heads"), node.integer("kv_num_heads")
    if node.has(1):
        q, k, v = (node[index] for index in range(3))
    else:
        features = node.shape()[2] // (heads + 2 * few)
        q, k, v = op.split(node[0], indices=[features * heads, features * (heads + few)], axis=2)
    return split_heads(q, heads), split_heads(k, few), split_heads(v, few)


@dataclass(frozen=True)
class Cache:
    """Where the new tokens of each sequence are written: behind those that are valid."""

    node: Node
    batch: Dim
    new: Dim
    """The number of new tokens."""
    length: Dim
    """The positions of the new cache."""
    first: Expr
    """The position of the first new token of each sequence."""
    count: Expr
    """The number of tokens of each sequence that are valid, new ones included."""

    @staticmethod
    def of(node: Node, new: Dim, total: Dim, length: Dim, count: Expr) -> Cache:
        """New tokens are the last ones that are valid, or where they are `total`, all; positions behind them are not
        valid.
        """
        whole, fresh = (op.reshape(op.shape_to_tensor([dim]), []) for dim in (total, new))
        first = op.where(op.equal(whole, fresh), node.const(0, i64), op.subtract(count, fresh))
        return Cache(node, node.shape()[0], new, length, first, count)

    def positions(self) -> Expr:
        """The positions of the new tokens."""

        def kernel(first: te.Tensor) -> te.Tensor:
            def position(b: te.Expr, i: te.Expr) -> te.Expr:
                return first[b] + te.cast(i, "i64")

            return te.compute((self.batch, self.new), position, name="positions")

        return self.node.te(kernel, self.first, name="positions")

    def written(self, past: int, x: Expr) -> Expr:
        """The new cache: what is valid of the old one, and `x` behind it."""
        old = self.node.optional(past)

        def kernel(x: te.Tensor, first: te.Tensor, *old: te.Tensor) -> te.Tensor:
            zero = te.cast(te.const(0, "i64"), "index")

            def element(b: te.Expr, h: te.Expr, i: te.Expr, d: te.Expr) -> te.Expr:
                at = i - te.cast(first[b], "index")
                is_new = te.logical_and(at >= 0, at < x.shape[2])
                rest = te.const(0, x.dtype)
                if old:
                    in_old = i < old[0].shape[2]
                    rest = te.if_then_else(in_old, old[0][b, h, te.select(in_old, i, zero), d], rest)
                return te.if_then_else(is_new, x[b, h, te.select(is_new, at, zero), d], rest)

            return te.compute((*x.shape[:2], self.length, x.shape[3]), element, name="cache")

        return self.node.te(kernel, x, self.first, *([] if old is None else [old]), name="cache")

    def seen(self) -> Expr:
        """Which keys a query sees: up to its own position, in a window if there is one; or all that are valid."""
        window, causal = self.node.integer("local_window_size", -1), bool(self.node.integer("causal", 1))

        def kernel(first: te.Tensor, count: te.Tensor) -> te.Tensor:
            def element(b: te.Expr, _h: te.Expr, query: te.Expr, key: te.Expr) -> te.Expr:
                if not causal:
                    return key < te.cast(count[b], "index")
                position = te.cast(first[b], "index") + query
                near = key <= position
                return near if window < 0 else te.logical_and(near, key > position - window)

            return te.compute((self.batch, 1, self.new, self.length), element, name="seen")

        return self.node.te(kernel, self.first, self.count, name="seen")


BLOCK_ENDS, BLOCKS, SPARSE_TOTAL, COUNT, SPARSE_COS, SPARSE_SIN = range(5, 11)


@converts("SparseAttention", domain=MICROSOFT)
def sparse_attention(node: Node) -> Result:
    """Attention to blocks of a cache. For each row of blocks, lists say which of them its queries see."""
    q, k, v = _with_heads_and_rotation(node)
    new, length = dims_of(q, 4)[2], node.shape(PAST_KEY)[2]
    totals = node.dims(SPARSE_TOTAL)
    total = totals[0] if totals else node.run_time_dims(op.reshape(node[SPARSE_TOTAL], [1]))[0]
    cache = Cache.of(node, new, total, length, op.astype(node[COUNT], i64))
    if node.integer("do_rotary"):
        interleaved = bool(node.integer("rotary_interleaved"))
        q, k = (
            rotated(each, cache.positions(), node[SPARSE_COS], node[SPARSE_SIN], interleaved=interleaved)
            for each in (q, k)
        )
    keys, values = cache.written(PAST_KEY, k), cache.written(PAST_VALUE, v)
    seen = op.logical_and(cache.seen(), _of_blocks(node, cache, _block_mask(node), dims_of(q, 4)[1]))
    return [attend(node, q, keys, values, seen, causal=False), keys, values]


def _block_mask(node: Node) -> Expr:
    """By layout, block of queries and block of keys, whether these see those."""
    layouts, rows = fixed(node.shape(BLOCK_ENDS), "the number of blocks")
    (listed,) = fixed(node.shape(BLOCKS)[1:], "the number of blocks")

    def kernel(ends: te.Tensor, blocks: te.Tensor) -> te.Tensor:
        at = te.reduce_axis(listed, "at")

        def element(layout: te.Expr, row: te.Expr, column: te.Expr) -> te.Expr:
            position = te.cast(at, "i32")
            is_here = te.logical_and(
                position >= ends[layout, row],
                position < ends[layout, row + 1],
                blocks[layout, at] == te.cast(column, "i32"),
            )
            return te.max(te.select(is_here, te.const(1, "i32"), te.const(0, "i32")), at)

        return te.compute((layouts, rows - 1, rows - 1), element, name="block_mask")

    return node.te(kernel, op.astype(node[BLOCK_ENDS], i32), op.astype(node[BLOCKS], i32), name="block_mask")


def _of_blocks(node: Node, cache: Cache, mask: Expr, heads: Dim) -> Expr:
    """By head, query and key, whether the blocks that these are in see each other; heads use layouts in turns."""
    size = node.integer("sparse_block_size")

    def kernel(mask: te.Tensor, first: te.Tensor) -> te.Tensor:
        layouts, rows, columns = mask.shape

        def element(b: te.Expr, h: te.Expr, query: te.Expr, key: te.Expr) -> te.Expr:
            row = te.minimum((te.cast(first[b], "index") + query) // size, rows - 1)
            return mask[te.floormod(h, layouts), te.maximum(row, 0), te.minimum(key // size, columns - 1)] > 0

        return te.compute((cache.batch, heads, cache.new, cache.length), element, name="of_blocks")

    return node.te(kernel, mask, cache.first, name="of_blocks")


STEP_MASK, STEP_BIAS, STEP_KEY, STEP_VALUE, LENGTH, BEAMS, SOURCES, PROJECTION = range(3, 11)


@converts("DecoderMaskedMultiHeadAttention", domain=MICROSOFT)
def one_token_attention(node: Node) -> Result:
    """Attention of one new token to keys and values that are given, or to a cache with what is new; the cache; and the
    scores. Beams may read what others have written: of which one each position is, is an operand.
    """
    heads = node.integer("num_heads")
    is_cross = node.has(1) and node.rank(1) == 4
    # Queries, and what is new of keys and values, each with its part of a bias.
    (hidden,) = fixed(node.shape()[2:], "the number of features")
    if not node.has(1):
        (width,) = fixed(node.shape(STEP_VALUE)[3:], "the number of features of a head")
        hidden = (hidden - width * node.integer("num_heads")) // 2
        parts = op.split(node[0], indices=[hidden, hidden * 2], axis=2)
    else:
        parts = [node[0]] if is_cross else [node[0], node[1], node[2]]
    if not node.has(PROJECTION):
        q, *new = list(parts)
    else:
        biases = op.split(node[PROJECTION], indices=[hidden, hidden * 2], axis=0)
        q, *new = [op.add(part, bias) for part, bias in zip(parts, biases, strict=False)]
    q = split_heads(q, heads)
    if is_cross:
        keys, values, present = node[1], node[2], (None, None)
    else:
        keys, values, present = _extended(node, split_heads(new[0], heads), split_heads(new[1], heads))
    bias = scores_bias(node, STEP_MASK, STEP_BIAS, keys)
    scores = None
    if len(node.outputs) > 3 and node.outputs[3]:
        scale = node.number("scale") or 1 / math.sqrt(fixed(dims_of(q, 4)[3:], "the number of features")[0])
        scores = op.multiply(op.matmul(q, op.permute_dims(keys, [0, 1, 3, 2])), node.like(scale))
        scores = scores if bias is None else op.add(scores, bias)
    return [attend(node, q, keys, values, bias, causal=False), *present, scores]


def _extended(node: Node, k: Expr, v: Expr) -> tuple[Expr, Expr, tuple[Expr, Expr]]:
    """The keys and values that are valid, and the cache with what is new."""
    old = (STEP_KEY, STEP_VALUE)
    if not node.integer("past_present_share_buffer"):
        keys, values = (op.concat([node[at], new], 2) for at, new in zip(old, (k, v), strict=True))
        present = keys, values
        total = dims_of(keys, 4)[2]
    else:
        last = indices_within(
            node.bb,
            op.reshape(node[LENGTH], [1]),
            [node.shape(STEP_KEY)[2]],
            f"'{node.op_type}' length",
            "the cache",
            from_back=False,
        )
        count = op.add(op.astype(last, i64), 1)
        (total,) = node.run_time_dims(count)
        first = op.broadcast_to(op.subtract(count, 1), [node.shape()[0]])
        cache = Cache(node, node.shape()[0], constant(1), node.shape(STEP_KEY)[2], first, first)
        present = cache.written(STEP_KEY, k), cache.written(STEP_VALUE, v)
        keys, values = (op.strided_slice(each, [2], [0], [total], assume_inbound=True) for each in present)
    if node.has(SOURCES):
        keys, values = (_of_sources(node, each, total) for each in (keys, values))
    return keys, values, present


def _of_sources(node: Node, cache: Expr, total: Dim) -> Expr:
    """What each beam reads of a cache: its own new token, and what its sources wrote."""
    _, beams, listed = node.shape(SOURCES)
    beams_within = indices_within(
        node.bb, node[SOURCES], [beams], f"'{node.op_type}' beams", "the beams", from_back=False
    )

    def kernel(cache: te.Tensor, sources: te.Tensor) -> te.Tensor:
        def element(b: te.Expr, h: te.Expr, i: te.Expr, d: te.Expr) -> te.Expr:
            item, beam = te.floordiv(b, beams), te.floormod(b, beams)
            source = item * beams + te.cast(sources[item, beam, te.minimum(i, listed - 1)], "index")
            return cache[te.select(i == te.cast(total, "index") - 1, b, source), h, i, d]

        return te.compute(cache.shape, element, name="of_sources")

    return node.te(kernel, cache, beams_within, name="of_sources")


@converts("NGramRepeatBlock", domain=MICROSOFT)
def block_repeated_ngrams(node: Node) -> Result:
    """Scores, with the least of all for tokens that would make an n-gram that the sequence has."""
    size = node.integer("ngram_size")
    ids = indices_within(node.bb, node[0], [node.shape(1)[1]], f"'{node.op_type}' ids", "the scores", from_back=False)

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        ids, scores = ins
        length = te.cast(ids.shape[1], "index")
        with b.block("ngrams", ("spatial", ids.shape[0], "n")) as (n,):
            with b.for_range(0, scores.shape[1], "token") as token:
                b.store(outs[0], (n, token), scores[n, token])
            same = b.alloc((), "bool", "same")
            with b.for_range(0, length - (size - 1), "first") as first:
                b.store(same, (), te.const(1, "bool"))
                with b.for_range(0, size - 1, "at") as at:
                    end = ids[n, te.maximum(length - (size - 1), 0) + at]
                    b.store(same, (), te.logical_and(same[()], ids[n, first + at] == end))
                with b.if_(same[()]):
                    token = b.let(te.cast(ids[n, first + (size - 1)], "index"), "token")
                    b.store(outs[0], (n, token), te.const(-math.inf, scores.dtype))

    def kernel(ids: te.Tensor, scores: te.Tensor) -> te.Tensor:
        return te.extern([(scores.shape, scores.dtype)], [ids, scores], body, name="ngrams")[0]

    return node.te(kernel, ids, node[1], name="repeated_ngrams")

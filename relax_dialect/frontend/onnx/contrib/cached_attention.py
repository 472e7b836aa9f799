"""Attention of few heads of keys and values, whose caches hold sequences of different lengths."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import i64

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.contrib.normalization import rms_norm
from relax_dialect.frontend.onnx.contrib.rotary import rotated
from relax_dialect.frontend.onnx.contrib.scores import attend, attend_in_parts, dims_of, split_heads
from relax_dialect.frontend.onnx.domains import MICROSOFT
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect import te
from tir_dialect.dims import Dim, constant, maximum

PAST_KEY, PAST_VALUE, LAST, TOTAL, COS, SIN, PLACES, BIAS = range(3, 11)
QUERY_SCALE, KEY_SCALE = 14, 15
SINK, CACHE_SCALES = 11, (12, 13)


@converts("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(node: Node) -> Result:
    """Attention to a cache and new keys, which are written behind what is valid of each sequence."""
    _refuse(node)
    q, k, v = _with_heads(node)
    cache = _Cache.of(node, dims_of(q, 4)[2])
    if node.has(QUERY_SCALE):
        epsilon = node.number("qk_norm_epsilon", 1e-6)
        q, k = rms_norm(q, node[QUERY_SCALE], [-1], epsilon), rms_norm(k, node[KEY_SCALE], [-1], epsilon)
    if node.integer("do_rotary"):
        interleaved = bool(node.integer("rotary_interleaved"))
        places = node[PLACES] if node.has(PLACES) else cache.places()
        q, k = (rotated(node, each, places, node[COS], node[SIN], interleaved=interleaved) for each in (q, k))
    keys, values = cache.written(PAST_KEY, k), cache.written(PAST_VALUE, v)
    return [_attended(node, q, keys, values, cache.seen()), keys, values]


def _attended(node: Node, q: Expr, k: Expr, v: Expr, seen: Expr) -> Expr:
    softcap, is_smooth = node.number("softcap"), node.integer("smooth_softmax", -1) > 0
    if not softcap and not is_smooth and not node.has(SINK) and not node.has(BIAS):
        return attend(node, q, k, v, seen, causal=False)
    lowest = node.like(-65504.0 if str(node.dtype()) == "f16" else -3.0e38)
    bias = op.where(seen, node[BIAS] if node.has(BIAS) else node.like(0), lowest)
    if not softcap and not is_smooth and not node.has(SINK):
        return attend(node, q, k, v, bias, causal=False)
    sink = node.optional(SINK)
    if sink is None and is_smooth:
        sink = op.full([dims_of(q, 4)[1]], node.like(0))
    return attend_in_parts(node, q, k, v, bias, softcap=softcap, sink=sink)


def _refuse(node: Node) -> None:
    if any(node.has(index) for index in CACHE_SCALES) or node.integer("sliding_window_cache"):
        raise Refusal("caches that are quantised, or hold a window only, are not supported")
    if "".join(node.outputs[3:]):
        raise Refusal("scores as an output are not supported")


def _with_heads(node: Node) -> tuple[Expr, Expr, Expr]:
    """Queries, keys and values by batch, head, place and feature: each by itself, or side by side."""
    heads, few = node.integer("num_heads"), node.integer("kv_num_heads")
    if node.has(1):
        q, k, v = (node[index] for index in range(3))
    else:
        features = node.shape()[2] // (heads + 2 * few)
        q, k, v = op.split(node[0], indices=[features * heads, features * (heads + few)], axis=2)
    return split_heads(q, heads), split_heads(k, few), split_heads(v, few)


@dataclass(frozen=True)
class _Cache:
    """Where the new tokens of each sequence are written: behind those that are valid."""

    node: Node
    batch: Dim
    new: Dim
    """The number of new tokens."""
    past: Dim
    """The places of the old cache."""
    length: Dim
    """The places of the new cache."""
    first: Expr
    """The place of the first new token of each sequence."""
    count: Expr
    """The number of tokens of each sequence that are valid, new ones included."""

    @staticmethod
    def of(node: Node, new: Dim) -> _Cache:
        """What the lengths of a node say."""
        totals = node.dims(TOTAL)
        total = totals[0] if totals else node.run_time_dims(op.reshape(node[TOTAL], [1]))[0]
        past = node.shape(PAST_KEY)[2] if node.has(PAST_KEY) else constant(0)
        (length,) = node.named([total if past.constant_value == 0 else maximum(total, past)])
        count = op.add(op.astype(op.reshape(node[LAST], [node.shape()[0]]), i64), 1)
        whole = op.reshape(op.shape_to_tensor([total]), [])
        is_prompt = op.equal(whole, op.reshape(op.shape_to_tensor([new]), []))
        behind = op.subtract(count, op.reshape(op.shape_to_tensor([new]), []))
        first = op.where(is_prompt, node.const(0, i64), behind)
        return _Cache(node, node.shape()[0], new, past, length, first, count)

    def places(self) -> Expr:
        """The places of the new tokens."""

        def kernel(first: te.Tensor) -> te.Tensor:
            def place(b: te.Expr, i: te.Expr) -> te.Expr:
                return first[b] + te.cast(i, "i64")

            return te.compute((self.batch, self.new), place, name="places")

        return self.node.te(kernel, self.first, name="places")

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
        """Which keys a query sees: up to its own place, in a window if there is one; or all that are valid."""
        window, causal = self.node.integer("local_window_size", -1), bool(self.node.integer("causal", 1))

        def kernel(first: te.Tensor, count: te.Tensor) -> te.Tensor:
            def element(b: te.Expr, _h: te.Expr, query: te.Expr, key: te.Expr) -> te.Expr:
                if not causal:
                    return key < te.cast(count[b], "index")
                place = te.cast(first[b], "index") + query
                near = key <= place
                return near if window < 0 else te.logical_and(near, key > place - window)

            return te.compute((self.batch, 1, self.new, self.length), element, name="seen")

        return self.node.te(kernel, self.first, self.count, name="seen")

"""Attention of one sequence with a cache of keys and values that is written in place.

A cache has room for a number of positions, and `past` of them are filled. A step appends the keys and values of new
tokens where they belong, and attends to `past + new` positions; nothing that is there is copied or moved. Heads of
queries that share a head of keys are rows of one product, so that keys are not repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relax_dialect.builder import Expr, op, tensor
from relax_dialect.builder.tensor_expressions import emit_te
from relax_dialect.nn.layers import Linear, RMSNorm
from relax_dialect.nn.module import Module, current_builder, known_shape
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim


@dataclass(frozen=True)
class KVCache:
    """Memory for keys and values of a layer, each `(heads, capacity, features)`, `f32`."""

    keys: Expr
    values: Expr
    past: Dim
    """How many positions are filled."""

    @staticmethod
    def type(heads: int, capacity: int, features: int) -> TensorType:
        """The type of the keys, and of the values."""
        return tensor((heads, capacity, features))

    def appended(self, keys: Expr, values: Expr) -> KVCache:
        """The cache after new keys and values, `(new, heads, features)`, have been written into it."""
        return KVCache(_append(self.keys, keys, self.past), _append(self.values, values, self.past), self.past)


def _append(memory: Expr, new: Expr, past: Dim) -> Expr:
    """`memory[:, past : past + new] = new`, in place."""
    (heads, capacity, features), count = known_shape(memory), known_shape(new)[0]
    fresh = te.placeholder((te.var("count") if count.constant_value is None else count, heads, features), "f32", "new")

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block(
            "append", ("spatial", fresh.shape[0], "i"), ("spatial", heads, "h"), ("spatial", features, "d")
        ) as at:
            i, h, d = at
            b.store(outs[0], (h, i + te.var("past"), d), ins[0][i, h, d])

    (cache,) = te.extern([((heads, capacity, features), "f32")], [fresh], body, name="cache")
    func = te.create_prim_func([fresh, cache], name="append")
    return current_builder().call_tir_inplace(func, [new, memory], [1], [memory.type], {"past": past})[0]


def _attended(queries: Expr, cache: KVCache, scale: float, window: int | None) -> Expr:
    """The mean of the values that each query sees."""

    def attend(q: te.Tensor, keys: te.Tensor, values: te.Tensor) -> te.Tensor:
        return _attend(q, keys, values, cache.past, scale, window)

    found = emit_te(current_builder(), attend, [queries, cache.keys, cache.values], {}, "cached_attention")
    assert isinstance(found, Expr)  # one tensor
    return found


def _attend(q: te.Tensor, keys: te.Tensor, values: te.Tensor, past: Dim, scale: float, window: int | None) -> te.Tensor:
    """The mean of the values that each query sees; queries are `(new, heads of keys, queries of each, features)`."""
    count, heads, group, features = q.shape
    rows = (heads, group, count)
    total = past + count
    c = te.reduce_axis(features, "c")
    r, t, s = (te.reduce_axis(total, name) for name in ("r", "t", "s"))

    def seen(i: te.Expr, j: te.Expr) -> te.Expr:
        last = i + past
        return j <= last if window is None else te.logical_and(j <= last, j > last - window)

    def product(h: te.Expr, g: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        return te.sum(q[i, h, g, c] * keys[h, j, c], c)

    def greatest(h: te.Expr, g: te.Expr, i: te.Expr) -> te.Expr:
        return te.max(scores[h, g, i, r], r, where=seen(i, r))

    def power(h: te.Expr, g: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        return te.select(seen(i, j), te.exp(scores[h, g, i, j] - top[h, g, i]), te.const(0.0, "f32"))

    def weighted(i: te.Expr, h: te.Expr, g: te.Expr, d: te.Expr) -> te.Expr:
        return te.sum(powers[h, g, i, s] * values[h, s, d], s)

    def mean(i: te.Expr, h: te.Expr, g: te.Expr, d: te.Expr) -> te.Expr:
        return totals[i, h, g, d] / sums[h, g, i]

    products = te.compute((*rows, total), product, name="products")
    scores = te.compute((*rows, total), lambda *i: products[i] * te.const(scale, "f32"), name="scores")
    top = te.compute(rows, greatest, name="top")
    powers = te.compute((*rows, total), power, name="powers")
    sums = te.compute(rows, lambda *i: te.sum(powers[(*i, t)], t), name="sums")
    totals = te.compute((count, heads, group, features), weighted, name="totals")
    return te.compute((count, heads, group, features), mean, name="attention")


class RotaryEmbedding(Module):
    """Rotation of pairs of features by angles that grow with the position (Su et al., 2021).

    Pairs are the halves of a head, or features side by side if it is `interleaved`, as in GGUF files of Llama.
    """

    def __init__(self, features: int, base: float = 10000.0, *, interleaved: bool = False, scale: float = 1.0):
        self._features, self._base, self._scale, self._interleaved = features, base, scale, interleaved

    def angles(self, past: Dim, count: Dim) -> tuple[Expr, Expr]:
        """Cosine and sine for new positions, `(new, 1, features / 2)`."""
        half = self._features // 2
        frequencies = self._scale * self._base ** (-np.arange(half) / half)
        positions = op.arange(past, past + count, 1, dtype="i64").astype("f32")
        angle = op.reshape(positions, (count, 1, 1)) * current_builder().const(frequencies.astype(np.float32))
        return op.cos(angle), op.sin(angle)

    def forward(self, x: Expr, angles: tuple[Expr, Expr]) -> Expr:
        """`(new, heads, features)` rotated."""
        rotated = emit_te(current_builder(), self._rotated, [x, *angles], {}, "rotate")
        assert isinstance(rotated, Expr)  # one tensor
        return rotated

    def _rotated(self, x: te.Tensor, cos: te.Tensor, sin: te.Tensor) -> te.Tensor:
        half = self._features // 2

        def element(i: te.Expr, h: te.Expr, d: te.Expr) -> te.Expr:
            first, pair = (d % 2 == 0, d // 2) if self._interleaved else (d < half, d % half)
            step = 1 if self._interleaved else half
            partner = te.select(first, d + step, d - step)
            turned = te.select(first, -x[i, h, partner], x[i, h, partner])
            return x[i, h, d] * cos[i, 0, pair] + turned * sin[i, 0, pair]

        return te.compute(x.shape, element, name="rotate")


class Attention(Module):
    """Causal attention of grouped queries, with rotary embedding."""

    def __init__(
        self,
        hidden: int,
        heads: int,
        kv_heads: int,
        features: int,
        rope: RotaryEmbedding,
        *,
        bias: bool = False,
        norm_epsilon: float | None = None,
        window: int | None = None,
        scale: float | None = None,
    ):
        """Biases are those of queries, keys and values; `norm_epsilon` is that of a norm of queries and keys, if there
        is one. With a `window` a token sees so many positions, itself included.
        """
        if heads % kv_heads:
            raise ValueError(f"expected heads in multiples of {kv_heads}, got {heads}")
        self.q_proj = Linear(hidden, heads * features, bias=bias)
        self.k_proj, self.v_proj = (Linear(hidden, kv_heads * features, bias=bias) for _ in range(2))
        self.o_proj = Linear(heads * features, hidden)
        if norm_epsilon is not None:
            self.q_norm, self.k_norm = (RMSNorm(features, norm_epsilon) for _ in range(2))
        self._has_norm = norm_epsilon is not None
        self._sizes = heads, kv_heads, features
        self._rope, self._window = rope, window
        self._scale = features**-0.5 if scale is None else scale

    def forward(self, x: Expr, cache: KVCache, angles: tuple[Expr, Expr]) -> Expr:
        """`(new, hidden)`; the cache is written."""
        heads, kv_heads, features = self._sizes
        count = known_shape(x)[0]
        q = op.reshape(self.q_proj(x), (count, heads, features))
        k, v = (op.reshape(each(x), (count, kv_heads, features)) for each in (self.k_proj, self.v_proj))
        if self._has_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = self._rope(q, angles), self._rope(k, angles)
        filled = cache.appended(k, v)
        grouped = op.reshape(q, (count, kv_heads, heads // kv_heads, features))
        seen = _attended(grouped, filled, self._scale, self._window)
        return self.o_proj(op.reshape(seen, (count, heads * features)))

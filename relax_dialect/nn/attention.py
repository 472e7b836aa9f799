"""Attention of one sequence with a cache of keys and values that is written in place.

A cache has room for a number of positions, and `past` of them are filled. A step appends the keys and values of new
tokens where they belong, and attends to `past + new` positions; nothing that is there is copied or moved. Heads of
queries that share a head of keys are rows of one product, so that keys are not repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relax_dialect.builder import Expr, op, tensor
from relax_dialect.builder.tensor_expressions import emit_te
from relax_dialect.nn.layers import Linear, RMSNorm
from relax_dialect.nn.module import Module, current_builder, known_shape
from relax_dialect.nn.rotary import RotaryEmbedding
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


@dataclass(frozen=True)
class Scoring:
    """How much a query attends to a key."""

    scale: float
    """What the dot product is multiplied by."""
    window: int | None = None
    """How many positions a token sees, itself included; all before it unless said."""
    softcap: float | None = None
    """Between which numbers scores are, if they are bounded."""


def _attended(queries: Expr, cache: KVCache, scoring: Scoring) -> Expr:
    """The mean of the values that each query sees."""

    def attend(q: te.Tensor, keys: te.Tensor, values: te.Tensor) -> te.Tensor:
        return _attend(q, keys, values, cache.past, scoring)

    found = emit_te(current_builder(), attend, [queries, cache.keys, cache.values], {}, "cached_attention")
    assert isinstance(found, Expr)  # one tensor
    return found


def _attend(q: te.Tensor, keys: te.Tensor, values: te.Tensor, past: Dim, scoring: Scoring) -> te.Tensor:
    """The mean of the values that each query sees; queries are `(new, heads of keys, queries of each, features)`."""
    count, heads, group, features = q.shape
    rows = (heads, group, count)
    total, window = past + count, scoring.window
    c = te.reduce_axis(features, "c")
    r, t, s = (te.reduce_axis(total, name) for name in ("r", "t", "s"))

    def seen(i: te.Expr, j: te.Expr) -> te.Expr:
        last = i + past
        return j <= last if window is None else te.logical_and(j <= last, j > last - window)

    def product(h: te.Expr, g: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        return te.sum(q[i, h, g, c] * keys[h, j, c], c)

    def score(*i: te.Expr) -> te.Expr:
        scaled = products[i] * te.const(scoring.scale, "f32")
        if scoring.softcap is None:
            return scaled
        cap = te.const(scoring.softcap, "f32")
        return te.tanh(scaled / cap) * cap

    def greatest(h: te.Expr, g: te.Expr, i: te.Expr) -> te.Expr:
        return te.max(scores[h, g, i, r], r, where=seen(i, r))

    def power(h: te.Expr, g: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        return te.select(seen(i, j), te.exp(scores[h, g, i, j] - top[h, g, i]), te.const(0.0, "f32"))

    def weighted(i: te.Expr, h: te.Expr, g: te.Expr, d: te.Expr) -> te.Expr:
        return te.sum(powers[h, g, i, s] * values[h, s, d], s)

    def mean(i: te.Expr, h: te.Expr, g: te.Expr, d: te.Expr) -> te.Expr:
        return totals[i, h, g, d] / sums[h, g, i]

    products = te.compute((*rows, total), product, name="products")
    scores = te.compute((*rows, total), score, name="scores")
    top = te.compute(rows, greatest, name="top")
    powers = te.compute((*rows, total), power, name="powers")
    sums = te.compute(rows, lambda *i: te.sum(powers[(*i, t)], t), name="sums")
    totals = te.compute((count, heads, group, features), weighted, name="totals")
    return te.compute((count, heads, group, features), mean, name="attention")


class Attention(Module):
    """Causal attention of grouped queries, with rotary embedding."""

    def __init__(
        self,
        hidden: int,
        heads: int,
        kv_heads: int,
        features: int,
        rope: RotaryEmbedding | None,
        *,
        bias: bool = False,
        output_bias: bool = False,
        norm_epsilon: float | None = None,
        norm_whole: bool = False,
        window: int | None = None,
        scale: float | None = None,
        softcap: float | None = None,
    ):
        """Biases are those of queries, keys and values, and of the output.

        `norm_epsilon` is that of a norm of queries and keys, if there is one: of each head, or of all of them together
        (`norm_whole`). With a `window` a token sees so many positions, itself included. With a `softcap` scores are
        `softcap * tanh(score / softcap)`.
        """
        if heads % kv_heads:
            raise ValueError(f"expected heads in multiples of {kv_heads}, got {heads}")
        self.q_proj = Linear(hidden, heads * features, bias=bias)
        self.k_proj, self.v_proj = (Linear(hidden, kv_heads * features, bias=bias) for _ in range(2))
        self.o_proj = Linear(heads * features, hidden, bias=output_bias)
        if norm_epsilon is not None:
            sizes = (heads * features, kv_heads * features) if norm_whole else (features, features)
            self.q_norm, self.k_norm = (RMSNorm(size, norm_epsilon) for size in sizes)
        self._has_norm, self._norm_whole = norm_epsilon is not None, norm_whole
        self._sizes = heads, kv_heads, features
        self._rope = rope
        self._scoring = Scoring(features**-0.5 if scale is None else scale, window, softcap)

    def forward(self, x: Expr, cache: KVCache, angles: tuple[Expr, ...] = ()) -> Expr:
        """`(new, hidden)`; the cache is written. `angles` are cosine and sine of the new positions, if it rotates."""
        heads, kv_heads, features = self._sizes
        count = known_shape(x)[0]
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self._has_norm and self._norm_whole:
            q, k = self.q_norm(q), self.k_norm(k)
        q = op.reshape(q, (count, heads, features))
        k, v = (op.reshape(each, (count, kv_heads, features)) for each in (k, v))
        if self._has_norm and not self._norm_whole:
            q, k = self.q_norm(q), self.k_norm(k)
        if self._rope is not None:
            q, k = self._rope(q, *angles), self._rope(k, *angles)
        filled = cache.appended(k, v)
        grouped = op.reshape(q, (count, kv_heads, heads // kv_heads, features))
        seen = _attended(grouped, filled, self._scoring)
        return self.o_proj(op.reshape(seen, (count, heads * features)))

"""Attention to keys and values in pages, which are read where they are, and rotary position embeddings.

A step writes the keys and values of new tokens into the pages of their sequence and attends to all positions so far.
Heads of queries that share a head of keys are rows of one GEMM, so that keys are not repeated.

Memory is a pool of pages for `PAGE` positions each; a table says which pages a sequence has, in the order of its
positions. What is appended goes into the pages of its sequence; nothing that is there is copied or moved. Sequences may
share pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from relax_dialect.builder import Expr, op, tensor
from relax_dialect.builder.block_builder import emit_te
from relax_dialect.nn.config import PAGE, CacheFormat, QKNorm, RopeScaling, pool_shapes
from relax_dialect.nn.module import (
    HeadLayerNorm,
    LayerNorm,
    Linear,
    Module,
    Parameter,
    RMSNorm,
    current_builder,
    known_shape,
)
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class OneSequence:
    """New tokens of one sequence, after `past` positions of its pages."""

    table: Expr
    """The numbers of its pages, `(pages,)` of `i64`."""
    past: Dim


@dataclass(frozen=True)
class Batch:
    """One new token of each of some sequences."""

    table: Expr
    """The numbers of their pages, `(batch, pages)` of `i64`; after the last page any page may follow."""
    at: Expr
    """The position of each new token in the pages of its sequence, `(batch,)` of `i64`."""


Positions = OneSequence | Batch
"""Where new tokens are in their sequences."""


def pool_types(heads: int, features: int, cache_format: CacheFormat, pages: str = "pool") -> dict[str, TensorType]:
    """The types of the pools of keys and values of a layer, by name; `pages` is the symbol of their number."""
    layout = pool_shapes(heads, features, cache_format)
    return {name: tensor((pages, *shape), dtype) for name, (shape, dtype) in layout.items()}


@dataclass(frozen=True)
class KVCache:
    """The pools of a layer, and where new tokens are in them."""

    keys: tuple[Expr, ...]
    """Numbers, or bytes and their scales."""
    values: tuple[Expr, ...]
    positions: Positions

    @staticmethod
    def of(pools: Sequence[Expr], positions: Positions) -> KVCache:
        """The cache whose pools are in the order of `pool_types`."""
        half = len(pools) // 2
        return KVCache(tuple(pools[:half]), tuple(pools[half:]), positions)

    def appended(self, keys: Expr, values: Expr) -> KVCache:
        """The cache after new keys and values, `(new, heads, features)`, have been written into it."""
        return KVCache(self._append(self.keys, keys), self._append(self.values, values), self.positions)

    def _append(self, pools: Sequence[Expr], new: Expr) -> tuple[Expr, ...]:
        if len(pools) == 1:
            return (self._store(pools[0], new),)
        numbers, scales = pools
        count, heads, features = known_shape(new)
        groups = known_shape(scales)[-1]
        blocks = op.reshape(new, (count, heads, groups, features // groups))
        scale = op.max(op.abs(blocks), axes=[-1]) * (1 / 127)
        steps = op.maximum(scale, current_builder().const(1e-30, "f32"))
        rounded = op.reshape(op.round(blocks / op.expand_dims(steps, axes=[-1])), (count, heads, features))
        return self._store(numbers, rounded.astype("i8")), self._store(scales, scale)

    def _store(self, pool: Expr, new: Expr) -> Expr:
        """Writes `(new, heads, ...)` at the positions of the new tokens, in place."""
        sizes, dtype = known_shape(new), str(pool.dtype)
        count = te.var("count") if sizes[0].constant_value is None else sizes[0]
        where, memory = self.positions, known_shape(pool)
        fresh = te.placeholder((count, *sizes[1:]), str(new.dtype), "new")
        table = te.placeholder(
            (count, te.var("pages")) if isinstance(where, Batch) else (te.var("pages"),), "i64", "table"
        )
        inputs = [fresh, table]
        if isinstance(where, Batch):
            inputs.append(te.placeholder((count,), "i64", "at"))

        def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
            axes: list[tuple[Literal["spatial"], Dim, str]] = [
                ("spatial", size, name) for size, name in zip(fresh.shape, "ihd", strict=False)
            ]
            with b.block("append", *axes) as (i, *rest):
                position = ins[2][i] if isinstance(where, Batch) else i + te.var("past")
                page = ins[1][i, position // PAGE] if isinstance(where, Batch) else ins[1][position // PAGE]
                stored = ins[0][(i, *rest)]
                cast = stored if str(new.dtype) == dtype else te.cast(stored, dtype)
                b.store(outs[0], (page, rest[0], position % PAGE, *rest[1:]), cast)

        (written,) = te.extern([((te.var("pool"), *memory[1:]), dtype)], inputs, body, name="pages")
        func = te.create_prim_func([*inputs, written], name="append")
        sizes_given = {} if isinstance(where, Batch) else {"past": where.past}
        given = [new, where.table, *([where.at] if isinstance(where, Batch) else ()), pool]
        found = current_builder().call_tir_inplace(func, given, [len(given) - 1], [pool.type], sizes_given)
        return found[0]


class RotaryEmbedding(Module):
    """Rotation of pairs of features by angles that grow with the position (Su et al., 2021).

    Pairs are the halves of a head, or features side by side if it is `interleaved`, as in GGUF files of Llama. If only
    the first `rotated` features are, the others stay as they are.
    """

    def __init__(
        self,
        features: int,
        base: float = 10000.0,
        *,
        interleaved: bool = False,
        scale: float = 1.0,
        scaling: RopeScaling | None = None,
        rotated: int | None = None,
    ):
        self._features, self._rotated_features = features, features if rotated is None else rotated
        if not 0 < self._rotated_features <= features or self._rotated_features % 2:
            raise ValueError(f"expected an even number of at most {features} rotated features, got {rotated}")
        self._interleaved = interleaved
        self._magnitude = 1.0 if scaling is None else scaling.magnitude
        self._frequencies = scale * frequencies(self._rotated_features, base, scaling)

    @property
    def pairs(self) -> int:
        """The number of angles at a position."""
        return self._rotated_features // 2

    def angles(self, positions: Expr) -> tuple[Expr, Expr]:
        """Cosine and sine at positions, `(new,)` of `i64`: `(new, 1, pairs)`, times the magnitude of scaled ones."""
        steps = current_builder().const(self._frequencies.astype(np.float32))
        angle = op.reshape(positions.astype("f32"), (known_shape(positions)[0], 1, 1)) * steps
        cos, sin = op.cos(angle), op.sin(angle)
        return (cos, sin) if self._magnitude == 1 else (cos * self._magnitude, sin * self._magnitude)

    def forward(self, x: Expr, cos: Expr, sin: Expr) -> Expr:
        """`(new, heads, features)` rotated."""
        rotated = emit_te(current_builder(), self._rotated, [x, cos, sin], {}, "rotate")
        assert isinstance(rotated, Expr)  # one tensor
        return rotated

    def _rotated(self, x: te.Tensor, cos: te.Tensor, sin: te.Tensor) -> te.Tensor:
        size, half = self._rotated_features, self._rotated_features // 2

        def element(i: te.Expr, h: te.Expr, d: te.Expr) -> te.Expr:
            first, pair = (d % 2 == 0, d // 2) if self._interleaved else (d < half, d % half)
            step = 1 if self._interleaved else half
            partner = te.select(first, d + step, d - step)
            turned = te.select(first, -x[i, h, partner], x[i, h, partner])
            return x[i, h, d] * cos[i, 0, pair] + turned * sin[i, 0, pair]

        def kept(i: te.Expr, h: te.Expr, d: te.Expr) -> te.Expr:
            # The angles of features that stay would be out of bounds.
            return te.if_then_else(d < size, element(i, h, d), x[i, h, d])

        return te.compute(x.shape, element if size == self._features else kept, name="rotate")


def frequencies(features: int, base: float, scaling: RopeScaling | None = None) -> NDArray[Any]:
    """By which angle each pair of features is rotated from one position to the next; `f64`, `features / 2` of them."""
    half = features // 2
    plain = base ** (-np.arange(half) / half)
    return plain if scaling is None else plain / scaling.divisors(plain, base)


@dataclass(frozen=True)
class Scoring:
    """How much a query attends to a key."""

    scale: float
    """What the dot product is multiplied by."""
    window: int | None = None
    """How many positions a token sees, itself included; all before it unless said."""
    softcap: float | None = None
    """Between which numbers scores are, if they are bounded."""


def attended(queries: Expr, cache: KVCache, scoring: Scoring, sinks: Expr | None = None) -> Expr:
    """The mean of the values that each query sees; queries are `(new, heads of keys, queries of each, features)`.

    `sinks`, `(heads of keys, queries of each)`, are scores that each query sees besides, whose values are 0.
    """
    positions = cache.positions

    def attend(
        q: te.Tensor, keys: list[te.Tensor], values: list[te.Tensor], sinks: list[te.Tensor], *tables: te.Tensor
    ) -> te.Tensor:
        past = positions.past if isinstance(positions, OneSequence) else None
        return _Attended(q, keys, values, tables, past, scoring, sinks[0] if sinks else None).means()

    tables = [positions.table, *([positions.at] if isinstance(positions, Batch) else ())]
    arguments = [queries, list(cache.keys), list(cache.values), [] if sinks is None else [sinks], *tables]
    found = emit_te(current_builder(), attend, arguments, {}, "paged_attention")
    assert isinstance(found, Expr)  # one tensor
    return found


class _Attended:
    """The stages of attention.

    Rows of scores are `(head, group, new token)` for one sequence, whose tokens share its keys, and `(new token, head,
    group)` for a batch.
    """

    def __init__(
        self,
        q: te.Tensor,
        keys: Sequence[te.Tensor],
        values: Sequence[te.Tensor],
        tables: Sequence[te.Tensor],
        past: Dim | None,
        scoring: Scoring,
        sinks: te.Tensor | None,
    ):
        """`past` is that of one sequence; for a batch the second of the tables has the positions of new tokens."""
        self._q, self._keys, self._values, self._tables, self._sinks = q, keys, values, tables, sinks
        self._past, self._scoring = past, scoring

    def _arranged(self, new: te.Expr, head: te.Expr, group: te.Expr) -> tuple[te.Expr, ...]:
        return (new, head, group) if self._past is None else (head, group, new)

    def _parts(self, row: Sequence[te.Expr]) -> tuple[te.Expr, te.Expr, te.Expr]:
        """New token, head and group of a row."""
        return (row[0], row[1], row[2]) if self._past is None else (row[2], row[0], row[1])

    def _stored(self, pools: Sequence[te.Tensor], row: Sequence[te.Expr], at: te.Expr, feature: te.Expr) -> te.Expr:
        """A number of a key or a value that a row sees."""
        new, head, _ = self._parts(row)
        page = self._tables[0][new, at // PAGE] if self._past is None else self._tables[0][at // PAGE]
        number = pools[0][page, head, at % PAGE, feature]
        if len(pools) == 2:
            size = pools[0].shape[-1] // pools[1].shape[-1]
            scale = pools[1][page, head, at % PAGE, feature // size]
            return te.cast(number, "f32") * te.cast(scale, "f32")
        return number if str(number.dtype) == "f32" else te.cast(number, "f32")

    def _sees(self, row: Sequence[te.Expr], at: te.Expr) -> te.Expr:
        new, window = self._parts(row)[0], self._scoring.window
        last = self._tables[1][new] if self._past is None else new + self._past
        at = te.cast(at, "i64") if self._past is None else at
        return at <= last if window is None else te.logical_and(at <= last, at > last - window)

    def _scaled(self, product: te.Expr) -> te.Expr:
        scaled = product * te.const(self._scoring.scale, "f32")
        if self._scoring.softcap is None:
            return scaled
        cap = te.const(self._scoring.softcap, "f32")
        return te.tanh(scaled / cap) * cap

    def means(self) -> te.Tensor:
        """The mean of the values that each query sees."""
        count, heads, group, features = self._q.shape
        rows = (count, heads, group) if self._past is None else (heads, group, count)
        total = self._tables[0].shape[1] * PAGE if self._past is None else self._past + count
        c = te.reduce_axis(features, "c")
        r, t, s = (te.reduce_axis(total, name) for name in ("r", "t", "s"))

        def product(*i: te.Expr) -> te.Expr:
            new, head, member = self._parts(i)
            return te.sum(self._q[new, head, member, c] * self._stored(self._keys, i, i[3], c), c)

        def power(*i: te.Expr) -> te.Expr:
            return te.select(self._sees(i, i[3]), te.exp(scores[i] - top[i[:3]]), te.const(0.0, "f32"))

        def share(*i: te.Expr) -> te.Expr:
            total = sums[i]
            if self._sinks is not None:
                _, head, member = self._parts(i)
                total = total + te.exp(self._sinks[head, member] - top[i])
            return te.const(1.0, "f32") / total

        def weighted(i: te.Expr, h: te.Expr, g: te.Expr, d: te.Expr) -> te.Expr:
            row = self._arranged(i, h, g)
            share = powers[(*row, s)]
            # What is not seen has the share 0, but 0 times an infinite value is NaN.
            product = share * self._stored(self._values, row, s, d)
            return te.sum(te.select(share == 0, te.const(0.0, "f32"), product), s)

        products = te.compute((*rows, total), product, name="products")
        scores = te.compute((*rows, total), lambda *i: self._scaled(products[i]), name="scores")
        top = te.compute(rows, lambda *i: te.max(scores[(*i, r)], r, where=self._sees(i, r)), name="top")
        powers = te.compute((*rows, total), power, name="powers")
        sums = te.compute(rows, lambda *i: te.sum(powers[(*i, t)], t), name="sums")
        # Before the sums of values, so that a kernel goes once through a row.
        shares = te.compute(rows, share, name="shares")
        totals = te.compute((count, heads, group, features), weighted, name="totals")

        def mean(i: te.Expr, h: te.Expr, g: te.Expr, d: te.Expr) -> te.Expr:
            return shares[self._arranged(i, h, g)] * totals[i, h, g, d]

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
        qk_norm: QKNorm = "none",
        norm_epsilon: float = 1e-5,
        clip: float | None = None,
        window: int | None = None,
        scale: float | None = None,
        softcap: float | None = None,
        sinks: bool = False,
    ):
        """Biases are those of queries, keys and values, and of the output.

        `qk_norm` is the norm of queries and keys, if there is one. With `clip` they and values are at most so far from
        0. With a `window` a token sees so many positions, itself included. With a `softcap` scores are
        `softcap * tanh(score / softcap)`. With `sinks` each head sees a score of its own besides, whose value is 0.
        """
        if heads % kv_heads:
            raise ValueError(f"expected heads in multiples of {kv_heads}, got {heads}")
        self.q_proj = Linear(hidden, heads * features, bias=bias)
        self.k_proj, self.v_proj = (Linear(hidden, kv_heads * features, bias=bias) for _ in range(2))
        self.o_proj = Linear(heads * features, hidden, bias=output_bias)
        if qk_norm != "none":
            self.q_norm, self.k_norm = (_qk_norm(qk_norm, count, features, norm_epsilon) for count in (heads, kv_heads))
        if sinks:
            self.sinks = Parameter((heads,))
        self._has_sinks = sinks
        self._qk_norm: QKNorm = qk_norm
        self._clip = clip
        self._sizes = heads, kv_heads, features
        self._rope = rope
        self._scoring = Scoring(features**-0.5 if scale is None else scale, window, softcap)

    def forward(self, x: Expr, cache: KVCache, angles: tuple[Expr, ...] = ()) -> Expr:
        """`(new, hidden)`; the cache is written. `angles` are cosine and sine of the new positions, if it rotates."""
        heads, kv_heads, features = self._sizes
        count = known_shape(x)[0]
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self._qk_norm == "all":
            q, k = self.q_norm(q), self.k_norm(k)
        if self._clip is not None:
            q, k, v = (op.clip(each, -self._clip, self._clip) for each in (q, k, v))
        q = op.reshape(q, (count, heads, features))
        k, v = (op.reshape(each, (count, kv_heads, features)) for each in (k, v))
        if self._qk_norm not in ("none", "all"):
            q, k = self.q_norm(q), self.k_norm(k)
        if self._rope is not None:
            q, k = self._rope(q, *angles), self._rope(k, *angles)
        filled = cache.appended(k, v)
        grouped = op.reshape(q, (count, kv_heads, heads // kv_heads, features))
        sinks = op.reshape(self.sinks.value(), (kv_heads, heads // kv_heads)) if self._has_sinks else None
        seen = attended(grouped, filled, self._scoring, sinks)
        return self.o_proj(op.reshape(seen, (count, heads * features)))


def _qk_norm(kind: QKNorm, heads: int, features: int, epsilon: float) -> RMSNorm | LayerNorm | HeadLayerNorm:
    """The norm of queries or of keys."""
    match kind:
        case "head layer norm":
            return LayerNorm(features, epsilon)
        case "layer norm of each head":
            return HeadLayerNorm(heads, features, epsilon)
        case _:
            return RMSNorm(heads * features if kind == "all" else features, epsilon)

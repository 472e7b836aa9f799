"""Keys and values of a layer in pages, which are written in place.

Memory is a pool of pages for `PAGE` positions each; a table says which pages a sequence has, in the order of its
positions. What is appended goes into the pages of its sequence; nothing that is there is copied or moved. Sequences may
share pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from relax_dialect.builder import Expr, op, tensor
from relax_dialect.nn.config import PAGE, CacheFormat, pool_shapes
from relax_dialect.nn.module import current_builder, known_shape
from relax_dialect.struct_info.types import TensorType
from tir_dialect import te
from tir_dialect.dims import Dim


@dataclass(frozen=True)
class OneSequence:
    """New tokens of one sequence, after `past` positions of its pages."""

    table: Expr
    """The numbers of its pages, `(pages,)` of `i64`."""
    past: Dim


@dataclass(frozen=True)
class Batch:
    """One new token of each of some sequences. What their pages hold after it must be finite: it is multiplied by 0."""

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
        scale = op.max(op.abs(new), axes=[-1]) * (1 / 127)
        steps = op.maximum(scale, current_builder().const(1e-30, "f32"))
        rounded = op.round(new / op.expand_dims(steps, axes=[-1]))
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

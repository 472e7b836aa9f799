"""The program of a decoder: functions for one sequence and for a batch, with a cache in pages.

Equal layers are one function, so that a model takes as long to compile as one of its layers.

| function | gives |
|---|---|
| `main(ids, past, table, [past, table of windows,] pools ...)` | the logits after the last of some new tokens |
| `every(...)` | those after each of them |
| `step(ids, positions, table, [positions, table of windows,] pools ...)` | those after one new token of each sequence |
| `main_token`, `step_token` | the tokens chosen from these logits, given the parameters of `choose` before the pools |
| `every_token` | the likeliest tokens |
| `choose(logits, numbers, counts, before)` | tokens chosen from logits |

Layers that see a window have pages of their own, of which those before the window may be left out: their table begins
with the first page that is there, and their positions are counted from it. The program does not depend on how many
pages there are, nor on how many of them a sequence may have.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp, i64

from relax_dialect.builder import BlockBuilder, Expr, op, tensor
from relax_dialect.builder.types import InfoLike
from relax_dialect.nn.choosing import choose, choosing_types
from relax_dialect.nn.config import CacheFormat
from relax_dialect.nn.decoder import Decoder, DecoderLayer
from relax_dialect.nn.module import Functions, Module, known_shape
from relax_dialect.nn.paged_cache import Batch, KVCache, OneSequence, Positions, pool_types
from relax_dialect.struct_info.types import PrimType, TensorType
from tir_dialect.dims import symbol

FUNCTIONS = ("main", "every", "step", "main_token", "every_token", "step_token", "choose")


class _CachedLayer(Module):
    """A layer whose cache is in pools and tables."""

    def __init__(self, layer: DecoderLayer, is_batch: bool):
        self.layer, self._is_batch = layer, is_batch

    @override
    def variant(self) -> Hashable:
        return self.layer.variant(), self._is_batch

    def forward(self, x: Expr, past: Expr, table: Expr, *rest: Expr) -> Expr:
        """`(new, hidden)`: of positions, the pools, then the angles."""
        positions: Positions = Batch(table, past) if self._is_batch else OneSequence(table, past.dim)
        count = len(rest) - (2 if self.layer.rope is not None else 0)
        return self.layer(x, KVCache.of(rest[:count], positions), *rest[count:])


@dataclass(frozen=True)
class DecoderProgram:
    """The functions of a decoder."""

    decoder: Decoder
    cache_format: CacheFormat = "f32"
    functions: Sequence[str] = FUNCTIONS

    @property
    def has_windows(self) -> bool:
        """Whether some layers have pages of their own, of which those before their window are left out."""
        return any(layer.window is not None for layer in self.decoder.layers)

    def module(self) -> ModuleOp:
        """The module."""
        builder = BlockBuilder()
        self.decoder.name_parameters()
        functions = Functions(builder)
        for is_batch in (False, True):
            names = [name for name in self.functions if name.startswith("step") is is_batch and name != "choose"]
            if names:
                layers = [_CachedLayer(layer, is_batch) for layer in self.decoder.layers]
                self._define_layers(functions, layers, is_batch)
                hidden, params = self._define_hidden(builder, functions, layers, is_batch)
                for name in names:
                    self._define(builder, name, hidden, params)
        if "choose" in self.functions:
            logits = tensor(("batch", self.decoder.config.vocab_size))
            with builder.function("choose", {"logits": logits, **choosing_types()}) as function:
                builder.emit_func_output(choose(*function.params))
        return builder.get()

    def pools(self, layer: DecoderLayer | None = None) -> dict[str, TensorType]:
        """The types of the pools of a layer."""
        config = self.decoder.config
        pages = "pool" if layer is None or layer.window is None else "pool_of_windows"
        return pool_types(config.num_key_value_heads, config.head_dim, self.cache_format, pages)

    def _positions(self, is_batch: bool, suffix: str = "") -> dict[str, InfoLike]:
        """The types of positions and table, of all layers or of those with a window."""
        if is_batch:
            return {
                f"positions{suffix}": tensor(("batch",), "i64"),
                f"table{suffix}": tensor(("batch", f"pages{suffix}"), "i64"),
            }
        return {
            f"past{suffix}": PrimType(i64, symbol(f"past{suffix}")),
            f"table{suffix}": tensor((f"pages{suffix}",), "i64"),
        }

    def _define_layers(self, functions: Functions, layers: Sequence[_CachedLayer], is_batch: bool) -> None:
        count = "batch" if is_batch else "new"
        for layer in layers:
            rope = layer.layer.rope
            angles: dict[str, InfoLike] = (
                {} if rope is None else dict.fromkeys(("cos", "sin"), tensor((count, 1, rope.pairs)))
            )
            inputs: dict[str, InfoLike] = {"x": tensor((count, self.decoder.config.hidden_size))}
            name = "layer_of_batch" if is_batch else "layer"
            functions.define(layer, {**inputs, **self._positions(is_batch), **self.pools(), **angles}, name, pure=False)

    def _define_hidden(
        self, builder: BlockBuilder, functions: Functions, layers: Sequence[_CachedLayer], is_batch: bool
    ) -> tuple[str, dict[str, InfoLike]]:
        """Adds the function of all layers, to which the public ones add a head; its name and its parameters."""
        params: dict[str, InfoLike] = {"ids": tensor(("batch" if is_batch else "new",), "i64")}
        params |= self._positions(is_batch)
        if self.has_windows:
            params |= self._positions(is_batch, "_of_windows")
        first = len(params)
        for number, layer in enumerate(layers):
            params |= {f"{kind}{number}": info for kind, info in self.pools(layer.layer).items()}
        size = len(self.pools())
        name = builder.get_unique_name("hidden_of_batch" if is_batch else "hidden")
        with builder.function(name, params, private=True, pure=False) as function:
            ids, where, table = function.params[:3]
            local, memory = function.params[first - 2 : first], function.params[first:]

            def apply(number: int, layer: DecoderLayer, x: Expr, *angles: Expr) -> Expr:
                positions = [where, table] if layer.window is None else local
                return functions.call(
                    layers[number], x, *positions, *memory[number * size : (number + 1) * size], *angles
                )

            count = known_shape(ids)[0]
            positions = where if is_batch else op.arange(where.dim, where.dim + count, 1, dtype="i64")
            builder.emit_func_output(self.decoder.hidden(ids, positions, apply))
        return name, params

    def _define(self, builder: BlockBuilder, name: str, hidden: str, params: dict[str, InfoLike]) -> None:
        """Adds a public function."""
        kind, _, chooses = name.partition("_")
        before = 5 if self.has_windows else 3
        choosing = choosing_types("batch" if kind == "step" else 1) if chooses and kind != "every" else {}
        own = [*params.items()]
        with builder.function(name, dict([*own[:before], *choosing.items(), *own[before:]]), pure=False) as function:
            given = function.params[before : before + len(choosing)]
            x = builder.call(hidden, *function.params[:before], *function.params[before + len(choosing) :])
            found = self.decoder.logits(x[known_shape(x)[0] - 1 :] if kind == "main" else x)
            if given:
                found = choose(found, *given)
            elif chooses:
                found = op.argmax(found, axis=-1)
            builder.emit_func_output(found)

"""Decoders of language models: the layers that a `DecoderConfig` describes, and the program of functions for one
sequence and for a batch, with a cache in pages.

Equal layers are one function, so that a model takes as long to compile as one of its layers.

| function | gives | |---|---| | `main(ids, past, table, [past, table of windows,] pools ...)` | the logits after the
last of some new tokens | | `every(...)` | those after each of them | | `step(ids, positions, table, [positions, table
of windows,] pools ...)` | those after one new token of each sequence | | `main_token`, `step_token` | the tokens chosen
from these logits, given the parameters of `choose` before the pools | | `every_token` | the likeliest tokens | |
`choose(logits, numbers, counts, before)` | tokens chosen from logits |

Layers that see a window have pages of their own, of which those before the window may be left out: their table begins
with the first page that is there, and their positions are counted from it. The program does not depend on how many
pages there are, nor on how many of them a sequence may have.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp, i64

from relax_dialect.builder import BlockBuilder, Expr, op, tensor
from relax_dialect.builder.emitter import InfoLike
from relax_dialect.nn.attention import Attention, Batch, KVCache, OneSequence, Positions, RotaryEmbedding, pool_types
from relax_dialect.nn.choosing import choose, choosing_types
from relax_dialect.nn.config import CacheFormat, DecoderConfig, Norms, RopeScaling
from relax_dialect.nn.experts import MixtureOfExperts
from relax_dialect.nn.module import (
    ACTIVATIONS,
    MLP,
    Embedding,
    Functions,
    GatedMLP,
    LayerNorm,
    Linear,
    Module,
    ModuleList,
    RMSNorm,
    StateError,
    known_shape,
)
from relax_dialect.struct_info.types import PrimType, TensorType
from tir_dialect.dims import symbol

if TYPE_CHECKING:
    from relax_dialect.nn.module import Elements


def _norm(config: DecoderConfig) -> RMSNorm | LayerNorm:
    """A norm of the hidden features."""
    return (LayerNorm if config.layer_norm else RMSNorm)(config.hidden_size, config.rms_norm_eps)


def _feed_forward(config: DecoderConfig, layer: int) -> MLP | GatedMLP | MixtureOfExperts:
    """The feed-forward layer of a layer."""
    hidden, activation = config.hidden_size, ACTIVATIONS[config.hidden_act]
    if config.experts is not None and layer not in config.dense_layers:
        return MixtureOfExperts(hidden, config.experts, activation)
    return (GatedMLP if config.gated_mlp else MLP)(hidden, config.intermediate_size, activation, bias=config.mlp_bias)


class DecoderLayer(Module):
    """Attention and feed-forward, normalised and added to their inputs."""

    def __init__(self, config: DecoderConfig, number: int, rope: RotaryEmbedding | None):
        if config.norms != "after":
            self.input_layernorm = _norm(config)
        self.self_attn = Attention(
            config.hidden_size,
            config.num_attention_heads,
            config.num_key_value_heads,
            config.head_dim,
            rope,
            bias=config.attention_bias,
            output_bias=config.output_bias,
            qk_norm=config.qk_norm,
            norm_epsilon=config.rms_norm_eps,
            clip=config.clip_qkv,
            window=config.window(number),
            scale=config.attention_scale,
            softcap=config.attn_logit_softcapping,
            sinks=config.attention_sinks,
        )
        if config.norms not in ("parallel", "parallel apart"):
            self.post_attention_layernorm = _norm(config)
        if config.norms in ("both", "parallel apart"):
            self.pre_feedforward_layernorm = _norm(config)
        if config.norms in ("after", "both"):
            self.post_feedforward_layernorm = _norm(config)
        self.mlp = _feed_forward(config, number)
        self._norms: Norms = config.norms
        self._residual_scale = config.residual_scale
        self.rope = rope
        self.window = config.window(number)
        """How many positions it sees, if not all."""

    @override
    def variant(self) -> Hashable:
        return self.window, self.rope

    def forward(self, x: Expr, cache: KVCache, *angles: Expr) -> Expr:
        """`(new, hidden)`; the cache is written. `angles` are cosine and sine, if it rotates."""

        def attend(y: Expr) -> Expr:
            return self.self_attn(y, cache, angles)

        match self._norms:
            case "before":
                x = self._added(x, attend(self.input_layernorm(x)))
                return self._added(x, self.mlp(self.post_attention_layernorm(x)))
            case "after":
                x = self._added(x, self.post_attention_layernorm(attend(x)))
                return self._added(x, self.post_feedforward_layernorm(self.mlp(x)))
            case "both":
                x = self._added(x, self.post_attention_layernorm(attend(self.input_layernorm(x))))
                fed = self.mlp(self.pre_feedforward_layernorm(x))
                return self._added(x, self.post_feedforward_layernorm(fed))
            case "parallel":
                y = self.input_layernorm(x)
                return self._added(self._added(x, attend(y)), self.mlp(y))
            case "parallel apart":
                y = self.mlp(self.pre_feedforward_layernorm(x))
                return self._added(self._added(x, attend(self.input_layernorm(x))), y)

    def _added(self, x: Expr, y: Expr) -> Expr:
        return x + _scaled(y, self._residual_scale)


def _scaled(x: Expr, scale: float) -> Expr:
    return x if scale == 1 else x * scale


class Decoder(Module):
    """A language model."""

    def __init__(self, config: DecoderConfig):
        self.config = config
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size)
        if config.rope_theta is None:
            self.embed_positions = Embedding(config.max_position_embeddings, config.hidden_size)
        ropes = _ropes(config)
        self.layers = ModuleList(DecoderLayer(config, number, rope) for number, rope in enumerate(ropes))
        self.norm = _norm(config)
        if not config.tie_word_embeddings:
            self.lm_head = Linear(config.hidden_size, config.vocab_size, bias=config.head_bias)

    def forward(self, ids: Expr, positions: Expr, caches: Sequence[KVCache]) -> Expr:
        """The logits of the token that follows each one, `(new, vocabulary)`; the caches are written."""

        def apply(number: int, layer: DecoderLayer, x: Expr, *angles: Expr) -> Expr:
            return layer(x, caches[number], *angles)

        return self.logits(self.hidden(ids, positions, apply))

    def hidden(self, ids: Expr, positions: Expr, apply: Callable[..., Expr]) -> Expr:
        """What the last layer gives; `apply` calls a layer, given its number too, with its input and angles."""
        x = _scaled(self.embed_tokens(ids), self.config.embedding_scale)
        if self.config.rope_theta is None:
            x = x + self.embed_positions(positions)
        angles: dict[RotaryEmbedding | None, tuple[Expr, ...]] = {None: ()}
        for number, layer in enumerate(self.layers):
            if layer.rope is not None and layer.rope not in angles:
                angles[layer.rope] = layer.rope.angles(positions)
            x = apply(number, layer, x, *angles[layer.rope])
        return x

    def logits(self, x: Expr) -> Expr:
        """The logits of some tokens."""
        x = self.norm(x)
        x = self.embed_tokens.logits(x) if self.config.tie_word_embeddings else self.lm_head(x)
        x, cap = _scaled(x, self.config.logit_scale), self.config.final_logit_softcapping
        return x if cap is None else op.tanh(x * (1 / cap)) * cap


def _ropes(config: DecoderConfig) -> list[RotaryEmbedding | None]:
    """The rotary embedding of each layer; layers with equal ones have the same."""
    if config.rope_theta is None:
        return [None] * config.num_hidden_layers

    def rope(base: float, scaling: RopeScaling | None) -> RotaryEmbedding:
        return RotaryEmbedding(
            config.head_dim,
            base,
            interleaved=config.interleaved_rope,
            scaling=scaling,
            rotated=config.rotary_features,
        )

    everywhere = rope(config.rope_theta, config.rope_scaling)
    local = everywhere if config.local_rope_theta is None else rope(config.local_rope_theta, None)
    return [
        None if number in config.unrotated_layers else everywhere if config.window(number) is None else local
        for number in range(config.num_hidden_layers)
    ]


def split_fused(state: Mapping[str, Elements], config: DecoderConfig) -> dict[str, Elements]:
    """A state whose fused projections are split: `self_attn.qkv_proj` and `gate_up_proj`, by their rows."""
    features, experts = config.head_dim, config.experts
    queries, keys = config.num_attention_heads * features, config.num_key_value_heads * features
    inner = {"mlp.gate_up_proj": config.intermediate_size}
    if experts is not None:
        inner["mlp.experts.gate_up_proj"] = experts.moe_intermediate_size
        inner["mlp.shared_expert.gate_up_proj"] = experts.shared_expert_intermediate_size
    fused = {"self_attn.qkv_proj": (("q_proj", queries), ("k_proj", keys), ("v_proj", keys))} | {
        name: (("gate_proj", size), ("up_proj", size)) for name, size in inner.items()
    }
    found: dict[str, Elements] = {}
    for name, elements in state.items():
        owner, _, kind = name.rpartition(".")
        parts = next((parts for each, parts in fused.items() if owner.endswith(each)), None)
        if parts is None:
            found[name] = elements
            continue
        if kind == "input_order":
            found |= {f"{owner.rpartition('.')[0]}.{part}.{kind}": elements for part, _ in parts}
            continue
        rows, axis = sum(size for _, size in parts), int("experts." in owner)
        if elements.shape[axis : axis + 1] != (rows,):
            raise StateError(f"'{name}' expected {rows} rows, got the shape {list(elements.shape)}")
        first = 0
        for part, size in parts:
            here = (slice(None),) * axis + (slice(first, first + size),)
            found[f"{owner.rpartition('.')[0]}.{part}.{kind}"] = elements[here]
            first += size
    return found


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

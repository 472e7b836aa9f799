"""Decoders of the Llama family: the modules, and the program with a cache that is written in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, i64

from relax_dialect.builder import BlockBuilder, Expr, tensor
from relax_dialect.builder.types import InfoLike
from relax_dialect.nn.attention import Attention, KVCache, RotaryEmbedding
from relax_dialect.nn.layers import Embedding, GatedMLP, Linear, RMSNorm
from relax_dialect.nn.module import Functions, Module, ModuleList, known_shape
from relax_dialect.struct_info.types import PrimType
from tir_dialect.dims import symbol


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of a decoder; names are those of Hugging Face's `config.json`."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    interleaved_rope: bool = False
    """Whether features side by side are rotated together, and not those of both halves."""
    attention_bias: bool = False
    """Whether queries, keys and values have biases."""
    qk_norm: bool = False
    """Whether each head of queries and keys is normalised."""
    tie_word_embeddings: bool = False
    """Whether the output head is the table of the embedding."""


class DecoderLayer(Module):
    """Attention and feed-forward, each after a norm and added to its input."""

    def __init__(self, config: DecoderConfig, rope: RotaryEmbedding):
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(
            config.hidden_size,
            config.num_attention_heads,
            config.num_key_value_heads,
            config.head_dim,
            rope,
            bias=config.attention_bias,
            norm_epsilon=config.rms_norm_eps if config.qk_norm else None,
        )
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = GatedMLP(config.hidden_size, config.intermediate_size)

    def forward(self, x: Expr, keys: Expr, values: Expr, past: Expr, cos: Expr, sin: Expr) -> Expr:
        """`(new, hidden)`; the cache is written."""
        cache = KVCache(keys, values, past.dim)
        x = x + self.self_attn(self.input_layernorm(x), cache, (cos, sin))
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(Module):
    """A language model of the Llama family."""

    def __init__(self, config: DecoderConfig):
        self.config = config
        self._rope = RotaryEmbedding(config.head_dim, config.rope_theta, interleaved=config.interleaved_rope)
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size)
        self.layers = ModuleList(DecoderLayer(config, self._rope) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        if not config.tie_word_embeddings:
            self.lm_head = Linear(config.hidden_size, config.vocab_size)

    def forward(self, ids: Expr, past: Expr, *caches: Expr) -> Expr:
        """The logits of the token that follows each one, `(new, vocabulary)`; the caches are written."""
        return self.logits(self.hidden(ids, past, caches, DecoderLayer.forward))

    def hidden(self, ids: Expr, past: Expr, caches: Sequence[Expr], apply: Callable[..., Expr]) -> Expr:
        """What the last layer gives; `apply` calls a layer with its inputs."""
        x = self.embed_tokens(ids)
        angles = self._rope.angles(past.dim, known_shape(ids)[0])
        for number, layer in enumerate(self.layers):
            x = apply(layer, x, caches[2 * number], caches[2 * number + 1], past, *angles)
        return x

    def logits(self, x: Expr) -> Expr:
        """The logits of some tokens."""
        x = self.norm(x)
        return self.embed_tokens.logits(x) if self.config.tie_word_embeddings else self.lm_head(x)

    def program(self, capacity: int, *, every_position: bool = False) -> ModuleOp:
        """`main(ids, past, keys0, values0, ...)` for one sequence of at most `capacity` tokens.

        `ids` are the new tokens, `i64`, any number of them; `past` is how many there were. Keys and values are written
        into their tensors, `f32` of shape (heads of keys, capacity, features of a head). The result are the logits of
        the next token, `(1, vocabulary)`, or with `every_position` those after each new one.
        """
        config, builder = self.config, BlockBuilder()
        self.name_parameters()
        cache = KVCache.type(config.num_key_value_heads, capacity, config.head_dim)
        past = PrimType(i64, symbol("past"))
        angle = tensor(("new", 1, config.head_dim // 2))
        inputs: dict[str, InfoLike] = {
            "x": tensor(("new", config.hidden_size)),
            "keys": cache,
            "values": cache,
            "past": past,
            "cos": angle,
            "sin": angle,
        }
        functions = Functions(builder)
        for layer in self.layers:
            functions.define(layer, inputs, "layer", pure=False)
        caches = [f"{kind}{layer}" for layer in range(config.num_hidden_layers) for kind in ("keys", "values")]
        params = {"ids": tensor(("new",), "i64"), "past": past, **dict.fromkeys(caches, cache)}
        with builder.function("main", params, pure=False) as function:
            ids, filled, *memory = function.params
            x = self.hidden(ids, filled, memory, functions.call)
            builder.emit_func_output(self.logits(x if every_position else x[known_shape(x)[0] - 1 :]))
        return builder.get()

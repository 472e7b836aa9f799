"""Llama-style decoders: RMSNorm, rotary embeddings, SwiGLU, grouped-query attention, a cache of keys and values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from relax_dialect.builder import BlockBuilder, Expr, op, tensor
from tir_dialect.dims import Dim


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of a decoder; names are those of Hugging Face's `config.json`."""

    hidden_size: int = 1024
    num_hidden_layers: int = 2
    num_attention_heads: int = 16
    num_key_value_heads: int = 4
    intermediate_size: int = 2816
    vocab_size: int = 32000
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_attention_heads


Weights = Mapping[str, np.ndarray]
"""Arrays by the names of the checkpoint: `model.layers.0.self_attn.q_proj.weight`."""

Cache = tuple[Expr, Expr]
"""Keys and values of a layer, each (batch, past, key-value heads, head size)."""


class LlamaDecoder:
    """Emits a decoder into a builder, with its weights as constants."""

    def __init__(self, bb: BlockBuilder, config: LlamaConfig, weights: Weights):
        self.bb = bb
        self.config = config
        self.weights = weights

    def linear(self, x: Expr, name: str) -> Expr:
        """Checkpoints keep matrices as (outputs, inputs)."""
        array = np.ascontiguousarray(self.weights[f"{name}.weight"].T)
        return x @ self.bb.const(array, name=f"{name}.weight")

    def norm(self, x: Expr, name: str) -> Expr:
        gamma = self.bb.const(self.weights[f"{name}.weight"], name=f"{name}.weight")
        return op.nn.rms_norm(x, gamma, axes=[-1], epsilon=self.config.rms_norm_eps)

    def angles(self, past: Dim, length: Dim) -> tuple[Expr, Expr]:
        """Cosine and sine of position times frequency, (1, length, 1, head size / 2)."""
        half = self.config.head_size // 2
        frequencies = self.config.rope_theta ** (-np.arange(half) / half)
        positions = op.arange(past, past + length, 1, dtype="i64").astype("f32")
        angle = op.reshape(positions, (length, 1)) * self.bb.const(frequencies.astype(np.float32))
        shape = (1, length, 1, half)
        return op.reshape(op.cos(angle), shape), op.reshape(op.sin(angle), shape)

    def rotate(self, x: Expr, angles: tuple[Expr, Expr]) -> Expr:
        """Rotary position embedding of both halves of each head (Su et al., 2021)."""
        cos, sin = angles
        first, second = op.split(x, sections=2, axis=-1)
        return op.concat([first * cos - second * sin, second * cos + first * sin], axis=-1)

    def attention(self, x: Expr, cache: Cache, angles: tuple[Expr, Expr], name: str) -> tuple[Expr, Cache]:
        batch, length, hidden = x.shape
        sizes, head = self.config, self.config.head_size
        q = op.reshape(self.linear(x, f"{name}.q_proj"), (batch, length, sizes.num_attention_heads, head))
        k, v = (
            op.reshape(self.linear(x, f"{name}.{part}_proj"), (batch, length, sizes.num_key_value_heads, head))
            for part in "kv"
        )
        keys = op.concat([cache[0], self.rotate(k, angles)], axis=1)
        values = op.concat([cache[1], v], axis=1)
        seen = op.nn.attention(self.rotate(q, angles), keys, values, causal_mask="BottomRight")
        return self.linear(op.reshape(seen, (batch, length, hidden)), f"{name}.o_proj"), (keys, values)

    def feed_forward(self, x: Expr, name: str) -> Expr:
        """SwiGLU (Shazeer, 2020)."""
        gate = op.nn.silu(self.linear(x, f"{name}.gate_proj"))
        return self.linear(gate * self.linear(x, f"{name}.up_proj"), f"{name}.down_proj")

    def decode(self, x: Expr, caches: Sequence[Cache]) -> tuple[Expr, list[Cache]]:
        """All layers; the hidden values after the last norm, and the grown caches."""
        angles = self.angles(caches[0][0].shape[1], x.shape[1])
        grown: list[Cache] = []
        for index, cache in enumerate(caches):
            name = f"model.layers.{index}"
            seen, longer = self.attention(self.norm(x, f"{name}.input_layernorm"), cache, angles, f"{name}.self_attn")
            x = x + seen
            x = x + self.feed_forward(self.norm(x, f"{name}.post_attention_layernorm"), f"{name}.mlp")
            grown.append(longer)
        return self.norm(x, "model.norm"), grown


def decoder(config: LlamaConfig, weights: Weights) -> ModuleOp:
    """`main(ids, keys0, values0, ...)`: the logits of the next token, and the caches with the new tokens.

    `ids` is `i64` of shape (batch, length): a whole prompt with empty caches, then a token at a time. A cache is `f32`
    of shape (batch, past, key-value heads, head size); the logits are `f32` of shape (batch, vocabulary).
    """
    bb = BlockBuilder()
    cache = tensor(("batch", "past", config.num_key_value_heads, config.head_size))
    names = [f"{kind}{index}" for index in range(config.num_hidden_layers) for kind in ("keys", "values")]
    with bb.function("main", {"ids": tensor(("batch", "length"), "i64"), **dict.fromkeys(names, cache)}) as function:
        ids, *flat = function.params
        with bb.dataflow():
            model = LlamaDecoder(bb, config, weights)
            table = bb.const(weights["model.embed_tokens.weight"], name="model.embed_tokens.weight")
            hidden, grown = model.decode(op.take(table, ids, axis=0), list(zip(flat[::2], flat[1::2], strict=True)))
            outputs = [bb.emit_output(model.linear(hidden[:, -1], "lm_head"))]
            outputs += [bb.emit_output(each) for pair in grown for each in pair]
        bb.emit_func_output(op.tuple(*outputs))
    return bb.get()


def random_weights(config: LlamaConfig, seed: int = 0) -> dict[str, np.ndarray]:
    """Weights of the right shapes, with a spread that keeps activations in range."""
    rng = np.random.default_rng(seed)
    hidden, kv = config.hidden_size, config.num_key_value_heads * config.head_size
    shapes = {"model.embed_tokens.weight": (config.vocab_size, hidden), "lm_head.weight": (config.vocab_size, hidden)}
    norms = ["model.norm.weight"]
    for index in range(config.num_hidden_layers):
        name = f"model.layers.{index}"
        for part, outputs in (("q", hidden), ("k", kv), ("v", kv), ("o", hidden)):
            shapes[f"{name}.self_attn.{part}_proj.weight"] = (outputs, hidden)
        for part in ("gate", "up"):
            shapes[f"{name}.mlp.{part}_proj.weight"] = (config.intermediate_size, hidden)
        shapes[f"{name}.mlp.down_proj.weight"] = (hidden, config.intermediate_size)
        norms += [f"{name}.input_layernorm.weight", f"{name}.post_attention_layernorm.weight"]
    weights = {
        name: rng.standard_normal(shape, dtype=np.float32) / math.sqrt(shape[1]) for name, shape in shapes.items()
    }
    return weights | {name: 1 + rng.standard_normal(hidden, dtype=np.float32) / 8 for name in norms}

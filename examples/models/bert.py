"""BERT-like encoders: all-MiniLM-L6-v2, BERT-base."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from relax_dialect.builder import BlockBuilder, Expr, op, tensor

MASKED = -1e9
"""What is added to the score of a key that must not be seen."""


@dataclass(frozen=True)
class BertConfig:
    """Sizes of an encoder; names are those of Hugging Face's `config.json`."""

    hidden_size: int = 384
    num_hidden_layers: int = 6
    num_attention_heads: int = 12
    intermediate_size: int = 1536
    vocab_size: int = 30522
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_attention_heads


Weights = Mapping[str, np.ndarray]
"""Arrays by the names of the checkpoint: `encoder.layer.0.attention.self.query.weight`."""


class BertEncoder:
    """Emits an encoder into a builder, with its weights as constants."""

    def __init__(self, bb: BlockBuilder, config: BertConfig, weights: Weights):
        self.bb = bb
        self.config = config
        self.weights = weights

    def weight(self, name: str, *, transposed: bool = False) -> Expr:
        array = self.weights[name].T if transposed else self.weights[name]
        return self.bb.const(np.ascontiguousarray(array), name=name)

    def linear(self, x: Expr, name: str) -> Expr:
        """Checkpoints keep matrices as (outputs, inputs)."""
        return x @ self.weight(f"{name}.weight", transposed=True) + self.weight(f"{name}.bias")

    def norm(self, x: Expr, name: str) -> Expr:
        gamma, beta = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return op.nn.layer_norm(x, gamma, beta, axes=[-1], epsilon=self.config.layer_norm_eps)

    def embeddings(self, ids: Expr) -> Expr:
        """Sum of the embeddings of words, positions and of the first segment, normalised."""
        _, length = ids.shape
        words = op.take(self.weight("embeddings.word_embeddings.weight"), ids, axis=0)
        positions = op.take(
            self.weight("embeddings.position_embeddings.weight"), op.arange(0, length, 1, dtype="i64"), axis=0
        )
        segment = self.bb.const(self.weights["embeddings.token_type_embeddings.weight"][0])
        return self.norm(words + positions + segment, "embeddings.LayerNorm")

    def attention(self, x: Expr, bias: Expr, name: str) -> Expr:
        batch, length, hidden = x.shape
        heads = (batch, length, self.config.num_attention_heads, self.config.head_size)
        q, k, v = (op.reshape(self.linear(x, f"{name}.self.{part}"), heads) for part in ("query", "key", "value"))
        seen = op.reshape(op.nn.attention_bias(q, k, v, bias), (batch, length, hidden))
        return self.norm(self.linear(seen, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")

    def layer(self, x: Expr, bias: Expr, name: str) -> Expr:
        x = self.attention(x, bias, f"{name}.attention")
        wide = op.nn.gelu(self.linear(x, f"{name}.intermediate.dense"))
        return self.norm(self.linear(wide, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")

    def encode(self, x: Expr, mask: Expr) -> Expr:
        """All layers; `mask` is 1 for tokens and 0 for padding."""
        batch, length, _ = x.shape
        bias = (1.0 - op.reshape(mask, (batch, 1, 1, length))) * MASKED
        for index in range(self.config.num_hidden_layers):
            x = self.layer(x, bias, f"encoder.layer.{index}")
        return x


def sentence_embeddings(config: BertConfig, weights: Weights) -> ModuleOp:
    """`main(ids, mask)`: a vector of length 1 per sentence, the mean over its tokens.

    `ids` and `mask` are `i64` of shape (batch, length); `mask` is 1 for tokens and 0 for padding. The result is `f32`
    of shape (batch, hidden).
    """
    bb = BlockBuilder()
    tokens = tensor(("batch", "length"), "i64")
    with bb.function("main", {"ids": tokens, "mask": tokens}) as (ids, mask):
        with bb.dataflow():
            encoder = BertEncoder(bb, config, weights)
            present = mask.astype("f32")
            hidden = encoder.encode(encoder.embeddings(ids), present)
            batch, length = ids.shape
            weighted = op.sum(hidden * op.reshape(present, (batch, length, 1)), [1])
            mean = weighted / op.maximum(op.sum(present, [1], keepdims=True), 1e-9)
            norm = op.sqrt(op.sum(mean * mean, [-1], keepdims=True))
            out = bb.emit_output(mean / op.maximum(norm, 1e-12))
        bb.emit_func_output(out)
    return bb.get()


def encoder_layers(config: BertConfig, weights: Weights) -> ModuleOp:
    """`main(x)`: the layers alone on `f32` of shape (batch, length, hidden), every token seen by every other."""
    bb = BlockBuilder()
    with bb.function("main", {"x": ("batch", "length", config.hidden_size)}) as (x,):
        with bb.dataflow():
            batch, length, _ = x.shape
            out = bb.emit_output(BertEncoder(bb, config, weights).encode(x, op.ones((batch, length), "f32")))
        bb.emit_func_output(out)
    return bb.get()


def random_weights(config: BertConfig, seed: int = 0) -> dict[str, np.ndarray]:
    """Weights of the right shapes, with a spread that keeps activations in range."""
    rng = np.random.default_rng(seed)
    weights: dict[str, np.ndarray] = {}

    def dense(name: str, outputs: int, inputs: int) -> None:
        weights[f"{name}.weight"] = rng.standard_normal((outputs, inputs), dtype=np.float32) / math.sqrt(inputs)
        weights[f"{name}.bias"] = rng.standard_normal(outputs, dtype=np.float32) / 8

    def norm(name: str) -> None:
        weights[f"{name}.weight"] = 1 + rng.standard_normal(config.hidden_size, dtype=np.float32) / 8
        weights[f"{name}.bias"] = rng.standard_normal(config.hidden_size, dtype=np.float32) / 8

    rows = {"word": config.vocab_size, "position": config.max_position_embeddings, "token_type": config.type_vocab_size}
    for name, count in rows.items():
        table = rng.standard_normal((count, config.hidden_size), dtype=np.float32)
        weights[f"embeddings.{name}_embeddings.weight"] = table
    norm("embeddings.LayerNorm")
    for index in range(config.num_hidden_layers):
        layer = f"encoder.layer.{index}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            dense(f"{layer}.attention.{part}", config.hidden_size, config.hidden_size)
        dense(f"{layer}.intermediate.dense", config.intermediate_size, config.hidden_size)
        dense(f"{layer}.output.dense", config.hidden_size, config.intermediate_size)
        norm(f"{layer}.attention.output.LayerNorm")
        norm(f"{layer}.output.LayerNorm")
    return weights

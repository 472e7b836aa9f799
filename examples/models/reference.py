"""The models once more in NumPy, to compare with."""

from __future__ import annotations

import math

import numpy as np

from examples.models.bert import BertConfig, Weights
from examples.models.llama import LlamaConfig
from examples.models.lstm import LstmConfig


def softmax(x: np.ndarray) -> np.ndarray:
    """Along the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, epsilon: float) -> np.ndarray:
    """Along the last axis."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * gamma + beta


def gelu(x: np.ndarray) -> np.ndarray:
    """By the error function, from the standard library."""
    return x * 0.5 * (1 + np.vectorize(math.erf, otypes=[np.float32])(x / math.sqrt(2)))


class NumpyBert:
    """`examples.models.bert` in NumPy."""

    def __init__(self, config: BertConfig, weights: Weights):
        self.config = config
        self.weights = weights

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return layer_norm(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], self.config.layer_norm_eps)

    def attention(self, x: np.ndarray, mask: np.ndarray, name: str) -> np.ndarray:
        heads = (*x.shape[:2], self.config.num_attention_heads, self.config.head_size)
        q, k, v = (self.linear(x, f"{name}.self.{part}").reshape(heads) for part in ("query", "key", "value"))
        scores = np.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(self.config.head_size)
        scores = np.where(mask[:, None, None, :] > 0, scores, -1e9)
        seen = np.einsum("bhqk,bkhd->bqhd", softmax(scores), v).reshape(x.shape)
        return self.norm(self.linear(seen, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")

    def encode(self, x: np.ndarray, mask: np.ndarray) -> np.ndarray:
        for index in range(self.config.num_hidden_layers):
            name = f"encoder.layer.{index}"
            x = self.attention(x, mask, f"{name}.attention")
            wide = gelu(self.linear(x, f"{name}.intermediate.dense"))
            x = self.norm(self.linear(wide, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")
        return x

    def embed_sentences(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        words = self.weights["embeddings.word_embeddings.weight"][ids]
        positions = self.weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        segment = self.weights["embeddings.token_type_embeddings.weight"][0]
        hidden = self.encode(self.norm(words + positions + segment, "embeddings.LayerNorm"), mask)
        mean = (hidden * mask[..., None]).sum(1) / np.maximum(mask.sum(1, keepdims=True), 1e-9)
        return mean / np.maximum(np.linalg.norm(mean, axis=-1, keepdims=True), 1e-12)


def rms_norm(x: np.ndarray, gamma: np.ndarray, epsilon: float) -> np.ndarray:
    """Along the last axis."""
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * gamma


class NumpyLlama:
    """`examples.models.llama` in NumPy, without a cache: every token of the sequence is computed again."""

    def __init__(self, config: LlamaConfig, weights: Weights):
        self.config = config
        self.weights = weights

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.weights[f"{name}.weight"].T

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return rms_norm(x, self.weights[f"{name}.weight"], self.config.rms_norm_eps)

    def rotate(self, x: np.ndarray) -> np.ndarray:
        half = self.config.head_size // 2
        angle = np.arange(x.shape[1])[:, None] * self.config.rope_theta ** (-np.arange(half) / half)
        rotation = np.exp(1j * angle)[:, None, :]
        turned = (x[..., :half] + 1j * x[..., half:]) * rotation
        return np.concatenate([turned.real, turned.imag], -1).astype(np.float32)

    def attention(self, x: np.ndarray, name: str) -> np.ndarray:
        batch, length, _ = x.shape
        shape, sizes = (batch, length, -1, self.config.head_size), self.config
        q, k, v = (self.linear(x, f"{name}.{part}_proj").reshape(shape) for part in "qkv")
        k, v = (np.repeat(each, sizes.num_attention_heads // sizes.num_key_value_heads, 2) for each in (k, v))
        scores = np.einsum("bqhd,bkhd->bhqk", self.rotate(q), self.rotate(k)) / math.sqrt(sizes.head_size)
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
        return self.linear(np.einsum("bhqk,bkhd->bqhd", softmax(scores), v).reshape(x.shape), f"{name}.o_proj")

    def logits(self, ids: np.ndarray) -> np.ndarray:
        """Of the token after each sequence."""
        x = self.weights["model.embed_tokens.weight"][ids]
        for index in range(self.config.num_hidden_layers):
            name = f"model.layers.{index}"
            x = x + self.attention(self.norm(x, f"{name}.input_layernorm"), f"{name}.self_attn")
            h = self.norm(x, f"{name}.post_attention_layernorm")
            gate = self.linear(h, f"{name}.mlp.gate_proj")
            x = x + self.linear(
                gate / (1 + np.exp(-gate)) * self.linear(h, f"{name}.mlp.up_proj"), f"{name}.mlp.down_proj"
            )
        return self.linear(self.norm(x[:, -1], "model.norm"), "lm_head")


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Element by element."""
    return 1 / (1 + np.exp(-x))


class NumpyTagger:
    """`examples.models.lstm` in NumPy, sentence by sentence and word by word."""

    def __init__(self, config: LstmConfig, weights: Weights):
        self.config = config
        self.weights = weights

    def sentence(self, x: np.ndarray, direction: int) -> np.ndarray:
        w, r, b = (self.weights[name][direction] for name in "wrb")
        h = c = np.zeros(self.config.units, np.float32)
        outputs: list[np.ndarray] = []
        for word in x[::-1] if direction else x:
            gates = w @ word + r @ h + b[: 4 * len(h)] + b[4 * len(h) :]
            i, o, f, g = np.split(gates, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            outputs.append(h)
        made = np.array(outputs, np.float32).reshape(-1, len(h))
        return made[::-1] if direction else made

    def scores(self, ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        x = self.weights["embeddings"][ids]
        y = np.zeros((*ids.shape, 2 * self.config.units), np.float32)
        for row, count in enumerate(lengths):
            y[row, :count] = np.concatenate([self.sentence(x[row, :count], way) for way in (0, 1)], -1)
        return y @ self.weights["out"] + self.weights["out_bias"]

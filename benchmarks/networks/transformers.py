"""Transformers, as exporters write them: attention in terms of matrix products."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.networks.graph import Graph
from examples.models import bert as bert_model
from examples.models import llama as llama_model

if TYPE_CHECKING:
    from onnx import ModelProto

BERT = bert_model.BertConfig(
    hidden_size=768, num_hidden_layers=2, num_attention_heads=12, intermediate_size=3072, vocab_size=1
)
LLAMA = llama_model.LlamaConfig(vocab_size=8192)


def bert() -> ModelProto:
    """Two layers of BERT-base on (batch, length, 768)."""
    g = Graph()
    weights = bert_model.random_weights(BERT)
    x = g.input("x", ("batch", "length", BERT.hidden_size))
    for index in range(BERT.num_hidden_layers):
        x = _bert_layer(g, weights, x, f"encoder.layer.{index}")
    return g.model(x)


def _bert_layer(g: Graph, weights: bert_model.Weights, x: str, name: str) -> str:
    def linear(x: str, part: str) -> str:
        product = g.op("MatMul", x, g.weight(weights[f"{name}.{part}.weight"].T))
        return g.op("Add", product, g.weight(weights[f"{name}.{part}.bias"]))

    def norm(x: str, part: str) -> str:
        gamma, beta = (g.weight(weights[f"{name}.{part}.LayerNorm.{kind}"]) for kind in ("weight", "bias"))
        return g.op("LayerNormalization", x, gamma, beta, axis=-1, epsilon=BERT.layer_norm_eps)

    def heads(x: str, order: list[int]) -> str:
        split = g.op("Reshape", x, g.ints(0, 0, BERT.num_attention_heads, BERT.head_size))
        return g.op("Transpose", split, perm=order)

    q, v = (heads(linear(x, f"attention.self.{part}"), [0, 2, 1, 3]) for part in ("query", "value"))
    k = heads(linear(x, "attention.self.key"), [0, 2, 3, 1])
    scores = g.op("Div", g.op("MatMul", q, k), g.scalar(math.sqrt(BERT.head_size)))
    seen = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    seen = g.op("Reshape", seen, g.ints(0, 0, BERT.hidden_size))
    x = norm(g.op("Add", linear(seen, "attention.output.dense"), x), "attention.output")
    wide = linear(x, "intermediate.dense")
    erf = g.op("Erf", g.op("Div", wide, g.scalar(math.sqrt(2))))
    gelu = g.op("Mul", g.op("Mul", wide, g.op("Add", erf, g.scalar(1))), g.scalar(0.5))
    return norm(g.op("Add", linear(gelu, "output.dense"), x), "output")


def llama() -> ModelProto:
    """One token through two layers of width 1024 with caches of keys and values."""
    g = Graph()
    weights = llama_model.random_weights(LLAMA)
    x = g.input("x", (1, 1, LLAMA.hidden_size))
    cos, sin = (g.input(name, (1, 1, 1, LLAMA.head_size // 2)) for name in ("cos", "sin"))
    grown: list[str] = []
    for index in range(LLAMA.num_hidden_layers):
        shape = (1, LLAMA.num_key_value_heads, "past", LLAMA.head_size)
        caches = [g.input(f"{kind}{index}", shape) for kind in ("keys", "values")]
        x, longer = _LlamaLayer(g, weights, f"model.layers.{index}", (cos, sin)).emit(x, caches)
        grown += longer
    return g.model(x, *grown)


class _LlamaLayer:
    def __init__(self, g: Graph, weights: llama_model.Weights, name: str, angles: tuple[str, str]):
        self.g, self.weights, self.name, self.angles = g, weights, name, angles

    def linear(self, x: str, part: str) -> str:
        return self.g.op("MatMul", x, self.g.weight(self.weights[f"{self.name}.{part}.weight"].T))

    def norm(self, x: str, part: str) -> str:
        g = self.g
        mean = g.op("ReduceMean", g.op("Mul", x, x), axes=[-1], keepdims=1)
        scaled = g.op("Div", x, g.op("Sqrt", g.op("Add", mean, g.scalar(LLAMA.rms_norm_eps))))
        return g.op("Mul", scaled, g.weight(self.weights[f"{self.name}.{part}.weight"]))

    def heads(self, x: str, count: int) -> str:
        split = self.g.op("Reshape", x, self.g.ints(1, 1, count, LLAMA.head_size))
        return self.g.op("Transpose", split, perm=[0, 2, 1, 3])

    def rotate(self, x: str) -> str:
        g, (cos, sin) = self.g, self.angles
        first, second = g.ops("Split", 2, x, axis=-1)
        left = g.op("Sub", g.op("Mul", first, cos), g.op("Mul", second, sin))
        right = g.op("Add", g.op("Mul", second, cos), g.op("Mul", first, sin))
        return g.op("Concat", left, right, axis=-1)

    def attention(self, x: str, caches: list[str]) -> tuple[str, list[str]]:
        """Heads of queries that share keys are the rows of one product."""
        g, kv = self.g, LLAMA.num_key_value_heads
        shared = LLAMA.num_attention_heads // kv
        q = self.rotate(self.heads(self.linear(x, "self_attn.q_proj"), LLAMA.num_attention_heads))
        k = self.rotate(self.heads(self.linear(x, "self_attn.k_proj"), kv))
        v = self.heads(self.linear(x, "self_attn.v_proj"), kv)
        keys, values = (g.op("Concat", old, new, axis=2) for old, new in zip(caches, (k, v), strict=True))
        q = g.op("Reshape", q, g.ints(1, kv, shared, LLAMA.head_size))
        scores = g.op("MatMul", q, g.op("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = g.op("Mul", scores, g.scalar(1 / math.sqrt(LLAMA.head_size)))
        seen = g.op("MatMul", g.op("Softmax", scores, axis=-1), values)
        return self.linear(g.op("Reshape", seen, g.ints(1, 1, LLAMA.hidden_size)), "self_attn.o_proj"), [keys, values]

    def emit(self, x: str, caches: list[str]) -> tuple[str, list[str]]:
        g = self.g
        seen, grown = self.attention(self.norm(x, "input_layernorm"), caches)
        x = g.op("Add", x, seen)
        h = self.norm(x, "post_attention_layernorm")
        gate = self.linear(h, "mlp.gate_proj")
        gate = g.op("Mul", gate, g.op("Sigmoid", gate))
        return g.op("Add", x, self.linear(g.op("Mul", gate, self.linear(h, "mlp.up_proj")), "mlp.down_proj")), grown


def llama_inputs(past: int) -> dict[str, np.ndarray]:
    """A token, its angles, and caches of `past` tokens."""
    rng = np.random.default_rng(2)
    angle = past * LLAMA.rope_theta ** (-np.arange(LLAMA.head_size // 2) / (LLAMA.head_size // 2))
    inputs = {
        "x": rng.standard_normal((1, 1, LLAMA.hidden_size), dtype=np.float32),
        "cos": np.cos(angle).astype(np.float32).reshape(1, 1, 1, -1),
        "sin": np.sin(angle).astype(np.float32).reshape(1, 1, 1, -1),
    }
    for index in range(LLAMA.num_hidden_layers):
        for kind in ("keys", "values"):
            shape = (1, LLAMA.num_key_value_heads, past, LLAMA.head_size)
            inputs[f"{kind}{index}"] = rng.standard_normal(shape, dtype=np.float32)
    return inputs

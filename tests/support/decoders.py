"""Small GGUF files of random decoders, and what such models compute, in NumPy with `f64`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind

from relax_dialect.frontend.gguf.file import GGUFFile
from tir_dialect.block_arrays import BlockArray

VOCABULARY = 96
HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, FEATURES = 64, 96, 2, 4, 2, 16


def write_decoder(
    path: Path, architecture: str = "llama", kind: Kind = Kind.Q4_1, *, tied: bool = True, bias: bool = False
) -> None:
    """Writes a decoder of two layers whose matrices are of one kind."""
    writer, rng = gguf.GGUFWriter(path, architecture), np.random.default_rng(0)
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(FEATURES)
    writer.add_value_length(FEATURES)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(1000.0)
    add_tokenizer(writer)

    def matrix(name: str, rows: int, columns: int, own: Kind = kind) -> None:
        numbers = rng.standard_normal((rows, columns)).astype(np.float32) * 2 / np.sqrt(columns)
        data = numbers if own is Kind.F32 else gguf.quants.quantize(numbers, own)
        writer.add_tensor(f"{name}.weight", data, raw_dtype=own)

    def vector(name: str, size: int, middle: float = 1) -> None:
        writer.add_tensor(name, (middle + rng.standard_normal(size) / 8).astype(np.float32))

    matrix("token_embd", VOCABULARY, HIDDEN, Kind.Q8_0)
    if not tied:
        matrix("output", VOCABULARY, HIDDEN)
    vector("output_norm.weight", HIDDEN)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        for name in ("attn_norm", "ffn_norm"):
            vector(f"{block}.{name}.weight", HIDDEN)
        for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            matrix(f"{block}.attn_{name}", heads * FEATURES, HIDDEN)
            if bias:
                vector(f"{block}.attn_{name}.bias", heads * FEATURES, 0)
        if architecture == "qwen3":
            for name in ("q", "k"):
                vector(f"{block}.attn_{name}_norm.weight", FEATURES)
        matrix(f"{block}.attn_output", HIDDEN, HEADS * FEATURES)
        for name in ("gate", "up"):
            matrix(f"{block}.ffn_{name}", INNER, HIDDEN)
        matrix(f"{block}.ffn_down", HIDDEN, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer: gguf.GGUFWriter) -> None:
    """A byte-level tokenizer: a few special tokens, printable characters, and two merges."""
    characters = [chr(code) for code in range(33, 33 + VOCABULARY - 6)]
    tokens = ["<|end|>", "<|start|>", *characters, "Ġ", "Ċ", "ab", "abc"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3] + [1] * (VOCABULARY - 2))
    writer.add_token_merges(["a b", "ab c"])
    writer.add_eos_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_add_bos_token(False)
    writer.add_chat_template(
        "{% for message in messages %}<|start|>{{ message['role'] }}:{{ message['content'] }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant:{% endif %}"
    )


def numbers_of(file: GGUFFile) -> Mapping[str, np.ndarray]:
    """All tensors decoded, in `f64`."""
    return {
        name: (each.decoded() if isinstance(each, BlockArray) else each).astype(np.float64)
        for name, each in file.tensors.items()
    }


def logits_of(file: GGUFFile, ids: np.ndarray) -> np.ndarray:
    """The logits after each token of a sequence; `f64`."""
    weights = numbers_of(file)
    name = file.text("general.architecture")
    epsilon = file.number(f"{name}.attention.layer_norm_rms_epsilon")
    heads, kv_heads = (file.integer(f"{name}.attention.{key}") for key in ("head_count", "head_count_kv"))
    features = weights["blk.0.attn_q.weight"].shape[0] // heads
    count, half = len(ids), features // 2

    def norm(x: np.ndarray, key: str) -> np.ndarray:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weights[f"{key}.weight"]

    def linear(x: np.ndarray, key: str) -> np.ndarray:
        return x @ weights[f"{key}.weight"].T + weights.get(f"{key}.bias", 0)

    angle = np.arange(count)[:, None, None] * file.number(f"{name}.rope.freq_base") ** (-np.arange(half) / half)
    cos, sin = np.cos(angle), np.sin(angle)

    def rotate(x: np.ndarray) -> np.ndarray:
        first, second = (x[..., ::2], x[..., 1::2]) if name == "llama" else (x[..., :half], x[..., half:])
        pair = first * cos - second * sin, second * cos + first * sin
        return np.stack(pair, -1).reshape(x.shape) if name == "llama" else np.concatenate(pair, -1)

    x = weights["token_embd.weight"][ids]
    visible = np.tril(np.ones((count, count), bool))
    for layer in range(file.integer(f"{name}.block_count")):
        block, y = f"blk.{layer}", norm(x, f"blk.{layer}.attn_norm")
        q, k, v = (linear(y, f"{block}.attn_{part}").reshape(count, -1, features) for part in "qkv")
        if f"{block}.attn_q_norm.weight" in weights:
            q, k = norm(q, f"{block}.attn_q_norm"), norm(k, f"{block}.attn_k_norm")
        q, k = rotate(q), rotate(k)
        k, v = (each.repeat(heads // kv_heads, axis=1) for each in (k, v))
        scores = np.where(visible, np.einsum("ihd,jhd->hij", q, k) / np.sqrt(features), -np.inf)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        seen = np.einsum("hij,jhd->ihd", powers / powers.sum(-1, keepdims=True), v)
        x = x + linear(seen.reshape(count, -1), f"{block}.attn_output")
        y = norm(x, f"{block}.ffn_norm")
        gate = linear(y, f"{block}.ffn_gate")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(y, f"{block}.ffn_up"), f"{block}.ffn_down")
    head = weights.get("output.weight", weights["token_embd.weight"])
    return norm(x, "output_norm") @ head.T

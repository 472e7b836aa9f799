"""Small GGUF files of random decoders, and what such models compute, in NumPy with `f64`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind

from relax_dialect.frontend.gguf.file import GGUFFile
from relax_dialect.frontend.gguf.models import model_of
from relax_dialect.nn.config import PAGE, DecoderConfig, ExpertsConfig
from relax_dialect.nn.decoder import Decoder, DecoderProgram
from tir_dialect.block_arrays import BlockArray
from tir_dialect.dtypes import numpy_dtype

VOCABULARY = 96
HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, FEATURES = 64, 96, 2, 4, 2, 16
EXPERTS, USED, SHARED = 5, 2, 32


def write_decoder(
    path: Path, architecture: str = "llama", kind: Kind = Kind.Q4_1, *, tied: bool = True, bias: bool = False
) -> None:
    """Writes a decoder of two layers whose matrices are of one kind.

    Feed-forward layers of `qwen2moe` and `gpt-oss` are experts.
    """
    writer = gguf.GGUFWriter(path, architecture)
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
    has_experts = architecture in ("qwen2moe", "gpt-oss")
    if has_experts:
        writer.add_expert_count(EXPERTS)
        writer.add_expert_used_count(USED)
    if architecture == "qwen2moe":
        writer.add_expert_shared_feed_forward_length(SHARED)
    add_tokenizer(writer)
    tensors = _Tensors(writer, kind)
    tensors.matrix("token_embd", VOCABULARY, HIDDEN, kind=Kind.Q8_0)
    if not tied:
        tensors.matrix("output", VOCABULARY, HIDDEN)
    tensors.vector("output_norm.weight", HIDDEN)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        norm = "post_attention_norm" if architecture == "gpt-oss" else "ffn_norm"
        tensors.attention(block, norm, bias=bias, has_norms=architecture == "qwen3")
        if architecture == "gpt-oss":
            tensors.biases_and_sinks(block)
        if has_experts:
            tensors.experts(block, is_shared=architecture == "qwen2moe")
        else:
            tensors.feed_forward(block)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class _Tensors:
    """Random tensors, written to a file."""

    def __init__(self, writer: gguf.GGUFWriter, kind: Kind):
        self._writer, self._kind, self._rng = writer, kind, np.random.default_rng(0)

    def matrix(self, name: str, *shape: int, kind: Kind | None = None) -> None:
        kind = self._kind if kind is None else kind
        numbers = (self._rng.standard_normal(shape) * 2 / np.sqrt(shape[-1])).astype(np.float32)
        data = numbers if kind is Kind.F32 else gguf.quants.quantize(numbers, kind)
        self._writer.add_tensor(f"{name}.weight", data, raw_dtype=kind)

    def vector(self, name: str, size: int, middle: float = 1) -> None:
        self._writer.add_tensor(name, (middle + self._rng.standard_normal(size) / 8).astype(np.float32))

    def attention(self, block: str, norm: str, *, bias: bool, has_norms: bool) -> None:
        for name in ("attn_norm", norm):
            self.vector(f"{block}.{name}.weight", HIDDEN)
        for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            self.matrix(f"{block}.attn_{name}", heads * FEATURES, HIDDEN)
            if bias:
                self.vector(f"{block}.attn_{name}.bias", heads * FEATURES, 0)
        if has_norms:
            for name in ("q", "k"):
                self.vector(f"{block}.attn_{name}_norm.weight", FEATURES)
        self.matrix(f"{block}.attn_output", HIDDEN, HEADS * FEATURES)

    def biases_and_sinks(self, block: str) -> None:
        self.vector(f"{block}.attn_output.bias", HIDDEN, 0)
        self.vector(f"{block}.attn_sinks.weight", HEADS, 0)
        self.vector(f"{block}.ffn_gate_inp.bias", EXPERTS, 0)
        for name, size in (("gate", INNER), ("up", INNER), ("down", HIDDEN)):
            numbers = (self._rng.standard_normal((EXPERTS, size)) / 8).astype(np.float32)
            self._writer.add_tensor(f"{block}.ffn_{name}_exps.bias", numbers)

    def feed_forward(self, block: str, suffix: str = "", inner: int = INNER, *stack: int) -> None:
        for name in ("gate", "up"):
            self.matrix(f"{block}.ffn_{name}{suffix}", *stack, inner, HIDDEN)
        self.matrix(f"{block}.ffn_down{suffix}", *stack, HIDDEN, inner)

    def experts(self, block: str, *, is_shared: bool) -> None:
        self.feed_forward(block, "_exps", INNER, EXPERTS)
        self.matrix(f"{block}.ffn_gate_inp", EXPERTS, HIDDEN, kind=Kind.F32)
        if is_shared:
            self.feed_forward(block, "_shexp", SHARED)
            self.vector(f"{block}.ffn_gate_inp_shexp.weight", HIDDEN, 0)


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


def logits_of(file: GGUFFile, ids: np.ndarray) -> np.ndarray:
    """The logits of the model in a file after each token of a sequence; `f64`."""
    model = model_of(file)
    return logits(model.config, weights_of(model), ids)


def weights_of(model: Decoder) -> Mapping[str, np.ndarray]:
    """All weights of a model, decoded, in `f64`."""
    found = dict[str, np.ndarray]()
    for name, parameter in model.named_parameters():
        elements = parameter.elements
        assert elements is not None
        array = elements.decoded() if isinstance(elements, BlockArray) else elements
        found[name] = array.astype(np.float64)
    return found


class Caches:
    """Pages for sequences of a program, in an order of their own; what has not been written is `fill`."""

    def __init__(self, program: DecoderProgram, positions: int, sequences: int = 1, fill: float = 0.0):
        each = -(-positions // PAGE)
        count = 1 + sequences * each
        self.tables = np.arange(count - 1, 0, -1).reshape(sequences, each)
        self._has_windows = program.has_windows
        self.pools: list[np.ndarray] = []
        for layer in program.decoder.layers:
            for info in program.pools(layer).values():
                shape = [count, *(dim.constant_value for dim in info.known_dims[1:])]
                pool = np.full(shape, fill if "f" in str(info.dtype) else 0, numpy_dtype(info.dtype))
                pool[0] = 0
                self.pools.append(pool)

    def arguments(self, past: int, sequence: int = 0) -> list[object]:
        """The arguments of functions for one sequence after the tokens."""
        return [past, self.tables[sequence]] * (2 if self._has_windows else 1) + self.pools

    def arguments_of_batch(self, positions: np.ndarray) -> list[object]:
        """The arguments of functions for a batch after the tokens."""
        return [positions, self.tables] * (2 if self._has_windows else 1) + self.pools


def random_weights(model: Decoder) -> Mapping[str, np.ndarray]:
    """Weights of a size that keeps all activations near one."""
    rng = np.random.default_rng(0)
    return {
        name: (
            rng.standard_normal(each.shape) * 2 / np.sqrt(each.shape[-1])
            if len(each.shape) > 1
            else float(name.endswith("weight")) + rng.standard_normal(each.shape) / 8
        ).astype(np.float32)
        for name, each in model.named_parameters()
    }


def logits(config: DecoderConfig, weights: Mapping[str, np.ndarray], ids: np.ndarray) -> np.ndarray:
    """The logits after each token of a sequence, by the formulas of the papers; `f64`."""
    return _Reference(config, weights).logits(ids)


class _Reference:
    """A decoder in NumPy: the whole sequence at once, without a cache."""

    def __init__(self, config: DecoderConfig, weights: Mapping[str, np.ndarray]):
        self.config, self.weights = config, weights

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        is_layer_norm = "layer norm" in self.config.qk_norm if "self_attn" in name else self.config.layer_norm
        centred = x - x.mean(-1, keepdims=True) if is_layer_norm else x
        scaled = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + self.config.rms_norm_eps)
        return scaled * self.weights[f"{name}.weight"] + self.weights.get(f"{name}.bias", 0)

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.weights[f"{name}.weight"].T + self.weights.get(f"{name}.bias", 0)

    def rotate(self, x: np.ndarray, layer: int) -> np.ndarray:
        config = self.config
        if config.rope_theta is None or layer in config.unrotated_layers:
            return x
        is_local = config.window(layer) is not None and config.local_rope_theta is not None
        base = config.local_rope_theta if is_local else config.rope_theta
        scaling = None if is_local else config.rope_scaling
        size = config.rotary_features or config.head_dim
        half, turned = size // 2, x[..., :size]
        steps = base ** (-np.arange(half) / half)
        if scaling is not None:
            steps = steps / scaling.divisors(steps, base)
        angle = np.arange(len(x))[:, None, None] * steps
        cos, sin = np.cos(angle), np.sin(angle)
        if scaling is not None:
            cos, sin = cos * scaling.magnitude, sin * scaling.magnitude
        pairs = (turned[..., ::2], turned[..., 1::2]) if config.interleaved_rope else np.split(turned, 2, -1)
        first, second = pairs[0] * cos - pairs[1] * sin, pairs[1] * cos + pairs[0] * sin
        made = (
            np.stack((first, second), -1).reshape(turned.shape)
            if config.interleaved_rope
            else np.concatenate((first, second), -1)
        )
        return np.concatenate((made, x[..., size:]), -1)

    def attention(self, x: np.ndarray, layer: int) -> np.ndarray:
        config, name, count = self.config, f"layers.{layer}.self_attn", len(x)
        q, k, v = (self.linear(x, f"{name}.{part}_proj") for part in "qkv")
        if config.qk_norm == "all":
            q, k = self.norm(q, f"{name}.q_norm"), self.norm(k, f"{name}.k_norm")
        if config.clip_qkv is not None:
            q, k, v = (np.clip(each, -config.clip_qkv, config.clip_qkv) for each in (q, k, v))
        q, k, v = (each.reshape(count, -1, config.head_dim) for each in (q, k, v))
        if config.qk_norm not in ("none", "all"):
            q, k = self.norm(q, f"{name}.q_norm"), self.norm(k, f"{name}.k_norm")
        q, k = self.rotate(q, layer), self.rotate(k, layer)
        k, v = (each.repeat(q.shape[1] // k.shape[1], axis=1) for each in (k, v))
        scale = config.head_dim**-0.5 if config.attention_scale is None else config.attention_scale
        scores, cap = np.einsum("ihd,jhd->hij", q, k) * scale, config.attn_logit_softcapping
        scores = scores if cap is None else np.tanh(scores / cap) * cap
        distance = np.arange(count)[:, None] - np.arange(count)
        seen = (distance >= 0) & (distance < (config.window(layer) or count))
        scores = np.where(seen, scores, -np.inf)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        total = powers.sum(-1, keepdims=True)
        if config.attention_sinks:
            total = total + np.exp(self.weights[f"{name}.sinks"][:, None, None] - scores.max(-1, keepdims=True))
        found = np.einsum("hij,jhd->ihd", powers / total, v)
        return self.linear(found.reshape(count, -1), f"{name}.o_proj")

    def feed_forward(self, x: np.ndarray, layer: int) -> np.ndarray:
        name = f"layers.{layer}.mlp"
        if self.config.experts is not None and layer not in self.config.dense_layers:
            return self.experts(x, name, self.config.experts)
        if not self.config.gated_mlp:
            return self.linear(self.activation(self.linear(x, f"{name}.up_proj")), f"{name}.down_proj")
        return self.gated(x, name)

    def gated(self, x: np.ndarray, name: str) -> np.ndarray:
        gate = self.activation(self.linear(x, f"{name}.gate_proj"))
        return self.linear(gate * self.linear(x, f"{name}.up_proj"), f"{name}.down_proj")

    def experts(self, x: np.ndarray, name: str, config: ExpertsConfig) -> np.ndarray:
        powers = np.exp(self.linear(x, f"{name}.gate"))
        shares = powers / powers.sum(-1, keepdims=True)
        bound = np.sort(shares, -1)[:, -config.num_experts_per_tok, None]
        shares = np.where(shares >= bound, shares, 0)
        if config.norm_topk_prob:
            shares = shares / shares.sum(-1, keepdims=True)
        found = np.zeros_like(x)
        for expert in range(config.num_experts):
            found += shares[:, expert, None] * self.expert(x, f"{name}.experts", expert, config.swiglu_limit)
        if config.shared_expert_intermediate_size:
            shared = self.gated(x, f"{name}.shared_expert")
            if config.has_shared_expert_gate:
                shared = shared / (1 + np.exp(-self.linear(x, f"{name}.shared_expert_gate")))
            found += shared
        return found

    def expert(self, x: np.ndarray, name: str, expert: int, limit: float | None) -> np.ndarray:
        def linear(x: np.ndarray, part: str) -> np.ndarray:
            bias = self.weights.get(f"{name}.{part}_proj.bias")
            return x @ self.weights[f"{name}.{part}_proj.weight"][expert].T + (0 if bias is None else bias[expert])

        gate, up = linear(x, "gate"), linear(x, "up")
        if limit is None:
            return linear(self.activation(gate) * up, "down")
        gate = np.minimum(gate, limit)
        return linear(gate / (1 + np.exp(-1.702 * gate)) * (np.clip(up, -limit, limit) + 1), "down")

    def activation(self, x: np.ndarray) -> np.ndarray:
        match self.config.hidden_act:
            case "silu":
                return x / (1 + np.exp(-x))
            case "relu":
                return np.maximum(x, 0)
            case "gelu":
                return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2
            case _:
                return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2

    def layer(self, x: np.ndarray, layer: int) -> np.ndarray:
        name, scale = f"layers.{layer}", self.config.residual_scale
        before = x if self.config.norms == "after" else self.norm(x, f"{name}.input_layernorm")
        attended = self.attention(before, layer)
        match self.config.norms:
            case "parallel":
                return x + scale * attended + scale * self.feed_forward(before, layer)
            case "parallel apart":
                y = self.norm(x, f"{name}.pre_feedforward_layernorm")
                return x + scale * attended + scale * self.feed_forward(y, layer)
            case "before":
                x = x + scale * attended
                return x + scale * self.feed_forward(self.norm(x, f"{name}.post_attention_layernorm"), layer)
            case norms:
                x = x + scale * self.norm(attended, f"{name}.post_attention_layernorm")
                y = x if norms == "after" else self.norm(x, f"{name}.pre_feedforward_layernorm")
                return x + scale * self.norm(self.feed_forward(y, layer), f"{name}.post_feedforward_layernorm")

    def logits(self, ids: np.ndarray) -> np.ndarray:
        config, weights = self.config, self.weights
        x = weights["embed_tokens.weight"][ids] * config.embedding_scale
        if config.rope_theta is None:
            x = x + weights["embed_positions.weight"][: len(ids)]
        for layer in range(config.num_hidden_layers):
            x = self.layer(x, layer)
        x = self.norm(x, "norm")
        tied = config.tie_word_embeddings
        x = x @ weights["embed_tokens.weight"].T if tied else self.linear(x, "lm_head")
        x, cap = x * config.logit_scale, config.final_logit_softcapping
        return x if cap is None else np.tanh(x / cap) * cap

"""The architectures and sizes of the language models that GGUF files describe, from the metadata.

Apart from the layers (`models`), which a program that has been compiled before does not need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from relax_dialect.frontend.gguf.file import GGUFFile, GGUFImportError
from relax_dialect.nn.config import (
    DecoderConfig,
    DivisorScaling,
    ExpertsConfig,
    LinearScaling,
    LongRopeScaling,
    RopeScaling,
    YarnScaling,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LOCAL_THETA = 10000.0
"""The base of rotary embeddings in the layers of Gemma 3 that see a window."""


def _llama(reader: _Sizes) -> dict[str, Any]:
    # The converter of Llama's checkpoints puts features that are rotated together side by side.
    return {"interleaved_rope": True, "experts": reader.experts()}


def _qwen2(reader: _Sizes) -> dict[str, Any]:
    return {"attention_bias": True}


def _qwen3(reader: _Sizes) -> dict[str, Any]:
    return {"qk_norm": "head"}


def _qwen2moe(reader: _Sizes) -> dict[str, Any]:
    shared = reader.size("expert_shared_feed_forward_length", reader.inner)
    return {"attention_bias": True, "experts": reader.experts(norm=False, shared=shared, has_gate=True)}


def _qwen3moe(reader: _Sizes) -> dict[str, Any]:
    return {"qk_norm": "head", "experts": reader.experts()}


def _olmoe(reader: _Sizes) -> dict[str, Any]:
    return {"qk_norm": "all", "experts": reader.experts(norm=False)}


def _gpt_oss(reader: _Sizes) -> dict[str, Any]:
    window = reader.window()
    experts = reader.experts()
    return {
        "attention_bias": True,
        "output_bias": True,
        "attention_sinks": True,
        "windows": tuple(window if layer % 2 == 0 else None for layer in range(reader.layers)),
        "experts": None if experts is None else replace(experts, bias=True, swiglu_limit=7.0),
    }


def _smollm3(reader: _Sizes) -> dict[str, Any]:
    return {"interleaved_rope": True, "unrotated_layers": frozenset(range(3, reader.layers, 4))}


def _granite(reader: _Sizes) -> dict[str, Any]:
    return {
        "interleaved_rope": True,
        "embedding_scale": reader.number("embedding_scale", 1.0),
        "residual_scale": reader.number("residual_scale", 1.0),
        "attention_scale": reader.optional("attention.scale"),
        "logit_scale": 1 / reader.number("logit_scale", 1.0),
    }


def _granitemoe(reader: _Sizes) -> dict[str, Any]:
    shared = reader.file.integer(f"{reader.name}.expert_shared_feed_forward_length", 0)
    return {**_granite(reader), "experts": reader.experts(shared=shared)}


def _olmo2(reader: _Sizes) -> dict[str, Any]:
    return {"norms": "after", "qk_norm": "all"}


def _phi3(reader: _Sizes) -> dict[str, Any]:
    return {"windows": (reader.window(),) * reader.layers}


def _gemma(reader: _Sizes) -> dict[str, Any]:
    return {"hidden_act": "gelu_pytorch_tanh", "embedding_scale": math.sqrt(reader.hidden)}


def _gemma2(reader: _Sizes) -> dict[str, Any]:
    window = reader.window()
    return {
        **_gemma(reader),
        "norms": "both",
        "windows": tuple(window if layer % 2 == 0 else None for layer in range(reader.layers)),
        "attn_logit_softcapping": reader.optional("attn_logit_softcapping"),
        "final_logit_softcapping": reader.optional("final_logit_softcapping"),
    }


def _gemma3(reader: _Sizes) -> dict[str, Any]:
    window = reader.window()
    return {
        **_gemma(reader),
        "norms": "both",
        "qk_norm": "head",
        "windows": tuple(window if layer % 6 < 5 else None for layer in range(reader.layers)),
        "local_rope_theta": _LOCAL_THETA,
    }


def _stablelm(reader: _Sizes) -> dict[str, Any]:
    parallel = reader.file.metadata.get(f"{reader.name}.use_parallel_residual") is True
    bias = "blk.0.attn_q.bias" in reader.file.tensors
    return {"layer_norm": True, "norms": "parallel" if parallel else "before", "attention_bias": bias}


_ALL_BIASES = {"attention_bias": True, "output_bias": True, "mlp_bias": True}


def _gpt2(reader: _Sizes) -> dict[str, Any]:
    return {"layer_norm": True, "rope_theta": None, "hidden_act": "gelu_new", "gated_mlp": False, **_ALL_BIASES}


def _phi2(reader: _Sizes) -> dict[str, Any]:
    return {
        "layer_norm": True,
        "norms": "parallel",
        "hidden_act": "gelu_new",
        "gated_mlp": False,
        "head_bias": True,
        **_ALL_BIASES,
    }


def _falcon(reader: _Sizes) -> dict[str, Any]:
    return {"layer_norm": True, "norms": "parallel", "hidden_act": "gelu", "gated_mlp": False}


ARCHITECTURES: Mapping[str, Callable[[_Sizes], dict[str, Any]]] = {
    "llama": _llama,
    "qwen2": _qwen2,
    "qwen2moe": _qwen2moe,
    "qwen3": _qwen3,
    "qwen3moe": _qwen3moe,
    "smollm3": _smollm3,
    "gpt-oss": _gpt_oss,
    "granite": _granite,
    "granitemoe": _granitemoe,
    "olmo2": _olmo2,
    "olmoe": _olmoe,
    "phi3": _phi3,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "stablelm": _stablelm,
    "gpt2": _gpt2,
    "phi2": _phi2,
    "falcon": _falcon,
}
"""What a family of models differs in, as fields of `DecoderConfig`, by the names in `general.architecture`."""


class _Sizes:
    """The metadata of the model in a file, by keys after the name of its architecture."""

    def __init__(self, file: GGUFFile):
        self.file, self.name = file, file.text("general.architecture")
        if self.name not in ARCHITECTURES:
            raise GGUFImportError(
                f"{file.path}: the architecture {self.name!r} is not supported; known are {', '.join(ARCHITECTURES)}"
            )

    def size(self, key: str, otherwise: int | None = None, most: int = 1 << 24) -> int:
        """A positive integer."""
        return self.file.integer(f"{self.name}.{key}", otherwise, 1, most)

    def number(self, key: str, otherwise: float | None = None) -> float:
        """A positive number."""
        value = self.file.number(f"{self.name}.{key}", otherwise)
        if value <= 0:
            raise GGUFImportError(
                f"{self.file.path}: the metadata {self.name}.{key} expected a positive number, got {value}"
            )
        return value

    def optional(self, key: str) -> float | None:
        """A number, if it is there and not zero."""
        return self.file.number(f"{self.name}.{key}", 0.0) or None

    @property
    def hidden(self) -> int:
        """The features between layers."""
        return self.size("embedding_length")

    @property
    def layers(self) -> int:
        """The number of layers."""
        return self.size("block_count", most=1 << 10)

    @property
    def inner(self) -> int:
        """The inner features of feed-forward layers."""
        return self.size("feed_forward_length")

    def experts(self, *, norm: bool = True, shared: int = 0, has_gate: bool = False) -> ExpertsConfig | None:
        """What feed-forward layers are, if they are experts.

        `norm` says whether the probabilities of the chosen ones are scaled, unless the file does. `shared` are the
        inner features of an expert that all tokens have, which may have a gate.
        """
        count = self.file.integer(f"{self.name}.expert_count", 0, 0, 1 << 12)
        if not count:
            return None
        said = self.file.metadata.get(f"{self.name}.expert_weights_norm")
        return ExpertsConfig(
            count,
            self.file.integer(f"{self.name}.expert_used_count", None, 1, count),
            self.size("expert_feed_forward_length", self.inner),
            said if isinstance(said, bool) else norm,
            shared,
            has_gate,
        )

    def window(self) -> int | None:
        """How many positions a layer with a window sees; `None` if that is all."""
        window = self.file.integer(f"{self.name}.attention.sliding_window", 0)
        return window if 0 < window < self.size("context_length") else None


def config_of(file: GGUFFile) -> DecoderConfig:
    """The sizes of the model in a file; `GGUFImportError` if it is of an architecture that is not known."""
    sizes = _Sizes(file)
    heads, hidden = sizes.size("attention.head_count", most=1 << 12), sizes.hidden
    features = sizes.size("attention.key_length", hidden // heads)
    if sizes.size("attention.value_length", features) != features:
        raise GGUFImportError(f"{file.path}: heads of values have to be as long as heads of keys")
    kv_heads = sizes.size("attention.head_count_kv", heads, heads)
    rotated = sizes.size("rope.dimension_count", features)
    if heads % kv_heads or rotated % 2 or rotated > features:
        raise GGUFImportError(
            f"{file.path}: {heads} heads of {features} features, {rotated} of them rotated, cannot share {kv_heads} "
            "heads of keys"
        )
    table = file.tensors.get("token_embd.weight")
    if table is None or len(table.shape) != 2:
        raise GGUFImportError(f"{file.path}: expected the tensor token_embd.weight of rank 2")
    shared: dict[str, Any] = {
        "hidden_size": hidden,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": features,
        "intermediate_size": sizes.inner,
        "vocab_size": table.shape[0],
        "max_position_embeddings": sizes.size("context_length"),
        "rope_theta": sizes.number("rope.freq_base", 10000.0),
        "rope_scaling": _scaling(sizes, rotated),
        "rotary_features": None if rotated == features else rotated,
        "tie_word_embeddings": "output.weight" not in file.tensors,
    }
    config = DecoderConfig(**{**shared, **ARCHITECTURES[sizes.name](sizes)})
    epsilon = "attention.layer_norm_epsilon" if config.layer_norm else "attention.layer_norm_rms_epsilon"
    return replace(config, rms_norm_eps=sizes.number(epsilon, 1e-5))


def _scaling(sizes: _Sizes, rotated: int) -> RopeScaling | None:
    """How rotary embeddings are scaled; `GGUFImportError` for a way that is not known."""
    file, kind = sizes.file, sizes.file.text(f"{sizes.name}.rope.scaling.type", "none")
    if "rope_freqs.weight" in file.tensors:
        return DivisorScaling(_divisors(file, "rope_freqs", rotated))
    if "rope_factors_long.weight" in file.tensors:
        short, long = (_divisors(file, f"rope_factors_{kind}", rotated) for kind in ("short", "long"))
        original, most = sizes.size("rope.scaling.original_context_length"), sizes.size("context_length")
        usual = LongRopeScaling.usual_magnitude(most, original)
        return LongRopeScaling(short, long, original, sizes.number("rope.scaling.attn_factor", usual))
    if kind == "linear":
        return LinearScaling(sizes.number("rope.scaling.factor"))
    if kind == "yarn":
        original = sizes.size("rope.scaling.original_context_length")
        return YarnScaling(sizes.number("rope.scaling.factor"), original, truncate=sizes.name != "gpt-oss")
    if kind != "none":
        raise GGUFImportError(f"{file.path}: rotary embeddings scaled by {kind!r} are not supported")
    return None


def _divisors(file: GGUFFile, name: str, rotated: int) -> NDArray[Any]:
    found = file.tensors.get(f"{name}.weight")
    if not isinstance(found, np.ndarray) or found.shape != (rotated // 2,) or not (found > 0).all():
        raise GGUFImportError(f"{file.path}: {name}.weight expected {rotated // 2} positive numbers")
    return found

"""The architectures and sizes of the language models that GGUF files describe, from the metadata, whose keys begin with
the name of the architecture.

What is not read and would change the logits is refused (`Options.check`), so that no file is computed otherwise than it
says. Apart from the layers (`models`), which a program that has been compiled before does not need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from relax_dialect.frontend.gguf.file import GGUFFile, GGUFImportError, Value
from relax_dialect.nn.config import (
    DecoderConfig,
    DivisorScaling,
    ExpertsConfig,
    LinearScaling,
    LongRopeScaling,
    RopeScaling,
    YarnScaling,
    yarn_magnitude,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


_NEUTRAL: Mapping[str, Sequence[object]] = {
    "attention.causal": (True,),
    "attention.max_alibi_bias": (0,),
    "attention.kv_lora_rank": (0,),
    "attention.output_scale": (0, 1),
    "attention.q_lora_rank": (0,),
    "attention.shared_kv_layers": (0,),
    "attention.sliding_window": (0,),
    "attention.temperature_length": (0,),
    "attention.temperature_scale": (0,),
    "expert_chunk_feed_forward_length": (0,),
    "expert_gating_func": (0, 1),
    "expert_group_count": (0, 1),
    "expert_weights_scale": (0, 1),
    "logit_scale": (0, 1),
    "moe_latent_size": (0,),
    "nextn_predict_layers": (0,),
    "rope.scale_linear": (0, 1),
    "rope.scaling.alpha": (0, 1),
    "rope.scaling.attn_factor": (1,),
    "rope.scaling.factor": (0, 1),
    "rope.scaling.yarn_attn_factor": (1,),
    "rope.scaling.yarn_ext_factor": (-1, 1),
    "rope.scaling.yarn_log_multiplier": (0,),
    "router_logit_softcapping": (0,),
    "swiglu_clamp_exp": (0,),
    "swiglu_clamp_shexp": (0,),
    "swin_norm": (False,),
}
"""Options of some architectures, with the values with which they change nothing."""

_OF_WINDOWS: Mapping[str, str] = {
    "attention.key_length_swa": "attention.key_length",
    "attention.value_length_swa": "attention.value_length",
    "rope.dimension_count_swa": "rope.dimension_count",
    "rope.freq_base_swa": "rope.freq_base",
}
"""What layers with a window may have of their own, by what the others have."""


class Options:
    """The metadata of a model."""

    def __init__(self, file: GGUFFile):
        self.file, self.name = file, file.text("general.architecture")
        self._read: set[str] = set()

    def error(self, message: str) -> GGUFImportError:
        """What is wrong in this file."""
        return GGUFImportError(f"{self.file.path}: {message}")

    def key(self, key: str) -> str:
        """The whole key; it counts as read."""
        self._read.add(key)
        return f"{self.name}.{key}"

    def has(self, tensor: str) -> bool:
        """Whether the file has a tensor; in the first layer if its name begins with a point."""
        return (f"blk.0{tensor}" if tensor.startswith(".") else tensor) in self.file.tensors

    def rows(self, tensor: str) -> int | None:
        """The rows of the matrices of a tensor in the first layer, if it is there."""
        found = self.file.tensors.get(f"blk.0{tensor}")
        return None if found is None or len(found.shape) < 2 else found.shape[-2]

    def size(self, key: str, otherwise: int | None = None, most: int = 1 << 24, least: int = 1) -> int:
        """A positive integer; one for each layer is read if all are equal."""
        name = self.key(key)
        value = self.file.metadata.get(name)
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.size:
            if (value != value.flat[0]).any():
                raise self.error(f"the metadata {name} has several values: layers of different sizes are not supported")
            if least <= value.flat[0] <= most:
                return int(value.flat[0])
        return self.file.integer(name, otherwise, least, most)

    def number(self, key: str, otherwise: float | None = None) -> float:
        """A positive number."""
        value = self.file.number(self.key(key), otherwise)
        if value <= 0:
            raise self.error(f"the metadata {self.name}.{key} expected a positive number, got {value}")
        return value

    def optional(self, key: str, otherwise: float = 0.0) -> float | None:
        """A number, if it is there and not zero."""
        return self.file.number(self.key(key), otherwise) or None

    def flag(self, key: str, otherwise: bool) -> bool:
        """Whether something is so."""
        value = self.file.metadata.get(self.key(key), otherwise)
        if not isinstance(value, bool):
            raise self.error(f"the metadata {self.name}.{key} expected true or false, got {value!r:.60}")
        return value

    @property
    def hidden(self) -> int:
        """The features between layers."""
        return self.size("embedding_length")

    @property
    def layers(self) -> int:
        """The number of layers."""
        return self.size("block_count", most=1 << 10)

    def inner(self) -> int:
        """The inner features of feed-forward layers."""
        return self.size("feed_forward_length")

    def experts(self, *, norm: bool = True, shared: int = 0, has_gate: bool = False) -> ExpertsConfig | None:
        """What feed-forward layers are, if they are experts.

        `norm` says whether the probabilities of the chosen ones are scaled, unless the file does. `shared` are the
        inner features of an expert that all tokens have, which may have a gate.
        """
        count = self.size("expert_count", 0, 1 << 12, 0)
        if not count:
            return None
        used = self.size("expert_used_count", None, count)
        # Old files do not say the inner features of experts.
        inner = self.size("expert_feed_forward_length", self.rows(".ffn_up_exps.weight"))
        return ExpertsConfig(count, used, inner, self.flag("expert_weights_norm", norm), shared, has_gate)

    def windows(self, usual: Callable[[int], bool], otherwise: int = 0) -> tuple[int | None, ...]:
        """How many positions each layer sees, if not all: those with a window, unless the file says which have one.

        `sliding_window_pattern` is a truth value for each layer, or a number of layers of which the last has no window.
        """
        window = self.size("attention.sliding_window", otherwise, 1 << 31, 0)
        pattern = self.file.metadata.get(self.key("attention.sliding_window_pattern"))
        if not window:
            return ()
        if isinstance(pattern, np.ndarray) and pattern.dtype.kind in "biu" and pattern.size >= self.layers:
            has_window = [bool(each) for each in pattern.ravel()]
        elif pattern is None:
            has_window = [usual(layer) for layer in range(self.layers)]
        else:
            every = self.size("attention.sliding_window_pattern", least=0)
            has_window = [not every or layer % every < every - 1 for layer in range(self.layers)]
        return tuple(window if each else None for each in has_window[: self.layers])

    def check(self) -> None:
        """`GGUFImportError` for options that were not read and are not neutral."""
        for key, neutral in _NEUTRAL.items():
            value = self.file.metadata.get(f"{self.name}.{key}")
            if key in self._read or value is None or _all_in(value, neutral):
                continue
            if key == "attention.sliding_window" and isinstance(value, int) and value >= self.size("context_length"):
                continue
            raise self.error(
                f"the metadata {self.name}.{key} = {value!r:.60} is not supported for the architecture {self.name!r}"
            )
        for key, usual in _OF_WINDOWS.items():
            value, other = (self.file.metadata.get(f"{self.name}.{each}") for each in (key, usual))
            if key not in self._read and value is not None and other is not None and value != other:
                raise self.error(f"the metadata {self.name}.{key} = {value!r:.60} is not supported, other than {usual}")


def _all_in(value: Value, neutral: Sequence[object]) -> bool:
    values: list[object] = value.ravel().tolist() if isinstance(value, np.ndarray) else [value]
    return all(each in neutral for each in values)


_LOCAL_THETA = 10000.0
"""The base of rotary embeddings in the layers of Gemma 3 that see a window."""


def _llama(options: Options) -> dict[str, Any]:
    # The converter of Llama's checkpoints puts features that are rotated together side by side.
    windows = options.windows(lambda layer: True)
    return {"interleaved_rope": True, "windows": windows, "experts": options.experts()}


def _qwen2(options: Options) -> dict[str, Any]:
    return {}


def _qwen3(options: Options) -> dict[str, Any]:
    return {"qk_norm": "head"}


def _qwen2moe(options: Options) -> dict[str, Any]:
    shared = options.size("expert_shared_feed_forward_length", options.rows(".ffn_up_shexp.weight") or 0, least=0)
    return {"experts": options.experts(norm=False, shared=shared, has_gate=True)}


def _qwen3moe(options: Options) -> dict[str, Any]:
    return {"qk_norm": "head", "experts": options.experts()}


def _olmoe(options: Options) -> dict[str, Any]:
    return {"qk_norm": "all", "experts": options.experts(norm=False)}


def _gpt_oss(options: Options) -> dict[str, Any]:
    experts = options.experts()
    return {
        "attention_sinks": True,
        "windows": options.windows(lambda layer: layer % 2 == 0),
        "experts": None if experts is None else replace(experts, bias=True, swiglu_limit=7.0),
    }


def _smollm3(options: Options) -> dict[str, Any]:
    return {"interleaved_rope": True, "unrotated_layers": frozenset(range(3, options.layers, 4))}


def _granite(options: Options) -> dict[str, Any]:
    # Of this architecture only, it says whether there are rotary embeddings.
    rotates = options.flag("rope.scaling.finetuned", True)
    return {
        "interleaved_rope": True,
        "unrotated_layers": frozenset[int]() if rotates else frozenset(range(options.layers)),
        "logit_scale": 1 / options.number("logit_scale", 1.0),
    }


def _granitemoe(options: Options) -> dict[str, Any]:
    shared = options.size("expert_shared_feed_forward_length", 0, least=0)
    return {**_granite(options), "experts": options.experts(shared=shared)}


def _olmo2(options: Options) -> dict[str, Any]:
    # OLMo 3 has windows, and rotary embeddings that are not scaled there.
    windows = options.windows(lambda layer: layer % 4 < 3)
    local = options.number("rope.freq_base_swa", options.number("rope.freq_base", 10000.0)) if windows else None
    return {"norms": "after", "qk_norm": "all", "windows": windows, "local_rope_theta": local}


def _phi3(options: Options) -> dict[str, Any]:
    return {"windows": options.windows(lambda layer: True)}


def _gemma(options: Options) -> dict[str, Any]:
    scale = options.optional("embedding_scale") or math.sqrt(options.hidden)
    return {"hidden_act": "gelu_pytorch_tanh", "embedding_scale": scale}


def _gemma2(options: Options) -> dict[str, Any]:
    return {
        **_gemma(options),
        "norms": "both",
        "windows": options.windows(lambda layer: layer % 2 == 0, 4096),
        # The first files do not say these.
        "attn_logit_softcapping": options.optional("attn_logit_softcapping", 50.0),
        "final_logit_softcapping": options.optional("final_logit_softcapping", 30.0),
        **_scale_of_27b(options, 46),
    }


def _gemma3(options: Options) -> dict[str, Any]:
    windows = options.windows(lambda layer: layer % 6 < 5)
    local = options.number("rope.freq_base_swa", _LOCAL_THETA) if windows else None
    return {
        **_gemma(options),
        "norms": "both",
        "qk_norm": "head",
        "windows": windows,
        "local_rope_theta": local,
        **_scale_of_27b(options, 62),
    }


def _scale_of_27b(options: Options, layers: int) -> dict[str, Any]:
    """The largest Gemmas scale scores as if heads had as many features as there are between layers for each, which the
    metadata do not say; they are known by the number of their layers.
    """
    if options.layers != layers or options.optional("attention.scale") is not None:
        return {}
    return {"attention_scale": (options.hidden // options.size("attention.head_count", most=1 << 12)) ** -0.5}


def _stablelm(options: Options) -> dict[str, Any]:
    # Files say `use_parallel_residual` where the checkpoint does not, so that it counts what tensors there are.
    return {
        "layer_norm": True,
        "norms": "before" if options.has(".ffn_norm.weight") else "parallel",
        "qk_norm": "layer norm of each head" if options.has(".attn_q_norm.weight") else "none",
    }


def _gpt2(options: Options) -> dict[str, Any]:
    return {"layer_norm": True, "rope_theta": None, "hidden_act": "gelu_new", "gated_mlp": False}


def _phi2(options: Options) -> dict[str, Any]:
    return {"layer_norm": True, "norms": "parallel", "hidden_act": "gelu_new", "gated_mlp": False}


def _falcon(options: Options) -> dict[str, Any]:
    norms = "parallel apart" if options.has(".attn_norm_2.weight") else "parallel"
    return {"layer_norm": True, "norms": norms, "hidden_act": "gelu", "gated_mlp": False}


ARCHITECTURES: Mapping[str, Callable[[Options], dict[str, Any]]] = {
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


def config_of(file: GGUFFile) -> DecoderConfig:
    """The sizes of the model in a file; `GGUFImportError` if it is of an architecture that is not known, or has options
    that are not.
    """
    options = Options(file)
    if options.name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise options.error(f"the architecture {options.name!r} is not supported; known are {known}")
    if (kind := file.text("general.type", "model")) != "model":
        raise options.error(f"expected a model, got a file of the general.type {kind!r}")
    heads, hidden = options.size("attention.head_count", most=1 << 12), options.hidden
    features = options.size("attention.key_length", hidden // heads)
    if (of_values := options.size("attention.value_length", features)) != features:
        raise options.error(
            f"heads of values (attention.value_length = {of_values}) have to be as long as heads of keys ({features})"
        )
    kv_heads = options.size("attention.head_count_kv", heads, heads)
    rotated = options.size("rope.dimension_count", features)
    if heads % kv_heads or rotated % 2 or rotated > features:
        raise options.error(
            f"{heads} heads of {features} features, {rotated} of them rotated, cannot share {kv_heads} heads of keys"
        )
    table = file.tensors.get("token_embd.weight")
    if table is None or len(table.shape) != 2:
        raise options.error("expected the tensor token_embd.weight of rank 2")
    is_tied = not options.has("output.weight")
    shared: dict[str, Any] = {
        "hidden_size": hidden,
        "num_hidden_layers": options.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": features,
        "vocab_size": table.shape[0],
        "max_position_embeddings": options.size("context_length"),
        "rope_theta": options.number("rope.freq_base", 10000.0),
        "rope_scaling": _scaling(options, rotated),
        "rotary_features": None if rotated == features else rotated,
        "tie_word_embeddings": is_tied,
        "attention_bias": options.has(".attn_qkv.bias") or options.has(".attn_q.bias"),
        "output_bias": options.has(".attn_output.bias"),
        "mlp_bias": options.has(".ffn_down.bias"),
        "head_bias": options.has("output.bias") and not is_tied,
        "embedding_scale": options.optional("embedding_scale") or 1.0,
        "residual_scale": options.optional("residual_scale") or 1.0,
        "attention_scale": options.optional("attention.scale"),
        "clip_qkv": options.optional("attention.clamp_kqv"),
        "attn_logit_softcapping": options.optional("attn_logit_softcapping"),
        "final_logit_softcapping": options.optional("final_logit_softcapping"),
    }
    fields = {**shared, **ARCHITECTURES[options.name](options)}
    if "intermediate_size" not in fields:
        experts = fields.get("experts")
        fields["intermediate_size"] = options.inner() if experts is None else experts.moe_intermediate_size
    config = DecoderConfig(**fields)
    epsilon = "attention.layer_norm_epsilon" if config.layer_norm else "attention.layer_norm_rms_epsilon"
    options.check()
    return replace(config, rms_norm_eps=options.number(epsilon, 1e-5))


def _scaling(options: Options, rotated: int) -> RopeScaling | None:
    """How rotary embeddings are scaled; `GGUFImportError` for a way that is not known."""
    file, key = options.file, f"{options.name}.rope.scaling.type"
    if options.has("rope_factors_long.weight"):
        short, long = (_divisors(file, f"rope_factors_{kind}", rotated) for kind in ("short", "long"))
        original, most = options.size("rope.scaling.original_context_length"), options.size("context_length")
        usual = LongRopeScaling.usual_magnitude(most, original)
        return LongRopeScaling(short, long, original, options.number("rope.scaling.attn_factor", usual))
    kind = file.text(key, "linear")
    if kind not in ("none", "linear", "yarn"):
        raise options.error(f"rotary embeddings scaled by {kind!r} are not supported")
    # Old files have another key, and say no type. Zero is no factor.
    factor = options.optional("rope.scaling.factor") or options.optional("rope.scale_linear") or 1.0
    factor = 1.0 if kind == "none" else factor
    if factor <= 0:
        raise options.error(f"the metadata {options.name}.rope.scaling.factor expected a positive number, got {factor}")
    if options.has("rope_freqs.weight"):
        if kind == "yarn":
            raise options.error(f"rotary embeddings scaled by rope_freqs.weight and {key} = 'yarn' are not supported")
        return DivisorScaling(_divisors(file, "rope_freqs", rotated) * np.float32(factor))
    if kind == "yarn":
        original = options.size("rope.scaling.original_context_length", options.size("context_length"))
        magnitude = yarn_magnitude(factor) * options.number("rope.scaling.attn_factor", 1.0)
        if (of_all := options.optional("rope.scaling.yarn_log_multiplier")) is not None:
            magnitude /= yarn_magnitude(factor, of_all)
        return YarnScaling(
            factor,
            original,
            options.number("rope.scaling.yarn_beta_fast", 32.0),
            options.number("rope.scaling.yarn_beta_slow", 1.0),
            magnitude,
            truncate=options.name != "gpt-oss",
        )
    return None if factor == 1 else LinearScaling(factor)


def _divisors(file: GGUFFile, name: str, rotated: int) -> NDArray[Any]:
    found = file.tensors.get(f"{name}.weight")
    if not isinstance(found, np.ndarray) or found.shape != (rotated // 2,) or not (found > 0).all():
        raise GGUFImportError(f"{file.path}: {name}.weight expected {rotated // 2} positive numbers")
    return found

"""The families and sizes of the language models that folders describe, from `config.json`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from relax_dialect.frontend.huggingface.folder import ModelFolder, number, positive
from relax_dialect.nn.config import (
    DecoderConfig,
    ExpertsConfig,
    LinearScaling,
    Llama3Scaling,
    LongRopeScaling,
    RopeScaling,
    YarnScaling,
    yarn_magnitude,
)
from relax_dialect.nn.module import ACTIVATIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

Fields = dict[str, Any]
"""Fields of `DecoderConfig`."""


@dataclass(frozen=True)
class Family:
    """What a family of models differs in from Llama."""

    fields: Callable[[ModelFolder], Fields]
    names: Sequence[tuple[str, str]] = ()
    """Patterns of names of tensors, and what is there instead in `nn.Decoder`."""
    transposed: str | None = None
    """The names of tensors that are stored as (inputs, outputs)."""
    norm_offset: float = 0.0
    """What is added to the weights of norms."""
    interleaved_experts: bool = False
    """Whether experts are stored as (inputs, outputs), with rows of gates and of what they multiply in turn."""
    grouped_queries: bool = False
    """Whether rows of `qkv_proj` are, for each head of keys, its queries, the keys, then the values."""
    rotates_part: bool = False
    """Whether `partial_rotary_factor` counts, of which other families know nothing."""
    ignored: str = r"rotary_emb\.inv_freq$"
    """The names of tensors that follow from the configuration."""


def _llama(folder: ModelFolder) -> Fields:
    bias = folder.flag("attention_bias")
    return {"attention_bias": bias, "output_bias": bias, "mlp_bias": folder.flag("mlp_bias")}


def _mistral(folder: ModelFolder) -> Fields:
    return {"windows": _windows(folder, lambda layer: True)}


def _qwen2(folder: ModelFolder) -> Fields:
    first = folder.integer("max_window_layers", 0, 0)
    is_used = folder.flag("use_sliding_window")
    return {"attention_bias": True, "windows": _windows(folder, lambda layer: is_used and layer >= first)}


def _qwen3(folder: ModelFolder) -> Fields:
    bias = folder.flag("attention_bias")
    return {**_qwen2(folder), "attention_bias": bias, "output_bias": bias, "qk_norm": "head"}


def _experts(folder: ModelFolder, *, size: str = "moe_intermediate_size", **options: Any) -> Fields:
    """Feed-forward layers that are experts; `size` is the key of their inner features, `options` other fields of
    `ExpertsConfig`.
    """
    count = "num_experts" if "num_experts" in folder.config else "num_local_experts"
    experts, layers = folder.integer(count, most=1 << 12), folder.integer("num_hidden_layers", most=1 << 10)
    step = folder.integer("decoder_sparse_step", 1)
    named: Any = folder.config.get("mlp_only_layers") or []
    if not isinstance(named, list):
        raise folder.error(f"'mlp_only_layers' of config.json expected a list, got {named!r}")
    dense = {layer for layer in range(layers) if layer in cast("list[Any]", named) or (layer + 1) % step}
    used = folder.integer("num_experts_per_tok", most=experts)
    return {
        "experts": ExpertsConfig(experts, used, folder.integer(size), **options),
        "dense_layers": frozenset(dense),
    }


def _mixtral(folder: ModelFolder) -> Fields:
    return {**_mistral(folder), **_experts(folder, size="intermediate_size")}


def _qwen2_moe(folder: ModelFolder) -> Fields:
    shared = folder.integer("shared_expert_intermediate_size", 5632)
    norm = folder.flag("norm_topk_prob")
    return {
        **_qwen2(folder),
        "attention_bias": folder.flag("qkv_bias", True),
        **_experts(
            folder,
            norm_topk_prob=norm,
            shared_expert_intermediate_size=shared,
            has_shared_expert_gate=True,
        ),
    }


def _qwen3_moe(folder: ModelFolder) -> Fields:
    experts = _experts(folder, norm_topk_prob=folder.flag("norm_topk_prob"))
    window = _windows(folder, lambda layer: folder.flag("use_sliding_window"))
    return {**_qwen3(folder), **experts, "windows": window}


def _olmoe(folder: ModelFolder) -> Fields:
    limit = None if folder.config.get("clip_qkv") is None else positive(folder, folder.config, "clip_qkv")
    norm = folder.flag("norm_topk_prob")
    experts = _experts(folder, size="intermediate_size", norm_topk_prob=norm)
    return {**_llama(folder), "qk_norm": "all", "clip_qkv": limit, **experts}


def _gpt_oss(folder: ModelFolder) -> Fields:
    bias = folder.flag("attention_bias", True)
    if folder.number("swiglu_alpha", 1.702) != 1.702:
        raise folder.error("a gate of another slope ('swiglu_alpha') is not supported")
    limit = folder.number("swiglu_limit", 7.0)
    return {
        "attention_bias": bias,
        "output_bias": bias,
        "attention_sinks": True,
        "windows": _windows(folder, lambda layer: layer % 2 == 0),
        **_experts(folder, size="intermediate_size", bias=True, swiglu_limit=limit),
    }


def _granitemoe(folder: ModelFolder) -> Fields:
    shared = folder.integer("shared_intermediate_size", 0, 0)
    size = "intermediate_size"
    return {
        **_granite(folder),
        **_experts(folder, size=size, shared_expert_intermediate_size=shared),
    }


def _smollm3(folder: ModelFolder) -> Fields:
    layers = folder.integer("num_hidden_layers")
    every = folder.integer("no_rope_layer_interval", 4)
    rotated = folder.values("no_rope_layers", layers) or [(layer + 1) % every for layer in range(layers)]
    return {**_llama(folder), "unrotated_layers": frozenset(layer for layer in range(layers) if not rotated[layer])}


def _granite(folder: ModelFolder) -> Fields:
    return {
        **_llama(folder),
        "embedding_scale": folder.number("embedding_multiplier", 1.0),
        "residual_scale": folder.number("residual_multiplier", 1.0),
        "attention_scale": folder.number("attention_multiplier", 1.0),
        "logit_scale": 1 / positive(folder, folder.config, "logits_scaling", 1.0),
    }


def _olmo2(folder: ModelFolder) -> Fields:
    return {**_llama(folder), "norms": "after", "qk_norm": "all"}


def _phi3(folder: ModelFolder) -> Fields:
    return {"windows": _windows(folder, lambda layer: True)}


def _gemma(folder: ModelFolder) -> Fields:
    bias, activation = folder.flag("attention_bias"), folder.text("hidden_act", "gelu_pytorch_tanh")
    return {
        "attention_bias": bias,
        "output_bias": bias,
        # The first releases said gelu and meant the approximation.
        "hidden_act": "gelu_pytorch_tanh" if activation == "gelu" else activation,
        "embedding_scale": math.sqrt(folder.integer("hidden_size")),
        "tie_word_embeddings": folder.flag("tie_word_embeddings", True),
    }


def _gemma2(folder: ModelFolder) -> Fields:
    return {
        **_gemma(folder),
        "hidden_act": folder.config.get("hidden_activation") or "gelu_pytorch_tanh",
        "norms": "both",
        "attention_scale": positive(folder, folder.config, "query_pre_attn_scalar", 256) ** -0.5,
        "windows": _windows(folder, lambda layer: layer % 2 == 0),
        "attn_logit_softcapping": folder.optional("attn_logit_softcapping"),
        "final_logit_softcapping": folder.optional("final_logit_softcapping"),
    }


def _gemma3(folder: ModelFolder) -> Fields:
    pattern = folder.integer("sliding_window_pattern", 6)
    local = _rope_table(folder, "sliding_attention").get("rope_theta") or folder.config.get("rope_local_base_freq")
    return {
        **_gemma2(folder),
        "qk_norm": "head",
        "windows": _windows(folder, lambda layer: (layer + 1) % pattern != 0),
        "local_rope_theta": 10000.0 if local is None else number(folder, {"local": local}, "local"),
    }


def _stablelm(folder: ModelFolder) -> Fields:
    return {
        "layer_norm": True,
        "qk_norm": "layer norm of each head" if folder.flag("qk_layernorm") else "none",
        "norms": "parallel" if folder.flag("use_parallel_residual") else "before",
        "attention_bias": folder.flag("use_qkv_bias"),
    }


_ALL_BIASES = {"attention_bias": True, "output_bias": True, "mlp_bias": True}


def _phi(folder: ModelFolder) -> Fields:
    # The head has a bias of its own, also where it has the weights of the embedding.
    head: Fields = {"head_bias": True, "tie_word_embeddings": False}
    return {
        "layer_norm": True,
        "norms": "parallel",
        "qk_norm": "head layer norm" if folder.flag("qk_layernorm") else "none",
        "gated_mlp": False,
        **head,
        **_ALL_BIASES,
    }


def _gpt2(folder: ModelFolder) -> Fields:
    hidden = folder.integer("n_embd")
    if folder.flag("scale_attn_by_inverse_layer_idx"):
        raise folder.error("attention that is scaled by the layer is not supported")
    heads = folder.integer("n_head", most=1 << 12)
    return {
        "hidden_size": hidden,
        "num_hidden_layers": folder.integer("n_layer", most=1 << 10),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": hidden // heads,
        "intermediate_size": folder.integer("n_inner", 4 * hidden),
        "max_position_embeddings": folder.integer("n_positions"),
        "rms_norm_eps": folder.number("layer_norm_epsilon", 1e-5),
        "layer_norm": True,
        "rope_theta": None,
        "hidden_act": folder.text("activation_function", "gelu_new"),
        "gated_mlp": False,
        "tie_word_embeddings": folder.flag("tie_word_embeddings", True),
        **_ALL_BIASES,
    }


def _falcon(folder: ModelFolder) -> Fields:
    if folder.flag("alibi"):
        raise folder.error("scores that depend on the distance ('alibi') are not supported")
    bias, hidden = folder.flag("bias"), folder.integer("hidden_size")
    is_new, heads = folder.flag("new_decoder_architecture"), folder.integer("num_attention_heads", most=1 << 12)
    kv_heads = folder.integer("num_kv_heads", heads, most=heads)
    if is_new:
        norms = "parallel" if folder.integer("num_ln_in_parallel_attn", 2, most=2) == 1 else "parallel apart"
    else:
        norms = "parallel" if folder.flag("parallel_attn", True) else "before"
    return {
        "num_key_value_heads": kv_heads if is_new or not folder.flag("multi_query", True) else 1,
        "intermediate_size": folder.integer("ffn_hidden_size", 4 * hidden),
        "layer_norm": True,
        "norms": norms,
        "rms_norm_eps": folder.number("layer_norm_epsilon", 1e-5),
        "hidden_act": folder.text("activation", "gelu"),
        "gated_mlp": False,
        "tie_word_embeddings": folder.flag("tie_word_embeddings", True),
        "attention_bias": bias,
        "output_bias": bias,
        "mlp_bias": bias,
    }


_STACKED = ((r"(\.mlp\.experts\.\w+_proj)$", r"\1.weight"),)
_GRANITE_EXPERTS = (
    (r"\.block_sparse_moe\.router\.layer\.", ".mlp.gate."),
    (r"\.block_sparse_moe\.input_linear\.", ".mlp.experts.gate_up_proj."),
    (r"\.block_sparse_moe\.output_linear\.", ".mlp.experts.down_proj."),
    (r"\.shared_mlp\.input_linear\.", ".mlp.shared_expert.gate_up_proj."),
    (r"\.shared_mlp\.output_linear\.", ".mlp.shared_expert.down_proj."),
)

FAMILIES: Mapping[str, Family] = {
    "llama": Family(_llama),
    "mistral": Family(_mistral),
    "mixtral": Family(
        _mixtral,
        (
            (r"\.block_sparse_moe\.", ".mlp."),
            (r"(\.experts\.\d+)\.w1\.", r"\1.gate_proj."),
            (r"(\.experts\.\d+)\.w2\.", r"\1.down_proj."),
            (r"(\.experts\.\d+)\.w3\.", r"\1.up_proj."),
            *_STACKED,
        ),
    ),
    "qwen2": Family(_qwen2),
    "qwen2_moe": Family(_qwen2_moe, _STACKED),
    "qwen3": Family(_qwen3),
    "qwen3_moe": Family(_qwen3_moe, _STACKED),
    "gpt_oss": Family(
        _gpt_oss,
        (
            (r"\.mlp\.router\.", ".mlp.gate."),
            (r"(\.mlp\.experts\.\w+_proj)_bias$", r"\1.bias"),
            *_STACKED,
        ),
        interleaved_experts=True,
    ),
    "smollm3": Family(_smollm3),
    "granite": Family(_granite),
    "granitemoe": Family(_granitemoe, _GRANITE_EXPERTS),
    "granitemoeshared": Family(_granitemoe, _GRANITE_EXPERTS),
    "olmo2": Family(_olmo2),
    "olmoe": Family(_olmoe, _STACKED),
    "phi3": Family(_phi3, rotates_part=True),
    "gemma": Family(_gemma, norm_offset=1.0),
    "gemma2": Family(_gemma2, norm_offset=1.0),
    "gemma3_text": Family(_gemma3, norm_offset=1.0),
    "stablelm": Family(_stablelm, ((r"\.([qk])_layernorm\.norms\.", r".\1_norm."),), rotates_part=True),
    "phi": Family(
        _phi,
        (
            (r"self_attn\.dense\.", "self_attn.o_proj."),
            (r"mlp\.fc1\.", "mlp.up_proj."),
            (r"mlp\.fc2\.", "mlp.down_proj."),
            (r"^final_layernorm\.", "norm."),
            (r"\.([qk])_layernorm\.", r".\1_norm."),
        ),
        rotates_part=True,
    ),
    "gpt2": Family(
        _gpt2,
        (
            (r"^transformer\.", ""),
            (r"^wte\.", "embed_tokens."),
            (r"^wpe\.", "embed_positions."),
            (r"^ln_f\.", "norm."),
            (r"^h\.", "layers."),
            (r"\.ln_1\.", ".input_layernorm."),
            (r"\.ln_2\.", ".post_attention_layernorm."),
            (r"\.attn\.c_attn\.", ".self_attn.qkv_proj."),
            (r"\.attn\.c_proj\.", ".self_attn.o_proj."),
            (r"\.mlp\.c_fc\.", ".mlp.up_proj."),
            (r"\.mlp\.c_proj\.", ".mlp.down_proj."),
        ),
        transposed=r"(qkv_proj|o_proj|up_proj|down_proj)\.weight$",
        ignored=r"\.attn\.(masked_)?bias$",
    ),
    "falcon": Family(
        _falcon,
        (
            (r"^transformer\.", ""),
            (r"^word_embeddings\.", "embed_tokens."),
            (r"^ln_f\.", "norm."),
            (r"^h\.", "layers."),
            (r"\.self_attention\.query_key_value\.", ".self_attn.qkv_proj."),
            (r"\.self_attention\.dense\.", ".self_attn.o_proj."),
            (r"\.mlp\.dense_h_to_4h\.", ".mlp.up_proj."),
            (r"\.mlp\.dense_4h_to_h\.", ".mlp.down_proj."),
            (r"\.ln_attn\.", ".input_layernorm."),
            (r"\.ln_mlp\.", ".pre_feedforward_layernorm."),
        ),
        grouped_queries=True,
    ),
}
"""By `model_type` of `config.json`."""


def config_of(folder: ModelFolder) -> DecoderConfig:
    """The sizes of the model in a folder; `HuggingFaceImportError` if it is of a family that is not known."""
    fields = family_of(folder).fields(folder)
    if "hidden_size" not in fields:
        heads, hidden = folder.integer("num_attention_heads", most=1 << 12), folder.integer("hidden_size")
        epsilon = "layer_norm_eps" if fields.get("layer_norm") else "rms_norm_eps"
        shared: Fields = {
            "hidden_size": hidden,
            "num_hidden_layers": folder.integer("num_hidden_layers", most=1 << 10),
            "num_attention_heads": heads,
            "head_dim": folder.integer("head_dim", hidden // heads, most=1 << 16),
            "max_position_embeddings": folder.integer("max_position_embeddings", 2048),
        }
        if "num_key_value_heads" not in fields:
            shared["num_key_value_heads"] = folder.integer("num_key_value_heads", heads, most=heads)
        if "intermediate_size" not in fields:
            shared["intermediate_size"] = folder.integer("intermediate_size")
        if "rms_norm_eps" not in fields:
            shared["rms_norm_eps"] = folder.number(epsilon, 1e-5)
        if "hidden_act" not in fields:
            shared["hidden_act"] = folder.text("hidden_act", "silu")
        if "tie_word_embeddings" not in fields:
            shared["tie_word_embeddings"] = folder.flag("tie_word_embeddings")
        fields = {**shared, **_rope(folder, shared["head_dim"]), **fields}
    config = DecoderConfig(vocab_size=folder.integer("vocab_size"), **fields)
    if config.hidden_act not in ACTIVATIONS:
        raise folder.error(f"the activation {config.hidden_act!r} is not supported; known are {', '.join(ACTIVATIONS)}")
    if config.num_attention_heads % config.num_key_value_heads or config.head_dim % 2 or not config.head_dim:
        raise folder.error(
            f"{config.num_attention_heads} heads of {config.head_dim} features cannot share "
            f"{config.num_key_value_heads} heads of keys"
        )
    return config


def family_of(folder: ModelFolder) -> Family:
    """What the family of the model differs in; `HuggingFaceImportError` if it is not known."""
    name = folder.text("model_type")
    if name not in FAMILIES:
        raise folder.error(f"the model type {name!r} is not supported; known are {', '.join(FAMILIES)}")
    return FAMILIES[name]


def _windows(folder: ModelFolder, usual: Callable[[int], bool]) -> tuple[int | None, ...]:
    """The window of each layer: of those that `layer_types` says, or else the usual ones."""
    layers = folder.integer("num_hidden_layers", most=1 << 10)
    if not folder.config.get("sliding_window"):
        return ()
    window, kinds = folder.integer("sliding_window"), folder.values("layer_types", layers)
    if kinds is None:
        return tuple(window if usual(layer) else None for layer in range(layers))
    known: Mapping[Any, int | None] = {"sliding_attention": window, "full_attention": None}
    if unknown := [kind for kind in kinds if not isinstance(kind, str) or kind not in known]:
        raise folder.error(f"'layer_types' of config.json expected {', '.join(known)}, got {unknown[0]!r}")
    return tuple(known[kind] for kind in kinds)


def _rope_table(folder: ModelFolder, kind: str = "full_attention") -> Mapping[str, Any]:
    """What is said about rotary embeddings, of layers of one kind if these differ."""
    found = folder.table("rope_parameters") or folder.table("rope_scaling")
    inner: Any = found.get(kind, {} if kind == "sliding_attention" else found)
    return cast("Mapping[str, Any]", inner) if isinstance(inner, dict) else {}


def _rope(folder: ModelFolder, features: int) -> Fields:
    """The fields about rotary embeddings; `HuggingFaceImportError` for a scaling that is not known."""
    table = _rope_table(folder)
    base = number(folder, table, "rope_theta", folder.number("rope_theta", 10000.0))
    share = number(folder, table, "partial_rotary_factor", folder.number("partial_rotary_factor", 1.0))
    scaling = _scaling(folder, table)
    if share != 1 and not family_of(folder).rotates_part:
        if scaling is not None:
            raise folder.error(f"scaled rotary embeddings of a part ({share}) of the features are not supported")
        share = 1.0
    rotated = int(features * share)
    if not 0 < rotated <= features or rotated % 2 or base <= 0:
        raise folder.error(f"expected an even number of rotated features, got {rotated} of {features}")
    return {
        "rope_theta": base,
        "rope_scaling": scaling,
        "rotary_features": None if rotated == features else rotated,
    }


def _scaling(folder: ModelFolder, table: Mapping[str, Any]) -> RopeScaling | None:
    kind = table.get("rope_type", table.get("type", "default"))

    def size(key: str) -> int:
        return int(positive(folder, table, key, folder.integer("max_position_embeddings", 2048)))

    match kind:
        case "default" | "dynamic" | None:
            # Dynamic ones are scaled for texts that are longer than `max_position_embeddings`, which there are not.
            return None
        case "linear":
            return LinearScaling(positive(folder, table, "factor"))
        case "llama3":
            low, high = (number(folder, table, f"{end}_freq_factor") for end in ("low", "high"))
            return Llama3Scaling(positive(folder, table, "factor"), low, high, size("original_max_position_embeddings"))
        case "yarn":
            original = size("original_max_position_embeddings")
            factor = positive(folder, table, "factor", folder.integer("max_position_embeddings", 2048) / original)
            attention = None if table.get("attention_factor") is None else number(folder, table, "attention_factor")
            if attention is None and table.get("mscale") and table.get("mscale_all_dim"):
                one, all_ = (yarn_magnitude(factor, number(folder, table, key)) for key in ("mscale", "mscale_all_dim"))
                attention = one / all_
            fast, slow = positive(folder, table, "beta_fast", 32.0), positive(folder, table, "beta_slow", 1.0)
            return YarnScaling(factor, original, fast, slow, attention, table.get("truncate") is not False)
        case "longrope":
            short, long = (_divisors(folder, table, f"{length}_factor") for length in ("short", "long"))
            original = int(positive(folder, {**folder.config, **table}, "original_max_position_embeddings"))
            most = folder.integer("max_position_embeddings", 2048)
            if table.get("factor") is not None:
                most = int(original * positive(folder, table, "factor"))
            usual = LongRopeScaling.usual_magnitude(most, original)
            return LongRopeScaling(short, long, original, positive(folder, table, "attention_factor", usual))
        case _:
            raise folder.error(f"rotary embeddings scaled by {kind!r} are not supported")


def _divisors(folder: ModelFolder, table: Mapping[str, Any], key: str) -> NDArray[Any]:
    values: Any = table.get(key)
    given = cast("list[Any]", values) if isinstance(values, list) else []
    numbers = [positive(folder, {key: each}, key) for each in given]
    if not numbers:
        raise folder.error(f"'{key}' of config.json expected positive numbers, got {values!r}")
    return np.array(numbers)

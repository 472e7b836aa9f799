"""The language models that GGUF files describe, with their weights by name."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from relax_dialect.frontend.gguf.architectures import config_of
from relax_dialect.frontend.gguf.file import GGUFFile, GGUFImportError, Tensor
from relax_dialect.nn.config import DecoderConfig
from relax_dialect.nn.decoder import Decoder, split_fused
from relax_dialect.nn.module import StateError

_NAMES: Mapping[str, str] = {
    "token_embd": "embed_tokens",
    "position_embd": "embed_positions",
    "output_norm": "norm",
    "output": "lm_head",
}
_LAYER_NAMES: Mapping[str, str] = {
    "attn_norm": "input_layernorm",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_exps": "mlp.experts.gate_proj",
    "ffn_up_exps": "mlp.experts.up_proj",
    "ffn_down_exps": "mlp.experts.down_proj",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
    "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
    "ffn_up_shexp": "mlp.shared_expert.up_proj",
    "ffn_down_shexp": "mlp.shared_expert.down_proj",
    "post_ffw_norm": "post_feedforward_layernorm",
}
"""The parameters of `relax_dialect.nn.Decoder` by the names of tensors, of a layer or of none."""

_NORMS_APART: Mapping[str, str] = {"attn_norm": "pre_feedforward_layernorm", "attn_norm_2": "input_layernorm"}
"""Of a layer whose attention has a norm of its own."""

_OF_ROPE = re.compile(r"rope_(freqs|factors_short|factors_long)\.weight")
"""Tensors that the configuration has."""


def model_of(file: GGUFFile, context: int | None = None) -> Decoder:
    """The model in a file, with its weights, which stay in the file.

    Some models have other rotary embeddings for a longer `context`; short ones are expected otherwise.
    """
    config = config_of(file)
    config = config if context is None else config.for_context(context)
    model = Decoder(config)
    fused = config.gated_mlp and config.experts is None and "blk.0.ffn_gate.weight" not in file.tensors
    used = {key: tensor for key, tensor in file.tensors.items() if not _OF_ROPE.fullmatch(key)}
    state = {
        name: _plain(tensor, name) for key, tensor in used.items() if (name := _name(key, config, fused)) is not None
    }
    unknown = [key for key in used if _name(key, config, fused) is None]
    if unknown:
        raise GGUFImportError(f"{file.path}: unknown tensors: {', '.join(unknown[:5])}")
    try:
        model.load_state_dict(split_fused(state, config))
    except StateError as error:
        raise GGUFImportError(f"{file.path}: {error}") from error
    return model


def _plain(tensor: Tensor, name: str) -> Tensor:
    """Elements in the byte order of this machine, which that of the file is on all that are supported.

    A matrix of one row is a vector in the file.
    """
    if not isinstance(tensor, np.ndarray):
        return tensor
    if name.endswith("shared_expert_gate.weight") and tensor.ndim == 1:
        tensor = tensor[None]
    return tensor if tensor.dtype.isnative else tensor.astype(tensor.dtype.newbyteorder("="))


def _name(key: str, config: DecoderConfig, fused: bool) -> str | None:
    """The parameter that a tensor is; `None` if it is none. With `fused`, gates are rows of `ffn_up`."""
    layer = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", key)
    if layer is not None:
        name = _LAYER_NAMES.get(layer[2])
        if config.norms == "parallel apart" and layer[2] in _NORMS_APART:
            name = _NORMS_APART[layer[2]]
        elif layer[2] == "ffn_norm":
            name = "pre_feedforward_layernorm" if config.norms == "both" else "post_attention_layernorm"
        elif layer[2] == "ffn_up" and fused:
            name = "mlp.gate_up_proj"
        if layer[2] == "attn_sinks":
            return f"layers.{int(layer[1])}.self_attn.sinks"
        return None if name is None else f"layers.{int(layer[1])}.{name}.{layer[3]}"
    stem, _, kind = key.rpartition(".")
    return f"{_NAMES[stem]}.{kind}" if stem in _NAMES else None

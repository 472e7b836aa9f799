"""The language models that GGUF files describe: their architecture from the metadata, their weights by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from relax_dialect.frontend.gguf.errors import GGUFImportError
from relax_dialect.frontend.gguf.file import GGUFFile, Tensor
from relax_dialect.nn.decoder import Decoder, DecoderConfig
from relax_dialect.nn.module import StateError


@dataclass(frozen=True)
class Architecture:
    """What a family of models differs in."""

    interleaved_rope: bool = False
    attention_bias: bool = False
    qk_norm: bool = False


ARCHITECTURES: Mapping[str, Architecture] = {
    # The converter of Llama's checkpoints puts features that are rotated together side by side.
    "llama": Architecture(interleaved_rope=True),
    "qwen2": Architecture(attention_bias=True),
    "qwen3": Architecture(qk_norm=True),
}
"""By the names in `general.architecture`."""

_NAMES: Mapping[str, str] = {
    "token_embd": "embed_tokens",
    "output_norm": "norm",
    "output": "lm_head",
}
_LAYER_NAMES: Mapping[str, str] = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""The parameters of `relax_dialect.nn.decoder.Decoder` by the names of tensors, of a layer or of none."""


def config_of(file: GGUFFile) -> DecoderConfig:
    """The sizes of the model in a file; `GGUFImportError` if it is of an architecture that is not known."""
    name = file.text("general.architecture")
    kind = ARCHITECTURES.get(name)
    if kind is None:
        raise GGUFImportError(
            f"{file.path}: the architecture {name!r} is not supported; known are {', '.join(ARCHITECTURES)}"
        )
    if (
        scaling := file.metadata.get(f"{name}.rope.scaling.type", "none")
    ) != "none" or "rope_freqs.weight" in file.tensors:
        raise GGUFImportError(f"{file.path}: scaled rotary embeddings are not supported ({scaling})")

    def size(key: str, otherwise: int | None = None, most: int = 1 << 24) -> int:
        return file.integer(f"{name}.{key}", otherwise, 1, most)

    heads, hidden = size("attention.head_count", most=1 << 12), size("embedding_length")
    features = size("attention.key_length", hidden // heads)
    if (
        size("attention.value_length", features) != features
        or file.integer(f"{name}.rope.dimension_count", features) != features
    ):
        raise GGUFImportError(f"{file.path}: heads of values, and what is rotated, have to be as long as heads of keys")
    kv_heads = size("attention.head_count_kv", heads, heads)
    if heads % kv_heads or features % 2:
        raise GGUFImportError(
            f"{file.path}: {heads} heads of {features} features cannot share {kv_heads} heads of keys"
        )
    table = file.tensors.get("token_embd.weight")
    if table is None or len(table.shape) != 2:
        raise GGUFImportError(f"{file.path}: expected the tensor token_embd.weight of rank 2")
    return DecoderConfig(
        hidden_size=hidden,
        num_hidden_layers=size("block_count", most=1 << 10),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=features,
        intermediate_size=size("feed_forward_length"),
        vocab_size=table.shape[0],
        max_position_embeddings=size("context_length"),
        rms_norm_eps=file.number(f"{name}.attention.layer_norm_rms_epsilon", 1e-5),
        rope_theta=file.number(f"{name}.rope.freq_base", 10000.0),
        interleaved_rope=kind.interleaved_rope,
        attention_bias=kind.attention_bias,
        qk_norm=kind.qk_norm,
        tie_word_embeddings="output.weight" not in file.tensors,
    )


def model_of(file: GGUFFile) -> Decoder:
    """The model in a file, with its weights, which stay in the file."""
    model = Decoder(config_of(file))
    state = {name: _plain(tensor) for key, tensor in file.tensors.items() if (name := _name(key)) is not None}
    unknown = [key for key in file.tensors if _name(key) is None]
    if unknown:
        raise GGUFImportError(f"{file.path}: unknown tensors: {', '.join(unknown[:5])}")
    try:
        model.load_state_dict(state)
    except StateError as error:
        raise GGUFImportError(f"{file.path}: {error}") from error
    return model


def _plain(tensor: Tensor) -> Tensor:
    """Elements in the byte order of this machine, which that of the file is on all that are supported."""
    return (
        tensor.astype(tensor.dtype.newbyteorder("="))
        if isinstance(tensor, np.ndarray) and not tensor.dtype.isnative
        else tensor
    )


def _name(key: str) -> str | None:
    """The parameter that a tensor is; `None` if it is none."""
    layer = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", key)
    if layer is not None:
        name = _LAYER_NAMES.get(layer[2])
        return None if name is None else f"layers.{int(layer[1])}.{name}.{layer[3]}"
    stem, _, kind = key.rpartition(".")
    return f"{_NAMES[stem]}.{kind}" if stem in _NAMES else None

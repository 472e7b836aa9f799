"""The language models that folders describe, with their weights by the names of `nn.Decoder`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from relax_dialect.frontend.huggingface.families import Family, config_of, family_of
from relax_dialect.frontend.huggingface.folder import ModelFolder
from relax_dialect.frontend.huggingface.quantized import packed_tensors
from relax_dialect.nn.config import DecoderConfig
from relax_dialect.nn.decoder import Decoder, split_fused
from relax_dialect.nn.module import Linear, Parameter, StateError
from tir_dialect.block_arrays import BlockArray

if TYPE_CHECKING:
    from relax_dialect.nn.module import Elements


def model_of(folder: ModelFolder, context: int | None = None) -> Decoder:
    """The model in a folder, with its weights; `HuggingFaceImportError` if these do not fit.

    Some models have other rotary embeddings for a longer `context`; short ones are expected otherwise.
    """
    family, config = family_of(folder), config_of(folder)
    if context is not None and context > config.max_position_embeddings:
        raise folder.error(f"expected a context of at most {config.max_position_embeddings} tokens, got {context}")
    config = config if context is None else config.for_context(context)
    state: dict[str, Elements] = {}
    for key, array in packed_tensors(folder).items():
        name = key.removeprefix("model.")
        if re.search(family.ignored, name) or (config.tie_word_embeddings and name.startswith("lm_head.")):
            continue
        for pattern, replacement in family.names:
            name = re.sub(pattern, replacement, name)
        state[name] = _stored(family, config, name, array)
    if "lm_head.bias" in state and "embed_tokens.weight" in state:
        state.setdefault("lm_head.weight", state["embed_tokens.weight"])
    model = Decoder(config)
    try:
        state = split_fused(_stacked(state), config)
        _set_input_orders(model, state)
        model.load_state_dict(_without_zeros(state, model) if folder.table("quantization_config") else state)
    except StateError as error:
        raise folder.error(str(error)) from error
    return model


def _set_input_orders(model: Decoder, state: Mapping[str, Elements]) -> None:
    """Gives each layer whose weights are packed in another order of inputs a parameter for it."""
    layers = {name: module for name, module in model.named_modules() if isinstance(module, Linear)}
    for name, order in state.items():
        owner, _, kind = name.rpartition(".")
        if kind == "input_order" and owner not in layers:
            raise StateError(f"'{owner}' has inputs in an order of its own (desc_act), which only matrices can have")
        if kind == "input_order":
            layers[owner].input_order = Parameter(order.shape)


def _without_zeros(state: Mapping[str, Elements], model: Decoder) -> Mapping[str, Elements]:
    """A state without biases of zeros that the model has not: some tools give one to each layer that they quantise."""
    known = {name for name, _ in model.named_parameters()}
    return {
        name: each
        for name, each in state.items()
        if name in known or not name.endswith(".bias") or not isinstance(each, np.ndarray) or np.any(each)
    }


def _stacked(state: Mapping[str, Elements]) -> dict[str, Elements]:
    """A state in which weights of experts or of norms of heads, which have numbers in their names, are one tensor."""
    found: dict[str, Elements] = {}
    numbered: dict[str, dict[int, Elements]] = {}
    for name, array in state.items():
        match = re.fullmatch(r"(.*\.(?:mlp\.experts|[qk]_norm))\.(\d{1,4})\.(.*)", name)
        if match is None:
            found[name] = array
        else:
            numbered.setdefault(f"{match[1]}.{match[3]}", {})[int(match[2])] = array
    for name, arrays in numbered.items():
        kinds = {
            (each.shape, each.block_format.name if isinstance(each, BlockArray) else "") for each in arrays.values()
        }
        if sorted(arrays) != list(range(len(arrays))) or len(kinds) > 1:
            raise StateError(
                f"'{name}' expected tensors of one shape and format, numbered from 0, got {sorted(arrays)}"
            )
        found[name] = _stack([arrays[number] for number in range(len(arrays))])
    return found


def _stack(arrays: Sequence[Elements]) -> Elements:
    packed = np.stack([each.packed if isinstance(each, BlockArray) else each for each in arrays])
    return BlockArray(packed, arrays[0].block_format) if isinstance(arrays[0], BlockArray) else packed


def _stored(family: Family, config: DecoderConfig, name: str, array: Elements) -> Elements:
    """A tensor as `nn.Decoder` has it; packed weights are rows of outputs in all checkpoints."""
    if name.endswith(".input_order"):
        return array
    if family.interleaved_experts and ".experts." in name:
        # Experts as (outputs, inputs), all rows of gates first.
        if isinstance(array, np.ndarray) and array.ndim == 3:
            array = np.swapaxes(array, 1, 2)
        if "gate_up_proj" not in name:
            return array
        if isinstance(array, np.ndarray):
            return np.concatenate([array[:, ::2], array[:, 1::2]], axis=1)
        return BlockArray(np.concatenate([array.packed[:, ::2], array.packed[:, 1::2]], axis=1), array.block_format)
    if family.grouped_queries and ".qkv_proj." in name:
        # Rows of all queries, all keys, then all values, of rows that are ordered by the heads of keys.
        groups, features = config.num_key_value_heads, config.head_dim
        each = config.num_attention_heads // groups + 2
        rows = groups * each * features
        if array.shape[:1] != (rows,):
            raise StateError(f"'{name}' expected {rows} rows, got the shape {list(array.shape)}")
        order = np.arange(rows).reshape(groups, each, features)
        order = np.concatenate([part.ravel() for part in np.split(order, [each - 2, each - 1], axis=1)])
        return BlockArray(array.packed[order], array.block_format) if isinstance(array, BlockArray) else array[order]
    if isinstance(array, BlockArray):
        return array
    if family.transposed is not None and re.search(family.transposed, name):
        return array.T
    if family.norm_offset and name.endswith("norm.weight"):
        return array.astype(np.float32) + np.float32(family.norm_offset)
    return array

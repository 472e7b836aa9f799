"""Folders of Hugging Face: names and layouts of weights, configurations, and what is refused.

`families.py` compares all families with `transformers`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from relax_dialect.frontend.huggingface import HuggingFaceImportError, read_folder
from relax_dialect.frontend.huggingface.families import config_of
from relax_dialect.frontend.huggingface.models import model_of
from relax_dialect.interpreter import run
from relax_dialect.nn import Decoder, DecoderConfig, DecoderProgram, ExpertsConfig, Llama3Scaling, YarnScaling
from relax_dialect.nn.config import DivisorScaling
from tests.support import decoders

IDS = np.array([5, 40, 3, 7, 5, 5, 31], np.int64)
LLAMA: Mapping[str, Any] = {
    "model_type": "llama",
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 20,
    "vocab_size": 48,
    "max_position_embeddings": 64,
    "rope_theta": 100.0,
}
GPT_2: Mapping[str, Any] = {
    "model_type": "gpt2",
    "n_embd": 24,
    "n_layer": 2,
    "n_head": 3,
    "n_positions": 32,
    "vocab_size": 48,
}


def _folder(path: Path, config: Mapping[str, Any], tensors: Mapping[str, np.ndarray] | None = None) -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    safetensors.numpy.save_file(
        {name: np.ascontiguousarray(each) for name, each in (tensors or {}).items()}, path / "model.safetensors"
    )
    return path


def _checkpoint(path: Path, config: Mapping[str, Any]) -> tuple[Mapping[str, np.ndarray], dict[str, np.ndarray]]:
    """Random weights by the names of `nn.Decoder`, and as a checkpoint of Llama has them."""
    model = Decoder(config_of(read_folder(_folder(path, config))))
    weights = decoders.random_weights(model)
    return weights, {name if name.startswith("lm_head") else f"model.{name}": each for name, each in weights.items()}


def _check(path: Path, weights: Mapping[str, np.ndarray]) -> None:
    model = model_of(read_folder(path))
    expected = decoders.logits(model.config, {k: v.astype(np.float64) for k, v in weights.items()}, IDS)
    program = DecoderProgram(model, functions=("every",))
    found = np.asarray(run(program.module(), "every", [IDS, *decoders.Caches(program, 8).arguments(0)]))
    assert np.abs(found - expected).max() < 2e-5 * np.abs(expected).max()


def test_llama_in_several_files(tmp_path: Path):
    weights, tensors = _checkpoint(tmp_path, LLAMA)
    (tmp_path / "model.safetensors").unlink()
    names = list(tensors)
    files = {"one.safetensors": names[:5], "two.safetensors": names[5:]}
    for file, own in files.items():
        safetensors.numpy.save_file({name: tensors[name] for name in own}, tmp_path / file)
    index = {"weight_map": {name: file for file, own in files.items() for name in own}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    _check(tmp_path, weights)
    index["weight_map"]["model.norm.weight"] = "../two.safetensors"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(HuggingFaceImportError, match="expected names of files in the folder"):
        read_folder(tmp_path)


def test_norms_of_gemma_are_stored_without_one(tmp_path: Path):
    config = {**LLAMA, "model_type": "gemma2", "sliding_window": 3, "query_pre_attn_scalar": 20}
    weights, tensors = _checkpoint(tmp_path, config)
    _folder(tmp_path, config, {name: each - ("norm" in name) for name, each in tensors.items()})
    _check(tmp_path, weights)


def test_fused_projections_of_phi_3(tmp_path: Path):
    config = {**LLAMA, "model_type": "phi3", "sliding_window": None}
    weights, tensors = _checkpoint(tmp_path, config)
    for layer in range(2):
        for owner, name, parts in (("self_attn", "qkv_proj", "qkv"), ("mlp", "gate_up_proj", ("gate", "up"))):
            names = [f"model.layers.{layer}.{owner}.{part}_proj.weight" for part in parts]
            tensors[f"model.layers.{layer}.{owner}.{name}.weight"] = np.concatenate(
                [tensors.pop(each) for each in names]
            )
    _folder(tmp_path, config, tensors)
    _check(tmp_path, weights)


def _config(tmp_path: Path, **fields: Any) -> DecoderConfig:
    return config_of(read_folder(_folder(tmp_path, {**LLAMA, **fields})))


def test_only_some_families_rotate_a_part(tmp_path: Path):
    """The others know nothing of the factor; with scaled embeddings they fail."""
    table = {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}
    assert _config(tmp_path, rope_parameters=table).rotary_features is None
    assert _config(tmp_path, model_type="phi3", rope_parameters=table).rotary_features == 4
    assert _config(tmp_path, model_type="stablelm", partial_rotary_factor=0.25).rotary_features == 2
    with pytest.raises(HuggingFaceImportError, match=r"scaled rotary embeddings of a part \(0.5\) of the features"):
        _config(tmp_path, rope_parameters={**table, "rope_type": "linear", "factor": 2.0})


def test_windows_of_experts_are_those_of_all_layers(tmp_path: Path):
    fields = {"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "max_window_layers": 1}
    fields |= {"model_type": "qwen3_moe", "sliding_window": 5}
    assert _config(tmp_path, **fields, use_sliding_window=True).windows == (5, 5)
    assert _config(tmp_path, **fields, use_sliding_window=False).windows == (None, None)


@pytest.mark.parametrize(("said", "meant"), [("gelu", "gelu_pytorch_tanh"), ("silu", "silu")])
def test_the_activation_of_the_first_gemma(said: str, meant: str, tmp_path: Path):
    assert _config(tmp_path, model_type="gemma", hidden_act=said).hidden_act == meant


def test_a_head_with_the_weights_of_the_embedding_has_its_own_bias(tmp_path: Path):
    config = {**LLAMA, "model_type": "phi", "num_key_value_heads": 4, "head_dim": 6, "tie_word_embeddings": True}
    weights, tensors = _checkpoint(tmp_path, config)
    weights = {**weights, "lm_head.weight": weights["embed_tokens.weight"]}
    del tensors["lm_head.weight"]
    _folder(
        tmp_path, config, {name.replace("model.norm.", "model.final_layernorm."): tensors[name] for name in tensors}
    )
    _check(tmp_path, weights)


MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_local_experts": 3, "num_experts_per_tok": 2}


@pytest.mark.parametrize("is_stacked", [False, True])
def test_experts_of_mixtral(is_stacked: bool, tmp_path: Path):
    """Each expert's weights by its number, and all of them in one tensor, as newer checkpoints have them."""
    weights, tensors = _checkpoint(tmp_path, MIXTRAL)
    for name in [name for name in tensors if ".mlp." in name]:
        stack, owner = tensors.pop(name), name.partition(".mlp.")[0]
        if "experts" not in name:
            tensors[name.replace(".mlp.", ".block_sparse_moe.")] = stack
        elif not is_stacked:
            part = {"gate": "w1", "up": "w3", "down": "w2"}[name.split(".")[-2].removesuffix("_proj")]
            for number, each in enumerate(stack):
                tensors[f"{owner}.block_sparse_moe.experts.{number}.{part}.weight"] = each
        elif "down" in name:
            tensors[name.removesuffix(".weight")] = stack
    if is_stacked:
        for layer in range(2):
            gate, up = (weights[f"layers.{layer}.mlp.experts.{part}_proj.weight"] for part in ("gate", "up"))
            tensors[f"model.layers.{layer}.mlp.experts.gate_up_proj"] = np.concatenate([gate, up], axis=1)
    _folder(tmp_path, MIXTRAL, tensors)
    _check(tmp_path, weights)
    if not is_stacked:
        del tensors["model.layers.0.block_sparse_moe.experts.1.w2.weight"]
        _folder(tmp_path, MIXTRAL, tensors)
        with pytest.raises(
            HuggingFaceImportError, match=r"expected tensors of one shape and format, numbered from 0, got \[0, 2"
        ):
            model_of(read_folder(tmp_path))


GPT_OSS = {
    **LLAMA,
    "model_type": "gpt_oss",
    "hidden_size": 64,
    "intermediate_size": 32,
    "num_local_experts": 3,
    "num_experts_per_tok": 2,
    "sliding_window": 4,
}


@pytest.mark.parametrize("is_packed", [False, True])
def test_experts_of_gpt_oss(is_packed: bool, tmp_path: Path):
    """Gates and what they multiply are in turn: transposed, or as blocks of MXFP4 with exponents apart."""
    weights, tensors = _checkpoint(tmp_path, GPT_OSS)
    decoded = dict(weights)
    rng = np.random.default_rng(0)
    for name in [name for name in tensors if ".mlp.gate." in name]:
        tensors[name.replace(".mlp.gate.", ".mlp.router.")] = tensors.pop(name)
    for layer in range(2):
        experts = f"layers.{layer}.mlp.experts"
        stored = {}
        for kind in ("weight", "bias"):
            gate, up, down = (tensors.pop(f"model.{experts}.{part}_proj.{kind}") for part in ("gate", "up", "down"))
            stored["gate_up_proj", kind] = np.stack([gate, up], axis=2).reshape(3, -1, *gate.shape[2:])
            stored["down_proj", kind] = down
        for (name, kind), array in stored.items():
            if kind == "bias":
                tensors[f"model.{experts}.{name}_bias"] = array
            elif not is_packed:
                tensors[f"model.{experts}.{name}"] = np.swapaxes(array, 1, 2)
            else:
                numbers = rng.integers(0, 16, array.shape, np.uint8)
                scales = rng.integers(122, 126, (*array.shape[:2], array.shape[2] // 32), np.uint8)
                tensors[f"model.{experts}.{name}_blocks"] = (numbers[..., ::2] | numbers[..., 1::2] << 4).reshape(
                    *scales.shape, 16
                )
                tensors[f"model.{experts}.{name}_scales"] = scales
                values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)[numbers & 7] * np.where(numbers & 8, -1, 1)
                own = values * np.repeat(2.0 ** (scales.astype(int) - 127), 32, axis=-1)
                parts = {"gate_proj": own[:, ::2], "up_proj": own[:, 1::2]} if "gate" in name else {name: own}
                decoded |= {f"{experts}.{part}.weight": each.astype(np.float32) for part, each in parts.items()}
    said = {"quantization_config": {"quant_method": "mxfp4"}} if is_packed else {}
    _folder(tmp_path, GPT_OSS | said, tensors)
    _check(tmp_path, decoded)
    if is_packed:
        del tensors["model.layers.1.mlp.experts.down_proj_scales"]
        _folder(tmp_path, GPT_OSS, tensors)
        with pytest.raises(HuggingFaceImportError, match="down_proj_blocks' expected 16 bytes for each exponent"):
            model_of(read_folder(tmp_path))


def test_transposed_weights_of_gpt_2(tmp_path: Path):
    model = Decoder(config_of(read_folder(_folder(tmp_path, GPT_2))))
    weights = decoders.random_weights(model)
    tensors = {
        "transformer.wte.weight": weights["embed_tokens.weight"],
        "transformer.wpe.weight": weights["embed_positions.weight"],
        "transformer.ln_f.weight": weights["norm.weight"],
        "transformer.ln_f.bias": weights["norm.bias"],
    }
    names = {
        "input_layernorm": "ln_1",
        "post_attention_layernorm": "ln_2",
        "self_attn.o_proj": "attn.c_proj",
        "mlp.up_proj": "mlp.c_fc",
        "mlp.down_proj": "mlp.c_proj",
    }
    for layer in range(2):
        ours, theirs = f"layers.{layer}", f"transformer.h.{layer}"
        tensors[f"{theirs}.attn.bias"] = np.ones((1, 1, 32, 32), np.float32)
        for kind in ("weight", "bias"):
            fused = np.concatenate([weights[f"{ours}.self_attn.{part}_proj.{kind}"] for part in "qkv"])
            tensors[f"{theirs}.attn.c_attn.{kind}"] = fused.T
            for mine, name in names.items():
                tensors[f"{theirs}.{name}.{kind}"] = weights[f"{ours}.{mine}.{kind}"].T
    _folder(tmp_path, GPT_2, tensors)
    _check(tmp_path, weights)


def test_configurations(tmp_path: Path):
    def config(**changes: Any) -> Any:
        return config_of(read_folder(_folder(tmp_path, {**LLAMA, **changes})))

    llama3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
    assert config(rope_scaling={"rope_type": "llama3", **llama3}).rope_scaling == Llama3Scaling(8.0, 1.0, 4.0, 32)
    newer = config(rope_parameters={"rope_type": "yarn", "rope_theta": 7.0, "factor": 2.0})
    assert (newer.rope_theta, newer.rope_scaling) == (7.0, YarnScaling(2.0, 64))
    factors = {"short_factor": [1, 2, 3, 4], "long_factor": [2, 4, 6, 8]}
    long = config(rope_scaling={"type": "longrope", **factors}, original_max_position_embeddings=16)
    for context, first in ((16, 1), (17, 2)):
        chosen = long.for_context(context).rope_scaling
        assert isinstance(chosen, DivisorScaling)
        assert (chosen.numbers[0], chosen.magnitude) == (first, (1 + math.log(4) / math.log(16)) ** 0.5)
    assert config(model_type="mistral", sliding_window=5).windows == (5, 5)
    assert config(model_type="qwen2", sliding_window=5).windows == (None, None)
    kinds = ["sliding_attention", "full_attention"]
    assert config(model_type="qwen3", sliding_window=5, layer_types=kinds).windows == (5, None)
    assert config(model_type="smollm3", no_rope_layers=[1, 0]).unrotated_layers == {1}
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12}
    qwen = config(model_type="qwen3_moe", **experts, mlp_only_layers=[1], norm_topk_prob=True)
    assert (qwen.experts, qwen.dense_layers) == (ExpertsConfig(4, 2, 12), {1})
    gemma = config(model_type="gemma3_text", sliding_window=4, sliding_window_pattern=2, rope_local_base_freq=9.0)
    assert (gemma.windows, gemma.local_rope_theta, gemma.tie_word_embeddings) == ((4, None), 9.0, True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "mamba"}, "the model type 'mamba' is not supported; known are llama, mistral, mixtral"),
        ({"model_type": 3}, "'model_type' of config.json expected a text, got 3"),
        ({"hidden_size": None}, "'hidden_size' of config.json expected an integer from 1"),
        ({"num_hidden_layers": 10**9}, "expected an integer from 1 to 1024"),
        ({"attention_bias": "yes"}, "'attention_bias' of config.json expected true or false, got 'yes'"),
        ({"num_key_value_heads": 3}, "cannot share 3 heads of keys"),
        ({"hidden_act": "swish"}, "the activation 'swish' is not supported; known are silu"),
        ({"rope_scaling": {"type": "ntk"}}, "scaled by 'ntk' are not supported"),
        ({"rope_scaling": {"type": "longrope"}}, "'short_factor' of config.json expected positive numbers, got None"),
        ({"rope_scaling": {"type": "linear", "factor": "2"}}, "'factor' of config.json expected a number, got '2'"),
        ({"rope_scaling": []} | {"rope_parameters": [1]}, "expected a table"),
        ({"model_type": "granite", "logits_scaling": 0}, "'logits_scaling' of config.json expected a positive number"),
        ({"model_type": "gemma2", "query_pre_attn_scalar": -1}, "expected a positive number, got -1"),
        ({"rope_scaling": {"type": "yarn", "factor": 0}}, "'factor' of config.json expected a positive number"),
        ({**GPT_2, "n_head": 30}, "30 heads of 0 features"),
        ({"head_dim": 1 << 30}, "'head_dim' of config.json expected an integer from 1 to 65536"),
        ({"model_type": "falcon", "alibi": True}, "scores that depend on the distance .'alibi'."),
        ({"model_type": "qwen3", "sliding_window": 4, "layer_types": ["full"]}, "'layer_types' of config.json"),
        (MIXTRAL | {"num_experts_per_tok": 4}, "'num_experts_per_tok' of config.json expected an integer from 1 to 3"),
        (MIXTRAL | {"mlp_only_layers": 3}, "'mlp_only_layers' of config.json expected a list, got 3"),
        (GPT_OSS | {"swiglu_alpha": 1.5}, "'swiglu_alpha'"),
        (MIXTRAL | {"model_type": "olmoe", "clip_qkv": 0}, "'clip_qkv' of config.json expected a positive number"),
        ({}, "missing: embed_tokens.weight"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str, tmp_path: Path):
    _folder(tmp_path, {**LLAMA, **changes})
    with pytest.raises(HuggingFaceImportError, match=message):
        model_of(read_folder(tmp_path))


def test_configurations_of_many_lists(tmp_path: Path):
    """Other damage: `tests/fuzz/model_files.py`."""
    _folder(tmp_path, LLAMA)
    (tmp_path / "config.json").write_text("[" * 100_000)
    with pytest.raises(HuggingFaceImportError, match="cannot read"):
        read_folder(tmp_path)

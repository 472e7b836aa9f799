"""Metadata that change what a model computes: read, or refused with an error that names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from relax_dialect.frontend.gguf import GGUFImportError, read_file
from relax_dialect.frontend.gguf.architectures import ARCHITECTURES, config_of
from relax_dialect.frontend.gguf.models import model_of
from relax_dialect.nn.config import DecoderConfig, DivisorScaling, LinearScaling, YarnScaling, yarn_magnitude

HIDDEN, LAYERS = 8, 4
SIZES: Mapping[str, Any] = {
    "block_count": LAYERS,
    "context_length": 64,
    "embedding_length": HIDDEN,
    "feed_forward_length": 12,
    "attention.head_count": 2,
}
TABLE = {"token_embd.weight": np.zeros((4, HIDDEN))}
FREQS = {"rope_freqs.weight": np.array([1, 8])}
YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16}
WINDOW = {"attention.sliding_window": 4}
EXPERTS = {"expert_count": 3, "expert_used_count": 2}
STACK = {"blk.0.ffn_up_exps.weight": np.zeros((3, 5, HIDDEN))}


def _written(path: Path, name: str, options: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Path:
    writer = gguf.GGUFWriter(path, name)
    for key, value in {**SIZES, **options}.items():
        key = key if key.startswith(("general.", "split.")) else f"{name}.{key}"
        if isinstance(value, list):
            writer.add_array(key, value)
            continue
        add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
        add[type(value)](key, value)
    for key, each in {**TABLE, **tensors}.items():
        writer.add_tensor(key, each.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _config(
    path: Path, name: str, options: Mapping[str, Any] = {}, tensors: Mapping[str, np.ndarray] = {}
) -> DecoderConfig:
    return config_of(read_file(_written(path / "model.gguf", name, options, tensors)))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_what_a_file_does_not_say_changes_nothing(name: str, tmp_path: Path):
    """Neutral values of options are those of files without them; sizes may be said for each layer."""
    plain = _config(tmp_path, name)
    neutral = {
        "attention.causal": True,
        "attention.clamp_kqv": 0.0,
        "attention.head_count_kv": [2] * LAYERS,
        "expert_weights_scale": 1.0,
        "expert_gating_func": 1,
        "feed_forward_length": [12] * LAYERS,
        "logit_scale": 1.0,
        "rope.scaling.attn_factor": 1.0,
        "rope.scaling.factor": 9.0,
        "rope.scaling.type": "none",
        "swiglu_clamp_exp": [0.0] * LAYERS,
    }
    said = _config(tmp_path, name, neutral)
    for field in fields(DecoderConfig):
        assert getattr(said, field.name) == getattr(plain, field.name), field.name


@pytest.mark.parametrize(
    ("name", "options", "field", "value"),
    [
        ("llama", {"rope.scaling.factor": 4.0}, "rope_scaling", LinearScaling(4.0)),
        ("llama", {"rope.scale_linear": 4.0}, "rope_scaling", LinearScaling(4.0)),
        ("llama", {"rope.scaling.type": "linear"}, "rope_scaling", None),
        ("qwen2", YARN, "rope_scaling", YarnScaling(4.0, 16, attention_factor=yarn_magnitude(4.0))),
        (
            "llama",
            {"rope.scaling.type": "yarn", "rope.scaling.factor": 2.0, "rope.scaling.yarn_beta_fast": 8.0},
            "rope_scaling",
            YarnScaling(2.0, 64, 8.0, attention_factor=yarn_magnitude(2.0)),
        ),
        (
            "llama",
            {**YARN, "rope.scaling.attn_factor": 1.5, "rope.scaling.yarn_log_multiplier": 0.5},
            "rope_scaling",
            YarnScaling(4.0, 16, attention_factor=1.5 * yarn_magnitude(4.0) / yarn_magnitude(4.0, 0.5)),
        ),
        ("llama", WINDOW, "windows", (4,) * LAYERS),
        ("phi3", WINDOW, "windows", (4,) * LAYERS),
        ("gpt-oss", WINDOW, "windows", (4, None, 4, None)),
        ("gpt-oss", {**WINDOW, "attention.sliding_window_pattern": 3}, "windows", (4, 4, None, 4)),
        ("gemma2", {}, "windows", (4096, None, 4096, None)),
        ("gemma2", {}, "attn_logit_softcapping", 50.0),
        ("gemma2", {"final_logit_softcapping": 7.0}, "final_logit_softcapping", 7.0),
        ("gemma2", {"block_count": 46, "attention.key_length": 16}, "attention_scale", 0.5),
        ("gemma3", {"block_count": 62, "attention.key_length": 16}, "attention_scale", 0.5),
        (
            "gemma3",
            {**WINDOW, "attention.sliding_window_pattern": [True, False, False, True]},
            "windows",
            (4, None, None, 4),
        ),
        ("gemma3", {**WINDOW, "rope.freq_base_swa": 100.0}, "local_rope_theta", 100.0),
        ("gemma3", {"attention.sliding_window": 64}, "local_rope_theta", 10000.0),
        ("gemma3", {}, "local_rope_theta", None),
        ("gemma3", {"final_logit_softcapping": 7.0}, "final_logit_softcapping", 7.0),
        ("olmo2", {**WINDOW, **YARN}, "windows", (4, 4, 4, None)),
        ("olmo2", {**WINDOW, "rope.freq_base": 500.0}, "local_rope_theta", 500.0),
        ("granite", {"rope.scaling.finetuned": False}, "unrotated_layers", frozenset(range(LAYERS))),
        ("granite", {"logit_scale": 4.0}, "logit_scale", 0.25),
        ("qwen3", {"attention.scale": 0.25}, "attention_scale", 0.25),
        ("llama", {"attention.clamp_kqv": 3.0}, "clip_qkv", 3.0),
        ("llama", {"attention.head_count": [2, 2, 2, 2]}, "num_attention_heads", 2),
    ],
)
def test_what_is_read(name: str, options: Mapping[str, Any], field: str, value: object, tmp_path: Path):
    assert getattr(_config(tmp_path, name, options), field) == value


@pytest.mark.parametrize(
    ("name", "tensors", "expected"),
    [
        ("llama", ["blk.0.attn_q.bias", "blk.0.attn_output.bias"], {"attention_bias": True, "output_bias": True}),
        ("llama", ["blk.0.ffn_down.bias"], {"mlp_bias": True, "attention_bias": False}),
        ("phi3", ["blk.0.attn_qkv.bias"], {"attention_bias": True}),
        ("qwen2", ["output.weight", "output.bias"], {"attention_bias": False, "head_bias": True}),
        ("stablelm", ["blk.0.ffn_norm.weight"], {"norms": "before", "qk_norm": "none"}),
        ("stablelm", ["blk.0.attn_q_norm.weight"], {"norms": "parallel", "qk_norm": "layer norm of each head"}),
        ("falcon", [], {"norms": "parallel"}),
        ("falcon", ["blk.0.attn_norm_2.weight"], {"norms": "parallel apart"}),
    ],
)
def test_what_tensors_say(name: str, tensors: list[str], expected: Mapping[str, Any], tmp_path: Path):
    config = _config(tmp_path, name, {"use_parallel_residual": True}, dict.fromkeys(tensors, np.ones(2)))
    assert {field: getattr(config, field) for field in expected} == expected


def test_factors_of_the_file_are_multiplied_by_that_of_positions(tmp_path: Path):
    scaling = _config(tmp_path, "llama", {"rope.scaling.factor": 4.0}, FREQS).rope_scaling
    assert isinstance(scaling, DivisorScaling)
    assert scaling.numbers.tolist() == [4, 32]


def test_inner_features_of_experts_are_those_of_their_weights(tmp_path: Path):
    experts = _config(tmp_path, "llama", EXPERTS, STACK).experts
    assert experts is not None
    assert experts.moe_intermediate_size == 5


@pytest.mark.parametrize(
    ("name", "options", "tensors", "message"),
    [
        ("llama", {"attention.causal": False}, {}, r"llama.attention.causal = False is not supported for the arch"),
        ("llama", {"attention.max_alibi_bias": 8.0}, {}, r"llama.attention.max_alibi_bias = 8.0 is not supported"),
        ("llama", {"logit_scale": 0.5}, {}, r"llama.logit_scale = 0.5 is not supported"),
        ("qwen2", WINDOW, {}, r"qwen2.attention.sliding_window = 4 is not supported"),
        ("qwen3moe", {**EXPERTS, "expert_gating_func": 2}, STACK, r"qwen3moe.expert_gating_func = 2 is not supported"),
        ("qwen3moe", {"nextn_predict_layers": 1}, {}, r"qwen3moe.nextn_predict_layers = 1 is not supported"),
        ("gpt-oss", {"swiglu_clamp_exp": [0.0, 7.0]}, {}, r"gpt-oss.swiglu_clamp_exp = array"),
        ("gemma2", {"rope.freq_base": 9.0, "rope.freq_base_swa": 7.0}, {}, r"freq_base_swa = 7.0 is not supported"),
        ("llama", {**YARN, "rope.scaling.yarn_ext_factor": 0.5}, {}, r"yarn_ext_factor = 0.5 is not supported"),
        ("llama", {"rope.scaling.attn_factor": 2.0}, {}, r"rope.scaling.attn_factor = 2.0 is not supported"),
        ("llama", YARN, FREQS, r"scaled by rope_freqs.weight and llama.rope.scaling.type = 'yarn'"),
        ("llama", {"rope.scaling.type": "dynamic"}, {}, r"scaled by 'dynamic' are not supported"),
        ("llama", {"rope.scaling.factor": -2.0}, {}, r"rope.scaling.factor expected a positive number, got -2.0"),
        ("llama", {"attention.head_count_kv": [2, 1, 2, 2]}, {}, r"attention.head_count_kv has several values: layers"),
        ("llama", {"feed_forward_length": [0, 0]}, {}, r"feed_forward_length expected an integer from 1"),
        ("llama", {"attention.value_length": 6}, {}, r"attention.value_length = 6\) have to be as long"),
        ("granite", {"rope.scaling.finetuned": 1}, {}, r"rope.scaling.finetuned expected true or false, got 1"),
        ("llama", {"general.type": "adapter"}, {}, r"expected a model, got a file of the general.type 'adapter'"),
    ],
)
def test_what_is_refused(
    name: str, options: Mapping[str, Any], tensors: Mapping[str, np.ndarray], message: str, tmp_path: Path
):
    with pytest.raises(GGUFImportError, match=message):
        _config(tmp_path, name, options, tensors)


def test_norms_of_attention_and_of_feed_forward(tmp_path: Path):
    """Falcon 40B: the first norm of a layer is that of the feed-forward layer, the second that of attention."""
    tensors = {
        name: np.full(shape, value)
        for value, (name, shape) in enumerate(
            {
                "output_norm.weight": (HIDDEN,),
                "output_norm.bias": (HIDDEN,),
                "blk.0.attn_norm.weight": (HIDDEN,),
                "blk.0.attn_norm.bias": (HIDDEN,),
                "blk.0.attn_norm_2.weight": (HIDDEN,),
                "blk.0.attn_norm_2.bias": (HIDDEN,),
                "blk.0.attn_qkv.weight": (2 * HIDDEN, HIDDEN),
                "blk.0.attn_output.weight": (HIDDEN, HIDDEN),
                "blk.0.ffn_up.weight": (12, HIDDEN),
                "blk.0.ffn_down.weight": (HIDDEN, 12),
            }.items()
        )
    }
    options = {"block_count": 1, "attention.head_count_kv": 1}
    model = model_of(read_file(_written(tmp_path / "model.gguf", "falcon", options, tensors)))
    found = {name: np.asarray(each.elements).flat[0] for name, each in model.named_parameters()}
    assert [found[f"layers.0.{name}_layernorm.weight"] for name in ("pre_feedforward", "input")] == [2, 4]

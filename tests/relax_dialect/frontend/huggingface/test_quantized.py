"""Quantised checkpoints: GPTQ, AWQ and compressed-tensors, packed here by the definitions of the formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from lowering import build
from relax_dialect.frontend.huggingface import HuggingFaceImportError, read_folder
from relax_dialect.frontend.huggingface.families import config_of
from relax_dialect.frontend.huggingface.models import model_of
from relax_dialect.interpreter import run
from relax_dialect.nn import Decoder, DecoderProgram
from relax_dialect.nn.decoder import split_fused
from tests.support import decoders
from tir_dialect.block_arrays import BlockArray
from vm_dialect import VirtualMachine

IDS = np.array([5, 40, 3, 7, 5, 5, 31], np.int64)
LLAMA: Mapping[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "vocab_size": 48,
    "max_position_embeddings": 64,
}
MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_local_experts": 3, "num_experts_per_tok": 2}

Tensors = dict[str, np.ndarray]


def _words(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Along the last axis, the lowest number first; zeros fill the last word."""
    each = 32 // bits
    padded = np.pad(numbers.astype(np.uint32), [(0, 0), (0, -numbers.shape[-1] % each)])
    shifts = np.arange(each, dtype=np.uint32) * bits
    return np.bitwise_or.reduce(padded.reshape(len(numbers), -1, each) << shifts, axis=-1).view(np.int32)


def _parameters(shape: tuple[int, int], bits: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Integers, scales in `f16` and zero points of the groups."""
    groups = (shape[0], -(-shape[1] // size))
    scale = (rng.uniform(0.5, 1.5, groups) * 2 / 2**bits / np.sqrt(shape[1])).astype(np.float16)
    middle = 1 << (bits - 1)
    zero = rng.integers(middle - 3, middle + 4, groups)
    return rng.integers(0, 1 << bits, shape), scale, zero


def _formula(integers: np.ndarray, scale: np.ndarray, zero: np.ndarray, group: np.ndarray) -> np.ndarray:
    return (integers.astype(np.float32) - zero[:, group].astype(np.float32)) * scale.astype(np.float32)[:, group]


def _gptq(shape: tuple[int, int], bits: int, size: int, rng: np.random.Generator, version: int = 1, **options: Any):
    integers, scale, zero = _parameters(shape, bits, size, rng)
    zero[0], zero[3] = 15 if bits == 4 else 255, 0  # less one has a borrow
    group = np.arange(shape[1]) // size
    if options.get("is_shuffled"):
        group = rng.permutation(group)
    zeros = _words(zero.T, bits)
    if version == 1:
        zeros = (zeros.view(np.uint32) - np.uint32(0x11111111 if bits == 4 else 0x01010101)).view(np.int32)
    tensors = {"qweight": _words(integers, bits).T, "qzeros": zeros, "scales": scale.T, "g_idx": group.astype(np.int32)}
    return tensors, _formula(integers, scale, zero, group)


def _awq(shape: tuple[int, int], bits: int, size: int, rng: np.random.Generator, **_: Any):
    integers, scale, zero = _parameters(shape, bits, size, rng)

    def interleaved(numbers: np.ndarray) -> np.ndarray:
        return _words(numbers.reshape(len(numbers), -1, 8)[:, :, [0, 2, 4, 6, 1, 3, 5, 7]].reshape(numbers.shape), bits)

    tensors = {"qweight": interleaved(integers.T), "qzeros": interleaved(zero.T), "scales": scale.T}
    return tensors, _formula(integers, scale, zero, np.arange(shape[1]) // size)


def _pack_quantized(shape: tuple[int, int], bits: int, size: int, rng: np.random.Generator, **options: Any):
    integers, scale, zero = _parameters(shape, bits, size, rng)
    scale = scale.astype(ml_dtypes.bfloat16)
    tensors = {"weight_packed": _words(integers, bits), "weight_scale": scale, "weight_shape": np.array(shape)}
    if options.get("symmetric"):
        zero[:] = 1 << (bits - 1)
    else:
        tensors["weight_zero_point"] = np.ascontiguousarray(_words(np.ascontiguousarray(zero.T), bits).T)
    return tensors, _formula(integers, scale, zero, np.arange(shape[1]) // size)


def _int_quantized(shape: tuple[int, int], bits: int, size: int, rng: np.random.Generator, **options: Any):
    integers, scale, zero = _parameters(shape, 8, size, rng)
    tensors = {"weight": (integers - 128).astype(np.int8), "weight_scale": scale, "input_scale": np.ones(1, np.float32)}
    if options.get("symmetric"):
        zero[:] = 128
    else:
        tensors["weight_zero_point"] = (zero - 128).astype(np.int8)
    return tensors, _formula(integers, scale, zero, np.arange(shape[1]) // size)


Packer = Callable[..., tuple[Tensors, np.ndarray]]


def _write(path: Path, config: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    arrays = {name: np.ascontiguousarray(each) for name, each in tensors.items()}
    safetensors.numpy.save_file(arrays, path / "model.safetensors")


def _checkpoint(
    path: Path,
    quantization: Mapping[str, Any],
    pack: Packer,
    bits: int,
    size: int,
    model: Mapping[str, Any] = LLAMA,
    **options: Any,
) -> tuple[Tensors, Tensors]:
    """Writes a folder whose projections are quantised; gives its tensors, and the weights by the names of the model."""
    config, rng = {**model, "quantization_config": dict(quantization)}, np.random.default_rng(bits)
    _write(path, model, {})
    weights = dict(decoders.random_weights(Decoder(config_of(read_folder(path)))))
    tensors: Tensors = {}
    for name, array in list(weights.items()):
        owner = f"model.{name.removesuffix('.weight')}"
        if "_proj" not in name:
            tensors[f"model.{name}" if "lm_head" not in name else name] = array
            continue
        stack: list[np.ndarray] = []
        for number, matrix in enumerate(array if array.ndim == 3 else [array]):
            inner = owner.replace(".experts.", f".experts.{number}.")
            packed, numbers = pack(matrix.shape, bits, size if size > 0 else matrix.shape[1], rng, **options)
            tensors |= {f"{inner}.{kind}": each for kind, each in packed.items()}
            stack.append(numbers)
        weights[name] = np.stack(stack) if array.ndim == 3 else stack[0]
    _write(path, config, tensors)
    return tensors, weights


def _check(path: Path, weights: Tensors, block_format: str) -> Decoder:
    model = model_of(read_folder(path))
    for name, parameter in model.named_parameters():
        elements = parameter.elements
        if "_proj" in name:
            assert isinstance(elements, BlockArray)
            assert elements.block_format.name == block_format
            np.testing.assert_array_equal(elements.decoded(), weights[name])
        else:
            np.testing.assert_array_equal(np.asarray(elements), weights[name])
    return model


UP = "model.layers.0.mlp.up_proj"
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": False}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "GEMM"}
COMPRESSED: Mapping[str, Any] = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "strategy": "group"}}},
    "ignore": ["lm_head"],
    "kv_cache_scheme": None,
    "sparsity_config": {"format": "dense"},
}
INT = {**COMPRESSED, "format": "int-quantized"}


@pytest.mark.parametrize(
    ("quantization", "pack", "bits", "size", "options"),
    [
        (GPTQ, _gptq, 4, 32, {}),
        (GPTQ | {"checkpoint_format": "gptq_v2", "group_size": -1}, _gptq, 4, -1, {"version": 2}),
        (GPTQ | {"bits": 8, "checkpoint_format": "gptq"}, _gptq, 8, 32, {}),
        (AWQ, _awq, 4, 32, {}),
        (AWQ | {"group_size": -1}, _awq, 4, -1, {}),
        (COMPRESSED, _pack_quantized, 4, 32, {}),
        (COMPRESSED, _pack_quantized, 8, -1, {"symmetric": True}),
        (COMPRESSED, _pack_quantized, 8, 32, {}),
        (INT, _int_quantized, 8, -1, {"symmetric": True}),
        (INT, _int_quantized, 8, 32, {}),
    ],
)
def test_layers_are_packed_exactly(
    quantization: Mapping[str, Any],
    pack: Packer,
    bits: int,
    size: int,
    options: Mapping[str, Any],
    tmp_path: Path,
):
    _, weights = _checkpoint(tmp_path, quantization, pack, bits, size, **options)
    _check(tmp_path, weights, f"u{bits}_f32")


def test_logits(tmp_path: Path):
    _, weights = _checkpoint(tmp_path, AWQ, _awq, 4, 32)
    model = _check(tmp_path, weights, "u4_f32")
    program = DecoderProgram(model, functions=("every",))
    found = np.asarray(run(program.module(), "every", [IDS, *decoders.Caches(program, 8).arguments(0)]))
    expected = decoders.logits(model.config, {k: v.astype(np.float64) for k, v in weights.items()}, IDS)
    assert np.abs(found - expected).max() < 2e-5 * np.abs(expected).max()


ACT_ORDER = GPTQ | {"desc_act": True}


def test_inputs_in_an_order_of_their_own(tmp_path: Path):
    """With `desc_act` the inputs of a group are anywhere."""
    _, weights = _checkpoint(tmp_path, ACT_ORDER, _gptq, 4, 32, is_shuffled=True)
    model = model_of(read_folder(tmp_path))
    assert sum(name.endswith("_proj.input_order") for name, _ in model.named_parameters()) == 7
    program = DecoderProgram(model, functions=("every",))
    machine, caches = VirtualMachine(build(program.module())), decoders.Caches(program, 8)
    found = np.asarray(machine["every"](IDS, *caches.arguments(0)))
    expected = decoders.logits(model.config, {k: v.astype(np.float64) for k, v in weights.items()}, IDS)
    assert np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()


def test_fused_inputs_in_an_order_of_their_own(tmp_path: Path):
    """Queries, keys and values that are one matrix have one order."""
    _write(tmp_path, LLAMA, {})
    order, rows = np.arange(64)[::-1], np.zeros((128, 64))
    state = split_fused(
        {"self_attn.qkv_proj.weight": rows, "self_attn.qkv_proj.input_order": order}, config_of(read_folder(tmp_path))
    )
    assert {name: each.shape for name, each in state.items()} == {
        "self_attn.q_proj.weight": (64, 64),
        "self_attn.k_proj.weight": (32, 64),
        "self_attn.v_proj.weight": (32, 64),
        "self_attn.q_proj.input_order": (64,),
        "self_attn.k_proj.input_order": (64,),
        "self_attn.v_proj.input_order": (64,),
    }


def test_experts_have_no_order_of_their_own(tmp_path: Path):
    _checkpoint(tmp_path, ACT_ORDER, _gptq, 4, 32, MIXTRAL, is_shuffled=True)
    with pytest.raises(HuggingFaceImportError, match=r"_proj' has inputs in an order of its own \(desc_act\)"):
        model_of(read_folder(tmp_path))


def test_experts(tmp_path: Path):
    """Those of a layer are one stack of packed weights; one of another format is refused."""
    tensors, weights = _checkpoint(tmp_path, GPTQ, _gptq, 4, 32, MIXTRAL)
    _check(tmp_path, weights, "u4_f32")
    owner = "model.layers.0.mlp.experts.1.up_proj"
    for kind in ("qweight", "qzeros", "scales", "g_idx"):
        del tensors[f"{owner}.{kind}"]
    _write(tmp_path, {**MIXTRAL, "quantization_config": GPTQ}, {**tensors, f"{owner}.weight": np.zeros((96, 64))})
    with pytest.raises(HuggingFaceImportError, match="expected tensors of one shape and format"):
        model_of(read_folder(tmp_path))


def test_one_scale_for_all(tmp_path: Path):
    """The strategy `tensor` of compressed-tensors."""
    tensors, weights = _checkpoint(tmp_path, INT, _int_quantized, 8, -1, symmetric=True)
    name = "layers.0.mlp.up_proj.weight"
    tensors[f"model.{name}_scale"] = np.full(1, 0.25, np.float16)
    weights[name] = tensors[f"model.{name}"].astype(np.float32) / 4
    _write(tmp_path, {**LLAMA, "quantization_config": INT}, tensors)
    _check(tmp_path, weights, "u8_f32")


def test_biases_of_zeros_that_the_model_has_not(tmp_path: Path):
    """Some tools write them; one with another number is refused."""
    tensors, weights = _checkpoint(tmp_path, GPTQ, _gptq, 4, 32)
    for last, is_fine in ((0.0, True), (0.5, False)):
        bias = np.append(np.zeros(95), last).astype(np.float16)
        _write(tmp_path, {**LLAMA, "quantization_config": GPTQ}, tensors | {f"{UP}.bias": bias})
        if is_fine:
            _check(tmp_path, weights, "u4_f32")
            continue
        with pytest.raises(HuggingFaceImportError, match=r"unknown: layers\.0\.mlp\.up_proj\.bias"):
            model_of(read_folder(tmp_path))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"quant_method": "bitsandbytes"}, "'bitsandbytes' has quantised are not supported; known are gptq, awq"),
        ({"quant_method": ["gptq"]}, r"\['gptq'\] has quantised"),
        (GPTQ | {"bits": 3}, "'bits' of 'quantization_config' expected 4 or 8, got 3"),
        (GPTQ | {"bits": True}, "'bits' of 'quantization_config' expected 4 or 8, got True"),
        (GPTQ | {"group_size": 0}, "'group_size' of 'quantization_config' expected"),
        (GPTQ | {"checkpoint_format": "marlin"}, "'checkpoint_format' .* expected gptq or gptq_v2, got 'marlin'"),
        (GPTQ | {"format": "qqq"}, "'format' .* expected gptq or gptq_v2, got 'qqq'"),
        (GPTQ | {"dynamic": {"-:.*": {}}}, "'dynamic' of 'quantization_config' is not supported"),
        (AWQ | {"bits": 8}, "'bits' of 'quantization_config' expected 4, got 8"),
        (AWQ | {"version": "gemv"}, "'version' of 'quantization_config' expected gemm, got 'gemv'"),
        (COMPRESSED | {"format": "float-quantized"}, "the format 'float-quantized' of compressed-tensors is not"),
        (COMPRESSED | {"config_groups": {"a": {"format": "mxfp4-pack-quantized"}}}, "the format 'mxfp4-pack"),
        (COMPRESSED | {"sparsity_config": {"format": "marlin-24"}}, "sparse weights"),
        (COMPRESSED | {"transform_config": {"a": 1}}, "'transform_config' .* is not supported"),
    ],
)
def test_configurations_that_are_refused(config: Mapping[str, Any], message: str, tmp_path: Path):
    _write(tmp_path, {**LLAMA, "quantization_config": config}, {})
    with pytest.raises(HuggingFaceImportError, match=message):
        model_of(read_folder(tmp_path))


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("g_idx", lambda each: np.minimum(np.arange(64) // 16, 1).astype(np.int32), "has groups of other sizes than"),
        ("g_idx", lambda each: each - 1, "has groups from -1 to 0, and scales of 2"),
        ("g_idx", lambda each: each[1:], r"expected int32\[64\], got int32\[63\]"),
        ("scales", lambda each: None, "up_proj.scales' is missing"),
        ("scales", lambda each: each * np.float16(np.inf), "expected finite numbers"),
        ("scales", lambda each: each.astype(np.int32), r"expected float16\[_, 96\], got int32\[2, 96\]"),
        ("qzeros", lambda each: each[:1], r"expected int32\[2, 12\], got int32\[1, 12\]"),
        ("qweight", lambda each: each[:7], "g_idx' expected"),
        ("qweight", lambda each: each[0], r"expected int32\[_, _\], got int32\[96\]"),
        ("weight", lambda each: np.zeros((96, 64)), "up_proj.weight' is there beside 'qweight'"),
    ],
)
def test_tensors_that_do_not_fit(
    kind: str, change: Callable[[np.ndarray | None], np.ndarray | None], message: str, tmp_path: Path
):
    tensors, _ = _checkpoint(tmp_path, GPTQ, _gptq, 4, 32)
    changed = change(tensors.pop(f"{UP}.{kind}", None))
    if changed is not None:
        tensors[f"{UP}.{kind}"] = changed
    _write(tmp_path, {**LLAMA, "quantization_config": GPTQ}, tensors)
    with pytest.raises(HuggingFaceImportError, match=message):
        model_of(read_folder(tmp_path))


def test_more_tensors_that_do_not_fit(tmp_path: Path):
    tensors, _ = _checkpoint(tmp_path, COMPRESSED, _pack_quantized, 4, 32)
    for kind, wrong, message in (
        ("weight_shape", np.array([96, 1 << 40]), "has no weights of 4 or 8 bits of the shape"),
        ("weight_shape", np.array([96, 0]), "has no weights of 4 or 8 bits"),
        ("weight_scale", np.ones((96, 4), np.float32), "weight_zero_point' expected"),
    ):
        _write(tmp_path, {**LLAMA, "quantization_config": COMPRESSED}, {**tensors, f"{UP}.{kind}": wrong})
        with pytest.raises(HuggingFaceImportError, match=message):
            model_of(read_folder(tmp_path))
    symmetric: Tensors = {name: each for name, each in tensors.items() if "zero_point" not in name}
    for groups, message in ((4, "groups of other sizes than"), (5, "has rows of 64, which are not 5 groups")):
        wrong = {f"{UP}.weight_scale": np.ones((96, groups), np.float32)}
        _write(tmp_path, {**LLAMA, "quantization_config": COMPRESSED}, symmetric | wrong)
        with pytest.raises(HuggingFaceImportError, match=message):
            model_of(read_folder(tmp_path))
    _write(tmp_path, LLAMA, tensors)
    with pytest.raises(HuggingFaceImportError, match=r"is quantised, but config\.json has no 'quantization_config'"):
        model_of(read_folder(tmp_path))

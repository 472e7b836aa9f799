"""Decoders from GGUF files against NumPy with `f64`, in every mode, whole and step by step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from lowering import build
from lowering.kernels.gemm.quantized_rows import multiplies_int16
from lowering.verify import verify_module
from relax_dialect.frontend.gguf import GGUFImportError, read_file
from relax_dialect.frontend.gguf.architectures import config_of
from relax_dialect.frontend.gguf.models import model_of
from relax_dialect.interpreter import run
from relax_dialect.nn import PAGE, Decoder, DecoderProgram, StateError
from relax_dialect.nn.config import DivisorScaling
from tests.support import decoders
from tir_dialect.block_arrays import BlockArray
from tir_dialect.target import Target
from vm_dialect import VirtualMachine

IDS = np.array([5, 40, 3, 77, 5, 5, 61, 90, 12, 33, 8], np.int64)
CAPACITY = 16


ERROR = 5e-4 if multiplies_int16(Target.host()) else 2e-5
"""Of the largest logit: more where rows have 16 bits unless they are told otherwise."""


def _near(found: object, expected: np.ndarray) -> None:
    assert np.abs(np.asarray(found) - expected).max() < ERROR * np.abs(expected).max()


CASES = {
    "llama": ("llama", Kind.Q4_1, True, False),
    "llama with a head": ("llama", Kind.Q5_0, False, False),
    "qwen2": ("qwen2", Kind.Q8_0, True, True),
    "qwen2moe": ("qwen2moe", Kind.Q4_0, True, True),
    "gpt-oss": ("gpt-oss", Kind.MXFP4, False, True),
    "qwen3": ("qwen3", Kind.F16, True, False),
}
SLOW = ("llama", "llama with a head", "qwen2", "qwen2moe", "gpt-oss")


@pytest.mark.parametrize("case", [pytest.param(each, marks=pytest.mark.slow if each in SLOW else ()) for each in CASES])
def test_logits_are_those_of_numpy(case: str, tmp_path: Path):
    architecture, kind, tied, bias = CASES[case]
    path = tmp_path / "model.gguf"
    decoders.write_decoder(path, architecture, kind, tied=tied, bias=bias)
    file = read_file(path)
    model = model_of(file)
    expected = decoders.logits_of(file, IDS)
    program = DecoderProgram(model, functions=("every",))
    module = program.module()
    verify_module(module)

    def caches() -> decoders.Caches:
        # With numbers in it that nobody should read.
        return decoders.Caches(program, CAPACITY, fill=np.nan)

    _near(run(module, "every", [IDS, *caches().arguments(0)]), expected)
    every, whole, steps = VirtualMachine(build(module))["every"], caches(), caches()
    _near(np.from_dlpack(every(IDS, *whole.arguments(0))), expected)
    for first, end in ((0, 4), (4, 5), (5, 6), (6, 11)):
        _near(np.from_dlpack(every(IDS[first:end], *steps.arguments(first))), expected[first:end])
    for one, other in zip(whole.pools, steps.pools, strict=True):
        _near(one[1:, :, : len(IDS)], other[1:, :, : len(IDS)])
        assert np.isnan(one[1:, :, len(IDS) :]).all(), "more of the cache was written than there are tokens"


def test_equal_layers_are_one_function_and_weights_stay_packed(tmp_path: Path):
    path = tmp_path / "model.gguf"
    decoders.write_decoder(path)
    model = model_of(read_file(path))
    module = DecoderProgram(model, functions=("main", "every")).module()
    text = str(module)
    assert text.count("relax.func ") == 4, "a layer, all of them, and two public ones"
    assert text.count("relax.call @layer") == decoders.LAYERS
    assert 'relax.constant "layers.1.mlp.down_proj.weight"' in text
    size = sum(each.packed.nbytes for each in read_file(path).tensors.values() if isinstance(each, BlockArray))
    build(module).save(tmp_path / "model.rvm")
    assert (tmp_path / "model.rvm").stat().st_size < size + 500_000


def test_more_tokens_than_the_cache_has_room_for_are_refused(tmp_path: Path):
    path = tmp_path / "model.gguf"
    decoders.write_decoder(path)
    model = model_of(read_file(path))
    program = DecoderProgram(model, functions=("main", "step"))
    machine, caches = VirtualMachine(build(program.module())), decoders.Caches(program, CAPACITY)
    with pytest.raises(ValueError, match="past"):
        machine["main"](IDS, *caches.arguments(PAGE - 5))
    with pytest.raises(ValueError, match="past"):
        machine["main"](IDS[:1], *caches.arguments(-1))
    for wrong in (PAGE, -1):
        with pytest.raises(IndexError, match="data"):
            machine["step"](IDS[:1], *caches.arguments_of_batch(np.array([wrong])))
    for page in (2, -1):
        caches.tables[:] = page
        with pytest.raises(IndexError, match="data"):
            machine["main"](IDS, *caches.arguments(0))


def _written(path: Path, name: str, tensors: dict[str, tuple[int, ...]], **numbers: int) -> Path:
    writer = gguf.GGUFWriter(path, name)
    sizes = {"block_count": 1, "context_length": 8, "embedding_length": 8, "feed_forward_length": 8} | numbers
    for key, value in sizes.items():
        writer.add_uint32(f"{name}.{key.replace('__', '.')}", value)
    for key, shape in tensors.items():
        writer.add_tensor(key, np.zeros(shape, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


TABLE = {"token_embd.weight": (4, 8)}


@pytest.mark.parametrize(
    ("name", "tensors", "numbers", "message"),
    [
        ("mamba", TABLE, {}, "architecture 'mamba' is not supported; known are llama, qwen2, qwen2moe"),
        ("llama", TABLE, {}, "llama.attention.head_count expected an integer from 1 to 4096, got nothing"),
        ("llama", TABLE, {"attention__head_count": 0}, "head_count expected an integer from 1"),
        ("llama", TABLE, {"attention__head_count": 3, "attention__head_count_kv": 2}, "cannot share 2 heads"),
        ("llama", {}, {"attention__head_count": 2}, "expected the tensor token_embd.weight"),
        ("llama", TABLE, {"attention__head_count": 2}, "missing: embed_tokens.weight|missing: layers.0"),
        (
            "llama",
            TABLE | {"blk.0.ssm.weight": (2,)},
            {"attention__head_count": 2},
            "unknown tensors: blk.0.ssm.weight",
        ),
    ],
)
def test_what_is_not_a_known_model_is_refused(
    name: str, tensors: dict[str, tuple[int, ...]], numbers: dict[str, int], message: str, tmp_path: Path
):
    with pytest.raises(GGUFImportError, match=message):
        model_of(read_file(_written(tmp_path / "model.gguf", name, tensors, **numbers)))


def test_frequencies_for_long_contexts(tmp_path: Path):
    tensors = TABLE | {f"rope_factors_{kind}.weight": (2,) for kind in ("short", "long")}
    numbers = {"attention__head_count": 2, "rope__scaling__original_context_length": 4}
    path = _written(tmp_path / "model.gguf", "phi3", tensors, **numbers)
    with pytest.raises(GGUFImportError, match=r"rope_factors_short.weight expected 2 positive numbers"):
        config_of(read_file(path))
    file = read_file(path)
    factors = {
        f"rope_factors_{kind}.weight": np.array([1, value], np.float32) for kind, value in (("short", 2), ("long", 8))
    }
    config = config_of(replace(file, tensors={**file.tensors, **factors}))
    for context, value in ((4, 2), (5, 8)):
        scaling = config.for_context(context).rope_scaling
        assert isinstance(scaling, DivisorScaling)
        assert (scaling.numbers[1], scaling.magnitude) == (value, 1.5**0.5)


def test_weights_of_another_shape_are_refused(tmp_path: Path):
    path = tmp_path / "model.gguf"
    decoders.write_decoder(path)
    model = model_of(read_file(path))
    with pytest.raises(StateError, match=r"'norm.weight' expected the shape \[64\], got \[3\]"):
        model.load_state_dict(_with_wrong_norm(model))


def test_metadata_of_another_kind_are_refused(tmp_path: Path):
    path = tmp_path / "model.gguf"
    decoders.write_decoder(path)
    file = read_file(path)
    wrong = replace(file, metadata={**file.metadata, "llama.rope.scaling.type": np.zeros(2)})
    with pytest.raises(GGUFImportError, match=r"the metadata llama\.rope\.scaling\.type expected a text"):
        model_of(wrong)


def _with_wrong_norm(model: Decoder) -> dict[str, np.ndarray]:
    return {
        name: np.zeros((3,) if name == "norm.weight" else parameter.shape, np.float32)
        for name, parameter in model.named_parameters()
    }

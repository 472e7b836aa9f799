"""Decoders of every family against NumPy with `f64`: whole, and step by step with a cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from lowering import build
from lowering.generation.cache import PagedKVCache
from lowering.generation.scheduler import Decoding
from lowering.verify import verify_module
from relax_dialect.interpreter import run
from relax_dialect.nn import (
    CacheFormat,
    Decoder,
    DecoderConfig,
    DecoderProgram,
    ExpertsConfig,
    LinearScaling,
    Llama3Scaling,
    StateError,
    YarnScaling,
)
from relax_dialect.nn.config import DivisorScaling
from relax_dialect.nn.decoder import split_fused
from relax_dialect.ops.call_tir import CallTIRInplaceOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.types import TensorType
from tests.support import decoders
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from vm_dialect import VirtualMachine
from xdsl_relax import run_passes

IDS = np.array([5, 40, 3, 7, 5, 5, 31, 20, 12, 33, 8], np.int64)
CAPACITY = 13
SIZES: Mapping[str, Any] = {
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
FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "llama 3": {"rope_scaling": Llama3Scaling(4.0, 1.0, 4.0, 16), "tie_word_embeddings": True},
    "gemma 2": {
        "norms": "both",
        "windows": (3, None),
        "attn_logit_softcapping": 2.0,
        "final_logit_softcapping": 3.0,
        "attention_scale": 0.3,
        "hidden_act": "gelu_pytorch_tanh",
        "embedding_scale": 24**0.5,
    },
    "gemma 3": {
        "norms": "both",
        "qk_norm": "head",
        "windows": (4, None),
        "local_rope_theta": 10.0,
        "rope_scaling": LinearScaling(8.0),
    },
    "olmo 2": {"norms": "after", "qk_norm": "all", "clip_qkv": 0.75},
    "smollm 3": {"unrotated_layers": frozenset({1}), "interleaved_rope": True},
    "granite": {"embedding_scale": 3.0, "residual_scale": 0.5, "attention_scale": 0.2, "logit_scale": 0.25},
    "qwen 2 with YaRN": {"attention_bias": True, "rope_scaling": YarnScaling(4.0, 16)},
    "stablelm": {"layer_norm": True, "rotary_features": 4, "attention_bias": True},
    "mixtral": {"experts": ExpertsConfig(5, 2, 12)},
    "qwen 2 with experts": {
        "experts": ExpertsConfig(4, 2, 12, False, 16, True),
        "dense_layers": frozenset({0}),
        "attention_bias": True,
    },
    "gpt oss": {
        "experts": ExpertsConfig(4, 2, 12, bias=True, swiglu_limit=0.75),
        "attention_sinks": True,
        "windows": (3, None),
        "attention_bias": True,
        "output_bias": True,
        "rope_scaling": YarnScaling(4.0, 16, truncate=False),
    },
    "interleaved halves": {"rotary_features": 4, "interleaved_rope": True, "norms": "parallel"},
    "gpt 2": {
        "layer_norm": True,
        "rope_theta": None,
        "hidden_act": "gelu_new",
        "gated_mlp": False,
        "attention_bias": True,
        "output_bias": True,
        "mlp_bias": True,
    },
    "phi 2": {
        "layer_norm": True,
        "norms": "parallel",
        "hidden_act": "relu",
        "gated_mlp": False,
        "mlp_bias": True,
        "head_bias": True,
        "rotary_features": 6,
        "qk_norm": "head layer norm",
    },
    "falcon 40b": {"layer_norm": True, "norms": "parallel apart", "qk_norm": "layer norm of each head"},
    "falcon": {
        "layer_norm": True,
        "norms": "parallel",
        "hidden_act": "gelu",
        "gated_mlp": False,
        "num_key_value_heads": 1,
        "rope_scaling": DivisorScaling(np.array([1.0, 2.0, 1.5, 4.0])),
    },
}
NATIVE = ("gemma 2",)
"""Those that are compiled in the quick run."""


def _model(family: str) -> Decoder:
    model = Decoder(DecoderConfig(**{**SIZES, **FAMILIES[family]}))
    model.load_state_dict(decoders.random_weights(model))
    return model


def _near(found: object, expected: np.ndarray, error: float = 2e-5) -> None:
    assert np.abs(np.asarray(found) - expected).max() < error * np.abs(expected).max()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("family", FAMILIES)
def test_interpreted_logits_are_those_of_numpy(family: str):
    model = _model(family)
    expected = decoders.logits(model.config, decoders.weights_of(model), IDS)
    program = DecoderProgram(model, functions=("every",))
    module = program.module()
    verify_module(module)
    _near(run(module, "every", [IDS, *decoders.Caches(program, CAPACITY).arguments(0)]), expected)


@pytest.mark.parametrize(
    "family", [pytest.param(each, marks=() if each in NATIVE else pytest.mark.slow) for each in FAMILIES]
)
def test_compiled_steps_give_the_same(family: str):
    model = _model(family)
    expected = decoders.logits(model.config, decoders.weights_of(model), IDS)
    program = DecoderProgram(model, functions=("every", "step"))
    machine = VirtualMachine(build(program.module()))
    caches = decoders.Caches(program, CAPACITY, 2)
    for first, end in ((0, 4), (4, 5), (5, 9)):
        found = machine["every"](IDS[first:end], *caches.arguments(first))
        _near(np.from_dlpack(found), expected[first:end])
    machine["every"](IDS[:2], *caches.arguments(0, 1))
    # Two sequences of different lengths: tokens 9 and 2, then 10 and 3.
    for at in (np.array([9, 2]), np.array([10, 3])):
        _near(np.from_dlpack(machine["step"](IDS[at], *caches.arguments_of_batch(at))), expected[at])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["interpret", "bytecode", "native"])
@pytest.mark.parametrize("cache_format", ["f32", pytest.param("q8_0", marks=pytest.mark.slow)])
def test_tokens_that_were_taken_back_leave_nothing(mode: str, cache_format: CacheFormat):
    """Infinite values of theirs, in pages that two sequences share, count in no later step."""
    model = _model("gemma 2")
    expected = decoders.logits(model.config, decoders.weights_of(model), IDS)
    program = DecoderProgram(model, cache_format, ("every", "step"))
    module = program.module()
    cache = PagedKVCache(model.config, cache_format, 64, CAPACITY, 3)
    function = VirtualMachine(build(module, mode=mode)).__getitem__ if mode != "interpret" else None

    def called(name: str) -> Callable[..., Any]:
        if function is not None:
            return function(name)
        return lambda *args: run(module, name, [each if isinstance(each, int) else np.asarray(each) for each in args])

    decoding = Decoding(called, cache)
    one = cache.add_sequence()
    decoding.read_every(one, IDS.tolist())
    for array in map(np.from_dlpack, cache.arrays):
        if array.dtype != np.int8:
            array[one.pages[0].numbers[0], :, 6:] = np.inf
    cache.popn(one, 5)
    other = cache.fork_sequence(one, 4)
    found = decoding.step([one, other], IDS[[6, 4]].tolist(), None)
    _near(found if isinstance(found, np.ndarray) else np.from_dlpack(found), expected[[6, 4]], ERRORS[cache_format])


ERRORS = {"f32": 2e-5, "f16": 5e-3, "q8_0": 5e-2}


@pytest.mark.slow
@pytest.mark.parametrize("cache_format", ["q8_0", "f16"])
def test_formats_of_caches(cache_format: CacheFormat):
    model = _model("gemma 2")
    expected = decoders.logits(model.config, decoders.weights_of(model), IDS)
    program = DecoderProgram(model, cache_format, ("every", "step"))
    module, machine = program.module(), VirtualMachine(build(program.module()))
    interpreted, caches = decoders.Caches(program, CAPACITY), decoders.Caches(program, CAPACITY)
    _near(run(module, "every", [IDS, *interpreted.arguments(0)]), expected, ERRORS[cache_format])
    found = np.from_dlpack(machine["every"](IDS[:-1], *caches.arguments(0)))
    _near(found, expected[:-1], ERRORS[cache_format])
    last = np.array([len(IDS) - 1])
    step = np.from_dlpack(machine["step"](IDS[-1:], *caches.arguments_of_batch(last)))
    _near(step, expected[-1:], ERRORS[cache_format])
    whole = sum(pool.nbytes for pool in decoders.Caches(DecoderProgram(model), CAPACITY).pools)
    assert sum(pool.nbytes for pool in caches.pools) == whole * {"f16": 1 / 2, "q8_0": 1 / 4 + 1 / 16}[cache_format]


def test_layers_that_differ_are_functions_of_their_own():
    text = str(DecoderProgram(_model("gemma 2"), functions=("main",)).module())
    assert text.count("relax.func private @layer") == 2


def test_fused_projections_are_split():
    model = _model("gemma 3")
    state = dict(decoders.random_weights(model))
    fused = dict(state)
    for layer in range(2):
        for owner, name, parts in (("self_attn", "qkv_proj", "qkv"), ("mlp", "gate_up_proj", ("gate", "up"))):
            names = [f"layers.{layer}.{owner}.{part}_proj.weight" for part in parts]
            fused[f"layers.{layer}.{owner}.{name}.weight"] = np.concatenate([fused.pop(each) for each in names])
    split = split_fused(fused, model.config)
    assert split.keys() == state.keys()
    assert all(np.array_equal(split[name], each) for name, each in state.items())
    with pytest.raises(StateError, match=r"qkv_proj.weight' expected 64 rows, got the shape \[63, 24\]"):
        split_fused({"layers.0.self_attn.qkv_proj.weight": np.zeros((63, 24))}, model.config)


@pytest.mark.parametrize("family", ["mixtral", pytest.param("gemma 2", marks=pytest.mark.slow)])
def test_what_a_step_moves_does_not_depend_on_the_text_so_far(family: str):
    """But for attention, which reads the keys and values of the text, no kernel has a loop over positions or pages, and
    no tensor but the pools has a dimension of them.
    """
    program = DecoderProgram(_model(family), functions=("main", "step"))
    module = run_passes(program.module(), "optimize-graph,legalize-ops,fuse-ops,fuse-tir")
    of_the_text = {"past", "pages", "pool"}
    loops = dict[str, set[str]]()
    for func in module.ops:
        if isinstance(func, PrimFuncOp):
            space = IndexSpace(func)
            extents = [space.dim_of(op.upper) for op in func.walk() if isinstance(op, ForOp)]
            loops[func.sym_name.data] = {name for dim in extents if dim is not None for name in dim.symbols}
    attention = {name for name, symbols in loops.items() if symbols & of_the_text}
    assert attention == {name for name in loops if "paged_attention" in name}
    assert any(name.startswith("append") for name in loops)
    made = [
        result.type
        for func in module.ops
        if isinstance(func, FuncOp)
        for op in func.walk()
        if not isinstance(op, CallTIRInplaceOp)
        for result in op.results
        if isinstance(result.type, TensorType)
    ]
    assert made
    assert not [info for info in made if any(dim.symbols & of_the_text for dim in info.known_dims or ())]

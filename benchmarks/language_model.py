"""Products with block-quantised weights, and steps of a trained language model, against reading as many bytes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import tvm_ffi

from benchmarks.timing import Row, in_processes, measure_in_turns, print_table, time_in_turns
from lowering import build
from lowering.generation.cache import CachedSequence
from lowering.generation.language_model import LanguageModel
from lowering.parsing import parse_module
from tests.support.trained_models import path_of_smollm
from tir_dialect.block_arrays import decode
from tir_dialect.block_formats import FORMATS
from vm_dialect import VirtualMachine

FORMATS_SHOWN = ("q4_0", "q4_1", "q5_0", "q8_0", "q4_k", "q6_k", "u4_f32")
K, N = 2048, 8192
CONTEXTS = (1, 1024)
PROMPT = 128
TEXTS = 8
"""Texts in a batch."""
SHORT = {"rounds": 61, "pick": min, "seconds": 0.001}
"""The best of many single calls, since others on the machine want the memory too."""


def _program(name: str) -> str:
    packed = f"!relax.tensor<[{N}, {FORMATS[name].row_bytes(K)}], ui8>"
    return f"""relax.func @{name}(%x: !relax.tensor<[1, {K}], f32>, %w: {packed}) -> !relax.tensor<[1, {N}], f32> {{
  %0 = relax.dequantize_blocks %w format = "{name}"
  %1 = relax.permute_dims %0
  %2 = relax.matmul %x, %1
  relax.return %2
}}"""


def _products() -> Iterator[Row]:
    """One row times a matrix that stays in no cache but the last one; NumPy has it in `f32`."""
    machine = VirtualMachine(build(parse_module("\n".join(map(_program, FORMATS_SHOWN)))))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, K)).astype(np.float32)
    for name in FORMATS_SHOWN:
        # Bytes below 64 are small numbers, whatever they are read as.
        packed = rng.integers(0, 64, (N, FORMATS[name].row_bytes(K)), np.uint8)
        weights, main = decode(packed, FORMATS[name]), machine[name]
        ours, theirs = tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(packed)
        with np.errstate(all="ignore"):
            times = time_in_turns(
                {
                    "ours": lambda main=main, ours=ours, theirs=theirs: main(ours, theirs),
                    "read": lambda packed=packed: packed.view(np.uint64).max(),
                    "NumPy f32": lambda weights=weights: x @ weights.T,
                },
                **SHORT,
            )
        yield Row(f"1 x {K} x {N} {name}, {packed.nbytes / times['ours'] / 1e9:.1f} GB/s", times.pop("ours"), times)


def _processor_seconds(call: Callable[[], object], repeats: int) -> float:
    """Seconds of all threads for one of so many calls."""
    begin = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - begin) / repeats


def _in_turns(ours: Callable[[], object], read: Callable[[], object], rounds: int = 61) -> dict[str, float]:
    """Processor time, as others on the machine take turns with us."""
    calls = {"ours": ours, "read": read}
    for call in calls.values():
        call()
    timers = {name: partial(_processor_seconds, call) for name, call in calls.items()}
    return measure_in_turns(timers, rounds, min, 0.001)


def _steps(model: LanguageModel, size: int) -> Iterator[Row]:
    """Steps of a model whose weights have so many bytes; tokens for each second of processor time."""
    memory, decoding = np.ones(size // 8, np.uint64), model.decoding
    sequence, prompt = model.cache.add_sequence(), [5] * PROMPT

    def read(past: int, tokens: Sequence[int]) -> None:
        model.cache.popn(sequence, len(sequence.tokens) - past)
        decoding.read(sequence, tokens)

    for past in CONTEXTS:
        read(0, [5] * past)
        times = _in_turns(lambda past=past: read(past, [5]), memory.max)
        yield Row(f"a step after {past}: {1 / times['ours']:.0f} tokens/s", times.pop("ours"), times)
        texts = [model.cache.fork_sequence(sequence, past) for _ in range(TEXTS - 1)]

        def step(texts: Sequence[CachedSequence] = (sequence, *texts)) -> None:
            decoding.step(texts, [5] * TEXTS, None)
            for each in texts:
                model.cache.popn(each, 1)

        model.cache.popn(sequence, 1)
        times = _in_turns(step, memory.max)
        title = f"a step of {TEXTS} texts after {past}: {TEXTS / times['ours']:.0f} tokens/s"
        yield Row(title, times.pop("ours"), times)
        for text in texts:
            model.cache.remove_sequence(text)
    times = _in_turns(lambda: read(0, prompt), memory.max, 9)
    yield Row(f"a prompt of {PROMPT}: {PROMPT / times['ours']:.0f} tokens/s", times.pop("ours"), times)


def table(threads: int) -> None:
    """The tables for a number of threads; that of the model only if it is installed (`make test-llm`)."""
    print_table(f"One row times block-quantised weights, {threads} threads", [*_products()])
    path = path_of_smollm()
    if path is not None:
        title = f"SmolLM2-135M Q4_1, {threads} threads, processor time; a read is of all weights"
        print_table(title, [*_steps(LanguageModel.load(path, sequences=TEXTS), path.stat().st_size)])


def main() -> None:
    """One process for each number of threads."""
    in_processes("language_model")

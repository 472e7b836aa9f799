"""How a token is chosen from logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Sampling:
    """Tokens are drawn by their probabilities at a temperature; the likeliest one is taken at temperature 0."""

    temperature: float = 0.0
    top_k: int = 0
    """Only so many of the likeliest tokens are drawn; 0 for all."""
    top_p: float = 1.0
    """Only the likeliest tokens that together have this probability are drawn."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"expected a temperature of at least 0, got {self.temperature}")
        if self.top_k < 0:
            raise ValueError(f"expected a top_k of at least 0, got {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"expected a top_p above 0 and at most 1, got {self.top_p}")

    def sampler(self) -> Sampler:
        """What chooses the tokens of one text."""
        return Sampler(self, np.random.default_rng(self.seed))


@dataclass
class Sampler:
    """Chooses tokens one after the other."""

    sampling: Sampling
    random: np.random.Generator

    def choose(self, logits: NDArray[Any]) -> int:
        """The next token; `ValueError` if there are NaNs among the logits."""
        if np.isnan(logits).any():
            raise ValueError("the model gives NaN: its weights are damaged, or too large for 'f32'")
        if self.sampling.temperature == 0:
            return int(logits.argmax())
        tokens, probabilities = self._candidates(logits.astype(np.float64))
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
        return order[:count], kept / kept.sum()

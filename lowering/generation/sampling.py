"""How a token is chosen from logits, and tokens that are guessed, so that several are read at once.

The text is the one that would be written without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from relax_dialect.nn.config import NONE_ALLOWED, NOT_A_NUMBER

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

    @property
    def is_greedy(self) -> bool:
        """Whether the likeliest token is taken, whatever there was before."""
        return self.temperature == 0 and self.repetition_penalty == 1

    def sampler(self) -> Sampler:
        """What the tokens of one text are chosen by."""
        return Sampler(self, np.random.default_rng(self.seed))


@dataclass
class Sampler:
    """What the tokens of one text are chosen by, one after the other."""

    sampling: Sampling
    random: np.random.Generator

    def row(self, before: Sequence[int]) -> tuple[list[float], int, NDArray[Any]]:
        """The numbers and `top_k` for the next token, and the different tokens `before` if they matter."""
        it = self.sampling
        drawn = 0.0 if it.temperature == 0 else float(self.random.random(dtype=np.float32))
        there = np.unique(np.asarray(before, np.int64)) if it.repetition_penalty != 1 else np.empty(0, np.int64)
        return [it.temperature, it.top_p, it.min_p, it.repetition_penalty, drawn], it.top_k, there


def choosing_arguments(rows: Sequence[tuple[list[float], int, NDArray[Any]]]) -> tuple[NDArray[Any], ...]:
    """The arguments of `choose` after the logits, for a batch."""
    before = np.zeros((len(rows), max(1, *(len(there) for _, _, there in rows))), np.int64)
    for line, (_, _, there) in zip(before, rows, strict=True):
        line[: len(there)] = there
    numbers = np.array([numbers for numbers, _, _ in rows], np.float32)
    counts = np.array([(top_k, len(there)) for _, top_k, there in rows], np.int64)
    return numbers, counts, before


def checked(token: int) -> int:
    """A token that was chosen; `ValueError` if there was none to choose."""
    if token == NOT_A_NUMBER:
        raise ValueError("the model gives NaN: its weights are damaged, or too large for 'f32'")
    if token == NONE_ALLOWED:
        raise ValueError("the mask allows no token")
    return token


MOST = 8
"""Tokens that are guessed at once."""


class Speculation(Protocol):
    """Guesses the tokens of one text."""

    def guess(self, tokens: Sequence[int], most: int) -> list[int]:
        """At most so many tokens that may follow."""
        ...

    def learn(self, guessed: int, right: int) -> None:
        """So many of the tokens that were guessed were right."""
        ...


@dataclass
class PromptLookup:
    """What followed the last time that the text had its last few tokens."""

    longest: int = 3
    """How many of the last tokens have to be the same, at first; then fewer."""
    guessed: int = 0
    right: int = 0

    def guess(self, tokens: Sequence[int], most: int) -> list[int]:
        """The tokens after the last occurrence of the end of the text."""
        for length in range(min(self.longest, len(tokens) - 1), 0, -1):
            end = list(tokens[-length:])
            for at in range(len(tokens) - length - 1, -1, -1):
                if tokens[at] == end[0] and list(tokens[at : at + length]) == end:
                    return list(tokens[at + length : at + length + min(most, MOST)])
        return []

    def learn(self, guessed: int, right: int) -> None:
        """Counts."""
        self.guessed += guessed
        self.right += right


@dataclass
class Draft:
    """What a smaller model would write: fewer tokens after wrong ones, more after right ones."""

    write: Callable[[Sequence[int], int], list[int]]
    """The likeliest tokens after some tokens, so many."""
    count: int = 4
    guessed: int = 0
    right: int = 0

    def guess(self, tokens: Sequence[int], most: int) -> list[int]:
        """The tokens that the smaller model writes."""
        return self.write(tokens, min(self.count, most))

    def learn(self, guessed: int, right: int) -> None:
        """Counts, and guesses more next time if all were right."""
        self.guessed += guessed
        self.right += right
        self.count = min(MOST, self.count + 1) if right == guessed else max(1, right + 1)

"""Tokens that are guessed, so that several are read at once: those that are right need no step of their own.

The text is the one that would be written without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

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

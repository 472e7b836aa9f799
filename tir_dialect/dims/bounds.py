"""Bounds on symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

Interval: TypeAlias = tuple[int | None, int | None]
"""Least and greatest value, both inclusive; None is unbounded."""

DEFAULT_INTERVAL: Interval = (0, None)


class Bounds(Mapping[str, Interval]):
    """An immutable map from symbols to intervals; symbols without an entry are integers >= 0.

    Look-up by `bounds[name]` gives the default for unknown names; iteration and `in` know only the entries.
    """

    __slots__ = ("_entries", "_hash")

    def __init__(self, entries: Mapping[str, Interval] | None = None) -> None:
        self._entries = {name: interval for name, interval in sorted((entries or {}).items()) if interval != (0, None)}
        for name, (low, high) in self._entries.items():
            if low is not None and high is not None and low > high:
                raise ValueError(f"bounds of '{name}' are empty: [{low}, {high}]")
        self._hash = hash(tuple(self._entries.items()))

    def __getitem__(self, name: str) -> Interval:
        return self._entries.get(name, DEFAULT_INTERVAL)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bounds) and self._entries == other._entries

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Bounds({self._entries})"

    def with_entries(self, entries: Mapping[str, Interval]) -> Bounds:
        """These bounds with some intervals replaced."""
        return Bounds({**self._entries, **entries})

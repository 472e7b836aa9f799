"""Bounds on symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tir_dialect.dims.expr import Dim
from tir_dialect.dims.text import DimLike, to_dim

End: TypeAlias = int | Dim | None
"""One end of an interval, inclusive: an integer, an expression over other symbols, or None for no bound."""

Ends: TypeAlias = tuple[End, End]
"""Least and greatest value."""

DEFAULT: Ends = (0, None)


class Bounds(Mapping[str, Ends]):
    """An immutable map from symbols to `(low, high)`, both inclusive; symbols without an entry are integers >= 0.

    Ends may be expressions over other symbols: `Bounds({"i": (0, "n - 1")})` is a loop variable. `bounds[name]` is the
    default for names without an entry; iteration, `in` and `len` count only entries.

    ValueError for an interval that is empty, or bounds that refer to each other in a circle.
    """

    __slots__ = ("_entries", "_related")

    def __init__(self, entries: Mapping[str, tuple[DimLike | None, DimLike | None]] | None = None) -> None:
        self._entries: dict[str, Ends] = {}
        for name, (low, high) in (entries or {}).items():
            ends = _end(low), _end(high)
            if isinstance(ends[0], int) and isinstance(ends[1], int) and ends[0] > ends[1]:
                raise ValueError(f"bounds of '{name}' are empty: [{ends[0]}, {ends[1]}]")
            if ends != DEFAULT:
                self._entries[name] = ends
        self._related: dict[str, frozenset[str]] = {}
        for name in self._entries:
            self._relate(name, ())

    def __getitem__(self, name: str) -> Ends:
        return self._entries.get(name, DEFAULT)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bounds) and self._entries == other._entries

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def __repr__(self) -> str:
        return f"Bounds({', '.join(f'{name} in {self.text(name)}' for name in self)})"

    def text(self, name: str) -> str:
        """The interval of a symbol as text: `[1, 2048]`, `[0, inf)`."""
        low, high = self[name]
        left = "(-inf" if low is None else f"[{low}"
        return f"{left}, {'inf)' if high is None else f'{high}]'}"

    def with_entries(self, entries: Mapping[str, tuple[DimLike | None, DimLike | None]]) -> Bounds:
        """These bounds with some intervals replaced."""
        return Bounds({**self._entries, **entries})

    def related(self, name: str) -> frozenset[str]:
        """The symbols that the ends of this symbol's interval depend on, directly or through others."""
        return self._related.get(name, _NOTHING)

    def _relate(self, name: str, path: tuple[str, ...]) -> frozenset[str]:
        if name in path:
            raise ValueError(f"bounds refer to each other in a circle: {' -> '.join((*path, name))}")
        found = self._related.get(name)
        if found is None:
            uses = _NOTHING.union(*(end.symbols for end in self[name] if isinstance(end, Dim)))
            found = uses.union(*(self._relate(use, (*path, name)) for use in sorted(uses)))
            self._related[name] = found
        return found


_NOTHING: frozenset[str] = frozenset()


def _end(value: DimLike | None) -> End:
    if value is None:
        return None
    dim = to_dim(value)
    return dim if (known := dim.constant_value) is None else known

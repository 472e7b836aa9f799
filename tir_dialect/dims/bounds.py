"""Bounds on symbols, and what follows from them at once: intervals of dimensions, and sample values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias
from zlib import crc32

from tir_dialect.dims import intervals
from tir_dialect.dims.division import BroadcastAtom, FloorDivAtom, MaxAtom, MinAtom, ModAtom
from tir_dialect.dims.expr import Atom, Dim, DimLike, SymbolAtom, to_dim
from tir_dialect.dims.intervals import INF, Interval

End: TypeAlias = int | Dim | None
"""One end of an interval, inclusive: an integer, an expression over other symbols, or None for no bound."""

Ends: TypeAlias = tuple[End, End]
"""Least and greatest value."""

DEFAULT: Ends = (0, None)

_NOTHING: frozenset[str] = frozenset()

SAMPLE_COUNT = 6
"""Samples of a set of bounds: two that contradict each other in the order of the symbols, the ends, and some others."""

_SAMPLE_SPREAD = 1009


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


def _end(value: DimLike | None) -> End:
    if value is None:
        return None
    dim = to_dim(value)
    return dim if (known := dim.constant_value) is None else known


class Ranges:
    """Intervals for symbols within `bounds`; every atom is looked at once.

    Fast and coarse: terms count as independent, so `n - n // 2` with `n >= 0` is unbounded below.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._atoms: dict[Atom, Interval] = {}
        self._rising: dict[Atom, bool] = {}

    def of(self, dim: Dim) -> Interval:
        """An interval that contains all values of `dim`."""
        result: Interval = (0, 0)
        for coefficient, monomial in dim.terms:
            part: Interval = (1, 1)
            for atom, power in monomial:
                part = intervals.multiply(part, intervals.power(self.of_atom(atom), power))
            result = intervals.add(result, intervals.scale(part, coefficient))
        return result

    def of_atom(self, atom: Atom) -> Interval:
        """An interval that contains all values of `atom`."""
        found = self._atoms.get(atom)
        if found is None:
            found = self._of_symbol(atom.name) if isinstance(atom, SymbolAtom) else self._of_function(atom)
            self._atoms[atom] = found
        return found

    def _of_symbol(self, name: str) -> Interval:
        low, high = self.bounds[name]
        return -INF if low is None else self._of_end(low)[0], INF if high is None else self._of_end(high)[1]

    def _of_end(self, end: End) -> Interval:
        if isinstance(end, Dim):
            return self.of(end)
        return (-INF, INF) if end is None else (end, end)

    def _of_function(self, atom: Atom) -> Interval:
        operands = [self.of(operand) for operand in atom.operands]
        match atom:
            case FloorDivAtom():
                return intervals.floordiv(operands[0], operands[1])
            case ModAtom():
                return intervals.mod(operands[0], operands[1])
            case MinAtom():
                return intervals.minimum(operands)
            case MaxAtom():
                return intervals.maximum(operands)
            case BroadcastAtom():
                return intervals.broadcast(operands)
            case _:
                raise TypeError(f"unknown atom class {type(atom).__name__}")

    def is_exact(self, dim: Dim) -> bool:
        """Whether the ends of the interval are attained because `dim` rises, or falls, with every symbol."""
        return self._rises(dim, 1) or self._rises(dim, -1)

    def _rises(self, dim: Dim, sign: int) -> bool:
        return all(
            coefficient * sign > 0 and all(self._atom_rises(atom) for atom, _ in monomial)
            for coefficient, monomial in dim.terms
            if monomial
        )

    def _atom_rises(self, atom: Atom) -> bool:
        """Whether `atom` is never negative and rises with every symbol; symbols have to be independent."""
        found = self._rising.get(atom)
        if found is None:
            found = self.of_atom(atom)[0] >= 0 and self._operands_rise(atom)
            self._rising[atom] = found
        return found

    def _operands_rise(self, atom: Atom) -> bool:
        match atom:
            case SymbolAtom():
                return not any(isinstance(end, Dim) for end in self.bounds[atom.name])
            case FloorDivAtom():
                return atom.denominator.is_constant and self._rises(atom.numerator, 1)
            case MinAtom() | MaxAtom():
                return all(self._rises(operand, 1) for operand in atom.operands)
            case _:
                return False


class UnboundedRanges(Ranges):
    """The same for symbols that may be any integers, also negative ones."""

    def __init__(self) -> None:
        super().__init__(Bounds())

    def _of_symbol(self, name: str) -> Interval:
        return intervals.EVERYTHING


class Sample(dict[str, int]):
    """One value for every symbol, within its bounds; chosen from the name when it is asked for."""

    def __init__(self, bounds: Bounds, index: int) -> None:
        super().__init__()
        self._bounds = bounds
        self._index = index

    def __missing__(self, name: str) -> int:
        low, high = (self._end(end) for end in self._bounds[name])
        if low is None and high is None:
            low = -(_SAMPLE_SPREAD // 2)
        if low is None:
            low = (high or 0) - _SAMPLE_SPREAD
        span = _SAMPLE_SPREAD if high is None else high - low
        if span < 0:
            raise ValueError(f"no value of '{name}' lies within its bounds")
        offset = crc32(f"{name} {self._index // 2}".encode()) % (min(span, _SAMPLE_SPREAD) + 1)
        if self._index == SAMPLE_COUNT - 2:
            offset = 0
        self[name] = low + offset if self._index % 2 == 0 else low + span - offset
        return self[name]

    def _end(self, end: End) -> int | None:
        return end.evaluate(self) if isinstance(end, Dim) else end


class Samples:
    """Sample values of the symbols within their bounds, to refute a claim before a proof is searched for."""

    def __init__(self, bounds: Bounds) -> None:
        self._samples = [Sample(bounds, index) for index in range(SAMPLE_COUNT)]

    def values(self, dim: Dim) -> Iterator[int]:
        """The values of `dim` for the samples for which it has one."""
        for sample in self._samples:
            try:
                value = dim.evaluate(sample)
            except (ZeroDivisionError, ValueError):
                continue
            yield value

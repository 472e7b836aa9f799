"""Mirrored variables: indices that count a variable down are rewritten to count it up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tir_dialect.analysis.digits import ONE, Ranges
from tir_dialect.dims import Dim, FloorDivAtom, ModAtom, symbol


@dataclass(frozen=True)
class Mirrors:
    """Variables `v` that stand for `extent - 1 - v` in indices, and their extents."""

    indices: tuple[Dim, ...]
    extents: dict[str, Dim]

    @staticmethod
    def of(space: Ranges, indices: Sequence[Dim], names: AbstractSet[str]) -> Mirrors | None:
        """Mirrors what is subtracted in quotients and remainders; `None` if there is nothing.

        `mod(n - 1 - i, 4)` is `mod(i, 4)` of the mirrored variable, whose digits can be told.
        """
        found = {name for index in indices for name in _subtracted(index)} & names
        extents = {name: space.variables[name].upper for name in sorted(found) if name in space.variables}
        known = {name: extent for name, extent in extents.items() if extent is not None and _from_zero(space, name)}
        if not known:
            return None
        values = {name: extent - ONE - symbol(name) for name, extent in known.items()}
        return Mirrors(tuple(index.substitute(values) for index in indices), known)


def _from_zero(space: Ranges, name: str) -> bool:
    lower = space.variables[name].lower
    return lower is not None and not lower.terms


def _subtracted(dim: Dim) -> Iterator[str]:
    """The symbols with a negative factor in the numerators of a dimension."""
    for _, monomial in dim.terms:
        for atom, _ in monomial:
            if not isinstance(atom, FloorDivAtom | ModAtom):
                continue
            yield from _subtracted(atom.numerator)
            for factor, inner in atom.numerator.terms:
                if factor < 0:
                    yield from (name for part, _ in inner for name in part.symbols)

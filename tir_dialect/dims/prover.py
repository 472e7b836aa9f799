"""Three-valued proofs about dimensions whose symbols lie in given bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tir_dialect.dims import intervals
from tir_dialect.dims.atoms import Atom, BroadcastAtom, FloorDivAtom, MaxAtom, MinAtom, ModAtom, SymbolAtom
from tir_dialect.dims.bounds import Bounds
from tir_dialect.dims.division import mod
from tir_dialect.dims.expr import Dim
from tir_dialect.dims.polynomial import coefficient_gcd
from tir_dialect.dims.text import DimLike, to_dim

if TYPE_CHECKING:
    from tir_dialect.dims.bounds import Interval


class Prover:
    """Answers questions about dimensions, for all values of the symbols within `bounds`.

    An answer is True when the statement holds for all values, False when it holds for none, and None when neither could
    be shown. Values for which an expression divides by zero, or broadcasts extents that differ, do not count.
    """

    def __init__(self, bounds: Bounds | Mapping[str, Interval] | None = None) -> None:
        self.bounds = bounds if isinstance(bounds, Bounds) else Bounds(bounds)
        self._atom_ranges: dict[Atom, intervals.Interval] = {}

    def range(self, dim: DimLike) -> Interval:
        """Least and greatest value that could be shown, both inclusive; None is unbounded."""
        low, high = self._range(to_dim(dim))
        return None if isinstance(low, float) else low, None if isinstance(high, float) else high

    def equal(self, lhs: DimLike, rhs: DimLike) -> bool | None:
        """Whether `lhs == rhs`."""
        difference = to_dim(lhs) - to_dim(rhs)
        if not difference.terms:
            return True
        step = coefficient_gcd(difference)
        if (step == 0 and difference.constant_term) or (step and difference.constant_term % step):
            return False
        low, high = self._range(difference)
        if low > 0 or high < 0:
            return False
        return True if low == high == 0 else None

    def less_equal(self, lhs: DimLike, rhs: DimLike) -> bool | None:
        """Whether `lhs <= rhs`."""
        low, high = self._range(to_dim(rhs) - to_dim(lhs))
        if low >= 0:
            return True
        return False if high < 0 else None

    def less(self, lhs: DimLike, rhs: DimLike) -> bool | None:
        """Whether `lhs < rhs`."""
        return self.less_equal(to_dim(lhs) + 1, rhs)

    def divisible(self, dim: DimLike, divisor: DimLike) -> bool | None:
        """Whether `dim` is a multiple of `divisor`; ZeroDivisionError for the constant divisor 0."""
        return self.equal(mod(to_dim(dim), to_dim(divisor)), 0)

    def _range(self, dim: Dim) -> intervals.Interval:
        result: intervals.Interval = (0, 0)
        for coefficient, monomial in dim.terms:
            part: intervals.Interval = (1, 1)
            for atom, power in monomial:
                part = intervals.multiply(part, intervals.power(self._atom_range(atom), power))
            result = intervals.add(result, intervals.scale(part, coefficient))
        return result

    def _atom_range(self, atom: Atom) -> intervals.Interval:
        found = self._atom_ranges.get(atom)
        if found is None:
            found = self._compute_atom_range(atom)
            self._atom_ranges[atom] = found
        return found

    def _compute_atom_range(self, atom: Atom) -> intervals.Interval:
        if isinstance(atom, SymbolAtom):
            low, high = self.bounds[atom.name]
            return -intervals.INF if low is None else low, intervals.INF if high is None else high
        ranges = [self._range(operand) for operand in atom.operands]
        match atom:
            case FloorDivAtom():
                return intervals.floordiv(ranges[0], ranges[1])
            case ModAtom():
                return intervals.mod(ranges[0], ranges[1])
            case MinAtom():
                return intervals.minimum(ranges)
            case MaxAtom():
                return intervals.maximum(ranges)
            case BroadcastAtom():
                return intervals.broadcast(ranges)
            case _:
                raise TypeError(f"unknown atom class {type(atom).__name__}")

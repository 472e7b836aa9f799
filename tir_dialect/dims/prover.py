"""Three-valued proofs about dimensions whose symbols lie in given bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tir_dialect.dims.atoms import Atom
from tir_dialect.dims.bounds import Bounds
from tir_dialect.dims.division import mod
from tir_dialect.dims.expr import Dim
from tir_dialect.dims.inequalities import LowerBoundSearch, open_moduli
from tir_dialect.dims.intervals import INF, End
from tir_dialect.dims.polynomial import coefficient_gcd
from tir_dialect.dims.ranges import Ranges
from tir_dialect.dims.residues import residues
from tir_dialect.dims.text import DimLike, to_dim

Range: TypeAlias = tuple[int | None, int | None]
"""Least and greatest value, both inclusive; None is unbounded."""


class Prover:
    """Answers questions about dimensions, for all values of the symbols within `bounds`.

    An answer is True when the statement holds for all values, False when it holds for none, and None when neither
    could be shown. Values for which an expression divides by zero, or broadcasts extents that differ, do not count.
    Answers are remembered; a prover may be shared wherever the bounds are the same.
    """

    def __init__(self, bounds: Bounds | Mapping[str, tuple[DimLike | None, DimLike | None]] | None = None) -> None:
        self.bounds = bounds if isinstance(bounds, Bounds) else Bounds(bounds)
        self._ranges = Ranges(self.bounds)
        self._levels: dict[Atom, int] = {}
        self._signs: dict[Dim, End] = {}
        self._lows: dict[Dim, End] = {}
        self._simplified: dict[Dim, Dim] = {}

    def range(self, dim: DimLike) -> Range:
        """Least and greatest value that could be shown, both inclusive; None is unbounded."""
        dim = to_dim(dim)
        low, high = self._lowest(dim), self._lowest(-dim)
        return None if isinstance(low, float) else low, None if isinstance(high, float) else -high

    def equal(self, lhs: DimLike, rhs: DimLike) -> bool | None:
        """Whether `lhs == rhs`."""
        lhs, rhs = to_dim(lhs), to_dim(rhs)
        if lhs is rhs:
            return True
        difference = lhs - rhs
        answer = self._is_zero(open_moduli(difference))
        if answer is None:
            simpler = self.simplify(difference)
            answer = None if simpler is difference else self._is_zero(simpler)
        return answer

    def _is_zero(self, difference: Dim) -> bool | None:
        if not difference.terms:
            return True
        step = coefficient_gcd(difference)
        if difference.constant_term % step if step else difference.constant_term:
            return False
        if self._non_negative(difference):
            if self._non_negative(-difference):
                return True
            return False if self._non_negative(difference - 1) else None
        return False if self._non_negative(-difference - 1) else None

    def less_equal(self, lhs: DimLike, rhs: DimLike) -> bool | None:
        """Whether `lhs <= rhs`."""
        difference = to_dim(rhs) - to_dim(lhs)
        if self._non_negative(difference):
            return True
        return False if self._non_negative(-difference - 1) else None

    def less(self, lhs: DimLike, rhs: DimLike) -> bool | None:
        """Whether `lhs < rhs`."""
        return self.less_equal(to_dim(lhs) + 1, rhs)

    def divisible(self, dim: DimLike, divisor: DimLike) -> bool | None:
        """Whether `dim` is a multiple of `divisor`; ZeroDivisionError for the constant divisor 0."""
        dim, divisor = to_dim(dim), to_dim(divisor)
        rest = mod(dim, divisor)
        if not rest.is_constant and divisor.is_constant:
            found = residues(dim, divisor.constant_term)
            if found is not None and (found == {0} or 0 not in found):
                return 0 in found
        return self.equal(rest, 0)

    def simplify(self, dim: DimLike) -> Dim:
        """A dimension that is equal within the bounds, and simpler where they allow it; one without values stays."""
        from tir_dialect.dims.simplify import simplify

        dim = to_dim(dim)
        found = self._simplified.get(dim)
        if found is None:
            try:
                found = simplify(dim, self)
            except (ZeroDivisionError, ValueError):
                found = dim
            self._simplified[dim] = found
        return found

    def _non_negative(self, dim: Dim) -> bool:
        found = self._signs.get(dim)
        if found is None:
            found = LowerBoundSearch(self._ranges, self._levels).lower(dim, 0)
            self._signs[dim] = found
        return found >= 0

    def _lowest(self, dim: Dim) -> End:
        found = self._lows.get(dim)
        if found is None:
            found = LowerBoundSearch(self._ranges, self._levels).lower(dim, INF)
            self._lows[dim] = found
        return found

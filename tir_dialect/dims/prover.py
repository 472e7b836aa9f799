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
from tir_dialect.dims.samples import Samples
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
        self._samples = Samples(self.bounds)
        self._signs: dict[Dim, bool] = {}
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
        low, high = self._ranges.of(difference)
        if low > 0 or high < 0 or _misses_zero(difference):
            return False
        signs = self._sampled_signs(difference)
        if len(signs) > 1:
            return None
        for rewrite in (open_moduli, self.simplify):
            answer = self._is_zero(rewrite(difference), signs)
            if answer is not None:
                return answer
        return None

    def _sampled_signs(self, dim: Dim) -> set[int]:
        """Signs that `dim` has for samples; two are enough to know that it is neither always nor never 0."""
        signs: set[int] = set()
        for value in self._samples.values(dim):
            signs.add((value > 0) - (value < 0))
            if len(signs) > 1:
                break
        return signs

    def _is_zero(self, dim: Dim, signs: set[int]) -> bool | None:
        """Whether `dim` is 0, where all samples have the same sign."""
        if not dim.terms:
            return True
        if _misses_zero(dim):
            return False
        if signs <= {0} and self._non_negative(dim) and self._non_negative(-dim):
            return True
        if 0 not in signs and (self._non_negative(dim - 1) or self._non_negative(-dim - 1)):
            return False
        return None

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
            low, _ = self._ranges.of(dim)
            found = low >= 0
            if not found and all(value >= 0 for value in self._samples.values(dim)):
                found = LowerBoundSearch(self._ranges, self._levels).lower(dim, 0) >= 0
            self._signs[dim] = found
        return found

    def _lowest(self, dim: Dim) -> End:
        found = self._lows.get(dim)
        if found is None:
            found = LowerBoundSearch(self._ranges, self._levels).lower(dim, INF)
            self._lows[dim] = found
        return found


def _misses_zero(dim: Dim) -> bool:
    """Whether `dim` is never 0 by divisibility, as `2 * n + 1`."""
    step = coefficient_gcd(dim)
    return (dim.constant_term % step if step else dim.constant_term) != 0

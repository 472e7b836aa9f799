"""Three-valued proofs about dimensions whose symbols lie in given bounds, and simplification under the bounds.

What the canonical form leaves because it does not hold for all integers is simplified by these rules:

* a symbol with one value is that value
* `floordiv(a, b) = 0` and `mod(a, b) = a` where `0 <= a < b`; for a constant `b` also of addends:
  `floordiv(8 * i + j, 8) = i` for `0 <= j < 8`
* operands of `min` and `max` that never decide go; `broadcast(a, b) = b` where `a` is always 1, or `b` never
* `b * floordiv(a, b) + mod(a, b) = a`
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from math import prod

from tir_dialect.dims.bounds import Bounds, Ranges, Samples
from tir_dialect.dims.division import (
    BroadcastAtom,
    DivisionAtom,
    FloorDivAtom,
    MaxAtom,
    MinAtom,
    Range,
    broadcast,
    coefficient_gcd,
    divide,
    floordiv_by_constant,
    maximum,
    minimum,
    mod,
    mod_by_constant,
)
from tir_dialect.dims.expr import FUNCTIONS, Atom, Dim, DimLike, SymbolAtom, as_dim, from_atom, rewrite, to_dim
from tir_dialect.dims.inequalities import LowerBoundSearch, open_moduli
from tir_dialect.dims.intervals import INF, End

MAX_RESIDUES = 2048
"""Most combinations of residues that are looked at."""


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
        # Signs that `dim` has for samples; two are enough to know that it is neither always nor never 0.
        signs: set[int] = set()
        for value in self._samples.values(difference):
            signs.add((value > 0) - (value < 0))
            if len(signs) > 1:
                break
        if len(signs) > 1:
            return None
        for simpler in (open_moduli, self.simplify):
            answer = self._is_zero(simpler(difference), signs)
            if answer is not None:
                return answer
        return None

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
            found = _residues(dim, divisor.constant_term)
            if found is not None and (found == {0} or 0 not in found):
                return 0 in found
        return self.equal(rest, 0)

    def simplify(self, dim: DimLike) -> Dim:
        """A dimension that is equal within the bounds, and simpler where they allow it; one without values stays."""
        dim = to_dim(dim)
        found = self._simplified.get(dim)
        if found is None:
            try:
                found = _join_moduli(rewrite(dim, lambda atom, operands: _simplify_atom(atom, operands, self)))
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


def _residues(dim: Dim, divisor: int) -> set[int] | None:
    """A set that contains `dim % divisor` for all values of the atoms; None where there are too many to look at.

    Atoms count as independent and free, so every residue of a polynomial in symbols is attained.
    """
    modulus = abs(divisor)
    atoms: list[Atom] = sorted({a for _, monomial in dim.terms for a, _ in monomial}, key=lambda a: a.sort_key)
    if modulus ** len(atoms) > MAX_RESIDUES:
        return None
    found: set[int] = set()
    for values in itertools.product(range(modulus), repeat=len(atoms)):
        env = dict(zip(atoms, values, strict=True))
        found.add(sum(c * prod(env[a] ** power for a, power in monomial) for c, monomial in dim.terms) % modulus)
        if len(found) == modulus:
            break
    return found


def _join_moduli(dim: Dim) -> Dim:
    """`dim` with quotients and moduli joined where that makes it shorter."""
    opened = open_moduli(dim)
    return opened if len(opened.terms) < len(dim.terms) else dim


def _simplify_atom(atom: Atom, operands: Sequence[Dim], prover: Prover) -> Dim:
    operands = [_join_moduli(operand) for operand in operands]
    match atom:
        case SymbolAtom():
            low, high = prover.bounds[atom.name]
            return as_dim(low) if low is not None and low == high else from_atom(atom)
        case DivisionAtom():
            return _simplify_division(atom, operands[0], operands[1], prover)
        case MinAtom():
            return minimum(*_without_dominated(operands, prover.less_equal))
        case MaxAtom():
            return maximum(*_without_dominated(operands, lambda lhs, rhs: prover.less_equal(rhs, lhs)))
        case BroadcastAtom():
            relevant = [operand for operand in operands if prover.equal(operand, 1) is not True]
            fixed = [operand for operand in relevant if prover.equal(operand, 1) is False]
            return min(fixed, key=lambda dim: dim.sort_key) if fixed else broadcast(*relevant)
        case _:
            raise TypeError(f"unknown atom class {type(atom).__name__}")


def _simplify_division(atom: DivisionAtom, numerator: Dim, denominator: Dim, prover: Prover) -> Dim:
    is_quotient = isinstance(atom, FloorDivAtom)
    divisor = denominator.constant_value
    if divisor is not None:
        by_constant = floordiv_by_constant if is_quotient else mod_by_constant
        return by_constant(numerator, divisor, prover.range)
    quotient, rest = divide(numerator, denominator)
    if prover.less_equal(as_dim(0), rest) and prover.less_equal(rest, denominator - 1):
        return quotient if is_quotient else rest
    return FUNCTIONS[atom.spelling](numerator, denominator)


def _without_dominated(operands: Sequence[Dim], decides: Callable[[Dim, Dim], bool | None]) -> list[Dim]:
    """The operands without those for which another one always decides."""
    kept: list[Dim] = []
    for operand in operands:
        if any(decides(other, operand) for other in kept):
            continue
        kept = [other for other in kept if not decides(operand, other)]
        kept.append(operand)
    return kept

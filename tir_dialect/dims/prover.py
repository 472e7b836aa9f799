"""Three-valued proofs about dimensions whose symbols lie in given bounds, and simplification under the bounds.

What the canonical form leaves because it does not hold for all integers is simplified by these rules:

* a symbol with one value is that value
* `floordiv(a, b) = 0` and `mod(a, b) = a` where `0 <= a < b`; for a constant `b` also of addends:
  `floordiv(8 * i + j, 8) = i` for `0 <= j < 8`
* operands of `min` and `max` that never decide go; `broadcast(a, b) = b` where `a` is always 1, or `b` never
* `b * floordiv(a, b) + mod(a, b) = a`

Interval arithmetic forgets that two terms share a symbol. For lower bounds atoms are eliminated one after the other
instead. With `d = a * x + b`, where the atom `x` lies between `low` and `high`:

* if `a >= 0`, then `d >= a * low + b`; if `a <= 0`, then `d >= a * high + b`;
* otherwise, if `a` is free of `x`, `d` is at least the smaller of the two, because it is linear in `x`.

`low` and `high` are expressions over simpler atoms, so what cancels does cancel: with `floordiv(n, 4) <= n / 4`,
`n - 4 * floordiv(n, 4) >= n - n`. Functions go before their operands, and symbols before those that occur in their
bounds. For products of different symbols with integer bounds the method is exact. For higher powers of a symbol the
least value is treated by itself: `n * n - n >= 0`, because it is 0 for 0 and `n * n + n` for `n + 1`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import NamedTuple, TypeAlias

from tir_dialect.dims.bounds import Bounds, Ranges, Samples
from tir_dialect.dims.division import (
    BroadcastAtom,
    DivisionAtom,
    FloorDivAtom,
    MaxAtom,
    MinAtom,
    ModAtom,
    Range,
    broadcast,
    coefficient_gcd,
    divide,
    divide_terms,
    floordiv,
    floordiv_by_constant,
    maximum,
    minimum,
    mod,
    mod_by_constant,
)
from tir_dialect.dims.expr import (
    FUNCTIONS,
    Atom,
    Dim,
    DimLike,
    Monomial,
    SortKey,
    SymbolAtom,
    Term,
    as_dim,
    constant,
    from_atom,
    from_monomials,
    intern_dim,
    rewrite,
    scale,
    to_dim,
)
from tir_dialect.dims.intervals import INF, End, Interval, plus, times

BUDGET = 6000
"""Effort of one search, in terms looked at; when it is used up, interval arithmetic answers."""

STEP = 8
"""Effort of a step, in addition to the terms of its dimension."""

MAX_DEPTH = 80
"""Most eliminations within each other."""

MAX_SHIFTS = 4
"""Most times that the least value of a symbol is treated by itself in one search."""


class LowerBoundSearch:
    """One search for a lower bound; results within it are shared, its steps are limited."""

    def __init__(self, ranges: Ranges, levels: dict[Atom, int]) -> None:
        self._ranges = ranges
        self._levels = levels
        self._effort = BUDGET
        self._depth = 0
        self._shifts = 0
        self._known: dict[Dim, tuple[End, End]] = {}

    def lower(self, dim: Dim, goal: End) -> End:
        """A number that `dim` is never below. The search ends at `goal`; the goal `INF` asks for the best."""
        low, high = self._ranges.of(dim)
        if low >= goal or low == high or (high < goal and goal != INF):
            return low
        known_goal, known = self._known.get(dim, (-INF, -INF))
        if known >= goal or known_goal >= goal or self._is_exhausted() or self._ranges.is_exact(dim):
            return max(low, known)
        self._effort -= STEP + len(dim.terms)
        self._depth += 1
        found = max(low, known, self._search(dim, goal))
        self._depth -= 1
        self._known[dim] = goal, found
        return found

    def _is_exhausted(self) -> bool:
        return self._effort <= 0 or self._depth >= MAX_DEPTH

    def _at_least(self, dim: Dim, goal: int) -> bool:
        return self.lower(dim, goal) >= goal

    def _search(self, dim: Dim, goal: End) -> End:
        step = coefficient_gcd(dim)
        if step > 1:
            offset = dim.constant_term
            inner = self.lower(divide_terms(dim - offset, step, ()), _ceildiv(plus(goal, -offset), step))
            return plus(times(inner, step), offset)
        dim = open_moduli(dim)
        if not any(monomial for _, monomial in dim.terms):
            return dim.constant_term
        parts = independent_parts(dim, self._ranges.bounds.related)
        if len(parts) > 1:
            # A lower bound of a sum of independent parts; those of which least is known are looked at first.
            lows: list[End] = [self._ranges.of(part)[0] for part in parts]
            for i in sorted(range(len(parts)), key=lambda i: lows[i]):
                lows[i] = self.lower(parts[i], INF)
                if lows[i] == -INF:
                    return -INF
                reached = reduce(plus, lows, dim.constant_term)
                if reached >= goal:
                    return reached
            return reduce(plus, lows, dim.constant_term)
        # The atom to eliminate: one of the highest level.
        atoms = {atom for _, monomial in dim.terms for atom, _ in monomial}
        top = max(map(self._level, atoms))
        atom = min((atom for atom in atoms if self._level(atom) == top), key=lambda atom: _urgency(dim, atom))
        return self._eliminate(atom, *split(dim, atom), goal)

    def _eliminate(self, atom: Atom, factor: Dim, rest: Dim, goal: End) -> End:
        """A lower bound of `factor * atom + rest`."""
        known = estimate(atom, self._ranges.bounds, self._ranges.of_atom(atom), self._at_least)
        if isinstance(atom, FloorDivAtom) and not atom.denominator.is_constant:
            quotient = self._multiple_of_denominator(atom, factor)
            if quotient is not None:
                # Estimates of `denominator * floordiv(numerator, denominator)` for a positive denominator.
                low = Estimate(1, atom.numerator - atom.denominator + 1)
                factor, known = quotient, Estimates([(low,)], [(Estimate(1, atom.numerator),)])
        if self._at_least(factor, 0):
            return self._best(known.low, factor, rest, goal)
        if self._at_least(-factor, 0):
            return self._best(known.high, factor, rest, goal)
        if atom in {inner for _, monomial in factor.terms for inner, _ in monomial}:
            # The lower bound of a polynomial of higher degree in `atom`: its least value, and all others, by
            # themselves. `atom + 1` stands for the others; it takes one value too many when the symbol has a greatest
            # one.
            low = self._ranges.bounds[atom.name][0] if isinstance(atom, SymbolAtom) else None
            if not isinstance(low, int) or self._shifts >= MAX_SHIFTS:
                return -INF
            self._shifts += 1
            dim = factor * from_atom(atom) + rest
            at_least_value = self.lower(replace_atom(dim, atom, constant(low)), goal)
            if at_least_value < goal and goal != INF:
                return -INF
            return min(at_least_value, self.lower(replace_atom(dim, atom, from_atom(atom) + 1), goal))
        if known.values:
            return self._best([known.values], factor, rest, goal)
        at_low = self._best(known.low, factor, rest, goal)
        return at_low if at_low == -INF else min(at_low, self._best(known.high, factor, rest, goal))

    def _multiple_of_denominator(self, atom: FloorDivAtom, factor: Dim) -> Dim | None:
        """`factor / denominator` when that is exact and the denominator, which is not 0, is positive."""
        if not self._at_least(atom.denominator, 0):
            return None
        quotient, remainder = divide(factor, atom.denominator)
        return None if remainder.terms else quotient

    def _best(self, alternatives: Sequence[Cases], factor: Dim, rest: Dim, goal: End) -> End:
        """The greatest lower bound of `factor * x + rest` for the alternative estimates of `x`."""
        best: End = -INF
        for cases in alternatives:
            worst: End = INF
            for case in cases:
                reached = self.lower(scale(rest, case.scale) + factor * case.value, times(goal, case.scale))
                worst = min(worst, _ceildiv(reached, case.scale))
                if worst <= best:
                    break
            best = max(best, worst)
            if best >= goal:
                break
        return best

    def _level(self, atom: Atom) -> int:
        """Greater than the levels of all atoms that estimates of `atom` are made of."""
        found = self._levels.get(atom)
        if found is None:
            if isinstance(atom, SymbolAtom):
                parts = [end for end in self._ranges.bounds[atom.name] if isinstance(end, Dim)]
            else:
                parts = list(atom.operands)
            inner = {part for dim in parts for _, monomial in dim.terms for part, _ in monomial}
            found = 1 + max(map(self._level, inner), default=0)
            self._levels[atom] = found
        return found


def _urgency(dim: Dim, atom: Atom) -> tuple[int, SortKey]:
    if not isinstance(atom, MinAtom | MaxAtom):
        return 1, atom.sort_key
    factor, _ = split(dim, atom)
    return 2 if (factor.constant_term > 0) == isinstance(atom, MaxAtom) else 0, atom.sort_key


def _ceildiv(end: End, divisor: int) -> End:
    return end if isinstance(end, float) else -(-end // divisor)


def split(dim: Dim, atom: Atom) -> tuple[Dim, Dim]:
    """`(a, b)` with `dim == a * atom + b`, where `b` is free of the atom as a factor."""
    factor: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for coefficient, monomial in dim.terms:
        left = tuple((part, power - (part is atom)) for part, power in monomial if part is not atom or power > 1)
        if left == monomial:
            rest[monomial] = coefficient
        else:
            factor[left] = coefficient
    return from_monomials(factor), from_monomials(rest)


def open_moduli(dim: Dim) -> Dim:
    """`dim` with `a - b * floordiv(a, b)` for `mod(a, b)` where that quotient occurs, too, so that they cancel."""
    atoms = {atom for _, monomial in dim.terms for atom, _ in monomial}
    for atom in sorted(atoms, key=lambda atom: atom.sort_key):
        if isinstance(atom, ModAtom):
            quotient = floordiv(atom.numerator, atom.denominator)
            inner = {part for _, monomial in quotient.terms for part, _ in monomial if isinstance(part, FloorDivAtom)}
            if inner and inner <= atoms:
                dim = replace_atom(dim, atom, atom.numerator - atom.denominator * quotient)
    return dim


def replace_atom(dim: Dim, atom: Atom, value: Dim) -> Dim:
    """`dim` with a value for an atom, except inside other atoms; by Horner's rule."""
    factor, rest = split(dim, atom)
    return rest + replace_atom(factor, atom, value) * value if factor.terms else rest


def independent_parts(dim: Dim, related: Callable[[str], Iterable[str]]) -> list[Dim]:
    """Parts whose sum is `dim` without its constant, such that terms of different parts depend on different symbols.

    `related(name)` are the symbols whose values limit those of `name`. Linear in the number of terms.
    """
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        root = name
        while (above := parent.setdefault(root, root)) != root:
            root = above
        while parent[name] != root:
            parent[name], name = root, parent[name]
        return root

    terms = [(term, _one_symbol(term)) for term in dim.terms if term[1]]
    for (_, monomial), first in terms:
        for name in frozenset[str]().union(*(atom.symbols for atom, _ in monomial)):
            for other in (name, *related(name)):
                parent[find(other)] = find(first)
    groups: dict[str, list[Term]] = {}
    for term, first in terms:
        groups.setdefault(find(first), []).append(term)
    return [intern_dim(tuple(group)) for group in groups.values()]


def _one_symbol(term: Term) -> str:
    """Any symbol of a term, the same in every run; atoms without symbols depend on nothing but themselves."""
    names = frozenset[str]().union(*(atom.symbols for atom, _ in term[1]))
    return min(names, default="")


class Estimate(NamedTuple):
    """A bound `value` on `scale * x`, with `scale > 0`."""

    scale: int
    value: Dim


Cases: TypeAlias = tuple[Estimate, ...]
"""Estimates of which, for all values of the symbols, at least one holds."""


class Estimates(NamedTuple):
    """Lower and upper estimates; every entry of `low`, and of `high`, is good by itself.

    `values` are dimensions of which, for all values of the symbols, one is the atom; empty when that is not known.
    """

    low: Sequence[Cases]
    high: Sequence[Cases]
    values: Cases = ()


AtLeast: TypeAlias = Callable[[Dim, int], bool]
"""Whether a dimension could be shown to be at least an integer."""


def estimate(atom: Atom, bounds: Bounds, interval: Interval, at_least: AtLeast) -> Estimates:
    """The estimates of `atom`, whose interval is `interval`."""
    match atom:
        case SymbolAtom():
            low, high = bounds[atom.name]
            return Estimates(_only(low), _only(high))
        case FloorDivAtom():
            low, high = _only(interval[0]), _only(interval[1])
            divisor = atom.denominator.constant_value
            if divisor is not None:
                low.insert(0, (Estimate(divisor, atom.numerator - (divisor - 1)),))
                high.insert(0, (Estimate(divisor, atom.numerator),))
            elif at_least(atom.denominator, 0) and at_least(atom.numerator, 0):
                high.append((_exact(atom.numerator),))
            return Estimates(low, high)
        case ModAtom():
            return _estimate_mod(atom, interval, at_least)
        case MinAtom():
            each = [(_exact(operand),) for operand in atom.operands]
            return Estimates([_all(atom)], each, _all(atom))
        case MaxAtom():
            each = [(_exact(operand),) for operand in atom.operands]
            return Estimates(each, [_all(atom)], _all(atom))
        case BroadcastAtom():
            low = [_all(atom)]
            if all(at_least(operand, 1) for operand in atom.operands):
                low = [(case,) for case in _all(atom)]
            return Estimates(low, [_all(atom)], _all(atom))
        case _:
            raise TypeError(f"unknown atom class {type(atom).__name__}")


def _exact(value: Dim) -> Estimate:
    return Estimate(1, value)


def _only(end: End | Dim | None) -> list[Cases]:
    return [] if end is None or isinstance(end, float) else [(_exact(as_dim(end)),)]


def _all(atom: Atom) -> Cases:
    return tuple(map(_exact, atom.operands))


# Where a function has a value, its denominator is not 0; so one that is never negative counts as positive.


def _estimate_mod(atom: ModAtom, interval: Interval, at_least: AtLeast) -> Estimates:
    low, high = _only(interval[0]), _only(interval[1])
    if at_least(atom.denominator, 0):
        low.append((_exact(constant(0)),))
        high.append((_exact(atom.denominator - 1),))
        if at_least(atom.numerator, 0):
            high.append((_exact(atom.numerator),))
            if at_least(atom.denominator - atom.numerator, 1):
                low.append((_exact(atom.numerator),))
    return Estimates(low, high)


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
            numerator, denominator = operands
            is_quotient = isinstance(atom, FloorDivAtom)
            divisor = denominator.constant_value
            if divisor is not None:
                by_constant = floordiv_by_constant if is_quotient else mod_by_constant
                return by_constant(numerator, divisor, prover.range)
            quotient, rest = divide(numerator, denominator)
            if prover.less_equal(as_dim(0), rest) and prover.less_equal(rest, denominator - 1):
                return quotient if is_quotient else rest
            return FUNCTIONS[atom.spelling](numerator, denominator)
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


def _without_dominated(operands: Sequence[Dim], decides: Callable[[Dim, Dim], bool | None]) -> list[Dim]:
    """The operands without those for which another one always decides."""
    kept: list[Dim] = []
    for operand in operands:
        if any(decides(other, operand) for other in kept):
            continue
        kept = [other for other in kept if not decides(operand, other)]
        kept.append(operand)
    return kept

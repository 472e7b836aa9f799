"""Indices as sums of digits: what tells the iterations of a loop apart.

A digit of a value `v` is `floordiv(v, low)`, `mod(v, high)` or `mod(floordiv(v, low), high / low)`, as splits and
fusions of loops leave them; `v` is a loop variable, or an expression of several. In an index `base + c1 * d1 + ...`
whose factors grow fast enough, the value determines all of the digits, as that of a number does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import pairwise

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Atom, Dim, FloorDivAtom, ModAtom, SymbolAtom, ceildiv, constant, product
from tir_dialect.dims.expr import from_atom

ONE = constant(1)


@dataclass(frozen=True)
class Digit:
    """The part of `source` from `low` up to `high`: `floordiv(mod(source, high), low)`, without `high` no mod."""

    source: Dim
    low: Dim = ONE
    high: Dim | None = None


@dataclass(frozen=True)
class Term:
    """`factor * digit`."""

    factor: Dim
    digit: Digit


@dataclass(frozen=True)
class Sum:
    """`base` plus terms, the smallest factor first; `base` is free of the variables."""

    base: Dim
    terms: tuple[Term, ...]


def digit_range(space: IndexSpace, digit: Digit) -> Dim | None:
    """How many values a digit has at most, from 0 on; `None` if that is not known."""
    if digit.high is not None:
        return ceildiv(digit.high, digit.low)
    variable = space.variables.get(digit.source.as_symbol or "")
    if variable is None or variable.upper is None or variable.lower is None:
        return None
    return ceildiv(variable.upper, digit.low) if space.less_equal(0, variable.lower) is True else None


def as_sum(space: IndexSpace, dim: Dim, names: AbstractSet[str]) -> Sum | None:
    """`dim` as a sum of digits of the variables `names`, by growing factors; `None` if it is no such sum."""
    base, terms = constant(0), list[Term]()
    for coefficient, monomial in dim.terms:
        moving = [(atom, power) for atom, power in monomial if not names.isdisjoint(atom.symbols)]
        fixed = [from_atom(atom) for atom, power in monomial if names.isdisjoint(atom.symbols) for _ in range(power)]
        factor = product([constant(coefficient), *fixed])
        if not moving:
            base = base + factor
            continue
        digit = _digit(moving[0][0], names)
        if len(moving) > 1 or moving[0][1] > 1 or digit is None or space.less_equal(1, factor) is not True:
            return None
        terms.append(Term(factor, digit))
    return _sorted(space, base, terms)


def _sorted(space: IndexSpace, base: Dim, terms: list[Term]) -> Sum | None:
    unknown = False

    def compare(one: Term, other: Term) -> int:
        nonlocal unknown
        if one.factor is other.factor:
            return 0
        if space.less_equal(one.factor, other.factor):
            return -1
        unknown = unknown or not space.less_equal(other.factor, one.factor)
        return 1

    ordered = sorted(terms, key=cmp_to_key(compare))
    return None if unknown else Sum(base, tuple(ordered))


def _digit(atom: Atom, names: AbstractSet[str]) -> Digit | None:
    if isinstance(atom, SymbolAtom):
        return Digit(from_atom(atom))
    if not isinstance(atom, FloorDivAtom | ModAtom) or not names.isdisjoint(atom.denominator.symbols):
        return None
    inner = atom.numerator.as_atom
    found = (None if inner is None else _digit(inner, names)) or Digit(atom.numerator)
    if isinstance(atom, FloorDivAtom):
        return Digit(found.source, found.low * atom.denominator, found.high)
    if found.high is not None:
        return None
    # mod(floordiv(v, low), d) keeps what is below low * d
    return Digit(found.source, found.low, found.low * atom.denominator)


def grows(space: IndexSpace, terms: Sequence[Term]) -> bool:
    """Whether each factor is at least as large as everything that the terms before it can add up to."""
    for term, following in pairwise(terms):
        values = digit_range(space, term.digit)
        if values is None or space.less_equal(term.factor * values, following.factor) is not True:
            return False
    return True


def covers(space: IndexSpace, source: Dim, digits: Iterable[Digit]) -> bool:
    """Whether the digits together determine `source`."""
    own = {digit for digit in digits if digit.source is source}
    variable = space.variables.get(source.as_symbol or "")
    extent = None if variable is None else variable.upper
    position = ONE
    while True:
        if extent is not None and space.less_equal(extent, position) is True:
            return True
        following = next((digit for digit in own if digit.low is position), None)
        if following is None:
            return False
        if following.high is None:
            return True
        own.discard(following)
        position = following.high

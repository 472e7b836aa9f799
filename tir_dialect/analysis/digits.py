"""Indices as sums of digits: what tells the iterations of a loop apart.

A digit of a value `v` is `floordiv(v, low)`, `mod(v, high)` or `mod(floordiv(v, low), high / low)`, as splits and
fusions of loops leave them; `v` is a loop variable, or an expression of several. In an index `base + c1 * d1 + ...`
whose factors grow fast enough, the value determines all of the digits, as that of a number does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import pairwise
from typing import Protocol

from tir_dialect.analysis.index_space import Variable
from tir_dialect.dims import (
    Atom,
    Dim,
    DimLike,
    FloorDivAtom,
    ModAtom,
    SymbolAtom,
    ceildiv,
    constant,
    from_atom,
    product,
    symbol,
)

ONE = constant(1)

MOST = 8
"""How many values of a symbol are tried."""


class Ranges(Protocol):
    """What is known about variables: an `IndexSpace`, or the indices of a buffer."""

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables by symbol."""
        ...

    def less_equal(self, lhs: DimLike, rhs: DimLike) -> bool | None:
        """Whether `lhs <= rhs`, for all values or for none."""
        ...


@dataclass(frozen=True)
class Digit:
    """The part of `source` from `low` up to `high`: `floordiv(mod(source, high), low)`, without `high` no mod."""

    source: Dim
    low: Dim = ONE
    high: Dim | None = None


@dataclass(frozen=True)
class Term:
    """`factor * digit`, or `factor * (range - 1 - digit)` where the digit is mirrored."""

    factor: Dim
    digit: Digit
    mirrored: bool = False


@dataclass(frozen=True)
class Sum:
    """`base` plus terms, the smallest factor first; `base` is free of the variables."""

    base: Dim
    terms: tuple[Term, ...]


def digit_range(space: Ranges, digit: Digit) -> Dim | None:
    """How many values a digit has at most, from 0 on; `None` if that is not known."""
    if digit.high is not None:
        return ceildiv(digit.high, digit.low)
    variable = space.variables.get(digit.source.as_symbol or "")
    if variable is None or variable.upper is None or variable.lower is None:
        return None
    return ceildiv(variable.upper, digit.low) if space.less_equal(0, variable.lower) is True else None


def as_sum(space: Ranges, dim: Dim, names: AbstractSet[str], not_empty: Iterable[Dim] = ()) -> Sum | None:
    """`dim` as a sum of digits of the variables `names`, by growing factors; `None` if it is no such sum.

    It may be one only where the extents `not_empty` are at least 1.
    """
    base, terms = constant(0), list[Term]()
    filled = _with_extents(space, dim, names, not_empty)
    factors: dict[Atom, Dim] = {}
    for coefficient, monomial in dim.terms:
        moving = [(atom, power) for atom, power in monomial if not names.isdisjoint(atom.symbols)]
        fixed = [from_atom(atom) for atom, power in monomial if names.isdisjoint(atom.symbols) for _ in range(power)]
        factor = product([constant(coefficient), *fixed])
        if not moving:
            base = base + factor
        elif len(moving) > 1 or moving[0][1] > 1:
            return None
        else:
            factors[moving[0][0]] = factors.get(moving[0][0], constant(0)) + factor
    for atom, factor in factors.items():
        digit = _digit(atom, names)
        if digit is None:
            return None
        if space.less_equal(1, factor.substitute(filled)) is True:
            terms.append(Term(factor, digit))
            continue
        values = digit_range(space, digit)
        if values is None or values.symbols & names or space.less_equal(factor.substitute(filled), -1) is not True:
            return None
        base = base + factor * (values - ONE)
        terms.append(Term(-factor, digit, mirrored=True))
    return _sorted(space, base, terms, filled)


def _with_extents(space: Ranges, dim: Dim, names: AbstractSet[str], not_empty: Iterable[Dim]) -> dict[str, Dim]:
    """The symbols in extents of variables in `dim`, and in others, as themselves and the least values with which none
    is empty.

    A variable that has a value has an extent of at least 1: what holds for all values after the substitution holds
    wherever `dim` is used.
    """
    found: dict[str, Dim] = {}
    extents = list(not_empty)
    for variable in (space.variables[name] for name in names & dim.symbols if name in space.variables):
        if variable.upper is None or variable.lower is None or space.less_equal(0, variable.lower) is not True:
            continue
        extents.append(variable.upper)
    for extent in extents:
        for each in extent.symbols - names:
            least = _least(space, extent, each)
            if least > (found[each].constant_term if each in found else 0):
                found[each] = symbol(each) + least
    return found


def _least(space: Ranges, extent: Dim, name: str) -> int:
    """The least value of a symbol, up to some, with which an extent may be at least 1."""
    for value in range(MOST):
        try:
            if space.less_equal(extent.substitute({name: value}), 0) is not True:
                return value
        except ZeroDivisionError:  # the extent has no value there
            return value
    return MOST


def _sorted(space: Ranges, base: Dim, terms: list[Term], filled: dict[str, Dim]) -> Sum | None:
    unknown = False

    def compare(one: Term, other: Term) -> int:
        nonlocal unknown
        lhs, rhs = one.factor.substitute(filled), other.factor.substitute(filled)
        if lhs is rhs:
            return 0
        if space.less_equal(lhs, rhs):
            return -1
        unknown = unknown or not space.less_equal(rhs, lhs)
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


def grows(space: Ranges, terms: Sequence[Term]) -> bool:
    """Whether each factor is at least as large as everything that the terms before it can add up to."""
    for term, following in pairwise(terms):
        values = digit_range(space, term.digit)
        if values is None or space.less_equal(term.factor * values, following.factor) is not True:
            return False
    return True


def covers(space: Ranges, source: Dim, digits: Iterable[Digit]) -> bool:
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

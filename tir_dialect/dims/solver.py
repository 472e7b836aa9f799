"""Matching of dimension patterns with values: which symbols they bind and what remains to be checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from heapq import heappop, heappush

from typing_extensions import override

from tir_dialect.dims.bounds import Bounds
from tir_dialect.dims.division import floordiv
from tir_dialect.dims.expr import Dim, DimLike, SymbolAtom, Term, as_dim, constant, intern_dim, to_dim
from tir_dialect.dims.prover import Prover


class CheckKind(Enum):
    """What a check demands of its two sides."""

    EQUAL = "equal"
    """`lhs == rhs`."""
    DIVISIBLE = "divisible"
    """`lhs` is a multiple of `rhs`, a constant greater than 1."""
    NON_NEGATIVE = "non-negative"
    """`lhs >= 0`; `rhs` is 0."""


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on values that has to hold at run time.

    `source` is the index of the pattern that it comes from. For `EQUAL`, `lhs` is the pattern with all bindings put in
    (what was expected) and `rhs` the value (what was got).
    """

    kind: CheckKind
    lhs: Dim
    rhs: Dim
    source: int

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether the condition holds for these values of the symbols."""
        lhs, rhs = self.lhs.evaluate(values), self.rhs.evaluate(values)
        match self.kind:
            case CheckKind.EQUAL:
                return lhs == rhs
            case CheckKind.DIVISIBLE:
                return lhs % rhs == 0
            case CheckKind.NON_NEGATIVE:
                return lhs >= 0

    def __str__(self) -> str:
        match self.kind:
            case CheckKind.EQUAL:
                return f"{self.lhs} == {self.rhs}"
            case CheckKind.DIVISIBLE:
                return f"mod({self.lhs}, {self.rhs}) == 0"
            case CheckKind.NON_NEGATIVE:
                return f"{self.lhs} >= 0"


class MatchError(ValueError):
    """No values match, or the symbols cannot be solved for; `source` is the index of the pattern at fault."""

    def __init__(self, message: str, source: int) -> None:
        super().__init__(message)
        self.source = source


@dataclass(frozen=True, slots=True)
class Solution:
    """The unknown symbols as expressions of the values, in the order in which they were bound, and the checks to do.

    A check uses only bindings whose own checks come before it. `sources` tells for each symbol the index of the pattern
    that bound it.
    """

    bindings: Mapping[str, Dim]
    checks: tuple[Check, ...]
    sources: Mapping[str, int]


def solve(
    patterns: Sequence[tuple[DimLike, DimLike]],
    unknowns: Collection[str],
    prover: Prover | None = None,
    bounds: Bounds | None = None,
) -> Solution:
    """Solves `pattern == value` for the unknown symbols of the patterns.

    Patterns that are an unknown symbol bind first, whatever their position; then those that are linear in one unknown
    that is left, again and again: `2 * n + m` binds `n` once `m` is known. Symbols of a pattern that are not unknown
    mean the same as in the values. An unknown may have the name of a symbol of the values: the two are different.

    `prover` knows the symbols of the values; what it shows needs no check. `bounds` are those of the unknowns
    (by default >= 0) and are checked.

    Raises MatchError when a check can never hold, or when an unknown is left over.
    """
    return _Solver(patterns, frozenset(unknowns), prover or Prover(), bounds or Bounds()).run()


def match(patterns: Sequence[DimLike], values: Sequence[int], known: Mapping[str, int] | None = None) -> dict[str, int]:
    """The values of all symbols such that every pattern has its value; MatchError where there are none."""
    known = known or {}
    dims = [to_dim(pattern).substitute(known) for pattern in patterns]
    unknowns = frozenset[str]().union(*(dim.symbols for dim in dims))
    solution = solve(list(zip(dims, values, strict=True)), unknowns)
    return {**known, **{name: value.constant_term for name, value in solution.bindings.items()}}


def determined(patterns: Sequence[Dim]) -> frozenset[str]:
    """The symbols for which `solve` finds a value, whatever the values of the patterns are."""
    return _determined(tuple(patterns))


@lru_cache(maxsize=1024)
def _determined(patterns: tuple[Dim, ...]) -> frozenset[str]:
    """Many calls are of one function."""
    names = frozenset[str]().union(*(pattern.symbols for pattern in patterns))
    if all(pattern.as_symbol is not None for pattern in patterns):
        return names
    values = [(pattern, intern_dim(((1, ((SymbolAtom.get(f"value.{i}"), 1),)),))) for i, pattern in enumerate(patterns)]
    return frozenset(_Unchecked(values, names, Prover(), Bounds()).bindings())


class _Solver:
    """The state of one call of `solve`; linear in the size of the patterns."""

    def __init__(
        self, patterns: Sequence[tuple[DimLike, DimLike]], unknowns: frozenset[str], prover: Prover, bounds: Bounds
    ) -> None:
        self._patterns = [(to_dim(pattern), to_dim(value)) for pattern, value in patterns]
        self._unknowns = unknowns
        self._prover = prover
        self._bounds = bounds
        self._bindings: dict[str, Dim] = {}
        self._scaled: dict[str, tuple[int, Dim]] = {}
        self._sources: dict[str, int] = {}
        self._unbounded: list[str] = []
        self._checks: list[Check] = []
        self._missing = [set(pattern.symbols & unknowns) for pattern, _ in self._patterns]
        self._users: dict[str, list[int]] = {}
        for source, missing in enumerate(self._missing):
            for name in missing:
                self._users.setdefault(name, []).append(source)
        self._ready: list[int] = []

    def run(self) -> Solution:
        self.bindings()
        missing = sorted(self._unknowns - self._bindings.keys())
        if missing:
            users = self._users.get(missing[0])
            if not users:
                raise MatchError(f"'{missing[0]}' occurs in no pattern", -1)
            pattern = self._patterns[users[0]][0]
            hint = f"expected '{missing[0]}' alone in some dimension, or one that is linear in it"
            raise MatchError(f"cannot solve {pattern} for '{missing[0]}': {hint}", users[0])
        for name in self._unbounded:
            self._check_bounds(name)
        return Solution(self._bindings, tuple(self._checks), self._sources)

    def bindings(self) -> Mapping[str, Dim]:
        """What can be solved for, with the checks that belong to it."""
        for source, (pattern, value) in enumerate(self._patterns):
            name = pattern.as_symbol
            if name is not None and name in self._unknowns and name not in self._bindings:
                self._bind(name, 1, value, source)
            elif len(self._missing[source]) <= 1:
                heappush(self._ready, source)
        done: set[int] = set(self._sources.values())
        while self._ready:
            source = heappop(self._ready)
            if source not in done and self._settle(source):
                done.add(source)
        return self._bindings

    def _settle(self, source: int) -> bool:
        """Checks a pattern without unknowns, or solves one that is linear in the only unknown it has."""
        pattern, value = self._patterns[source]
        if not self._missing[source]:
            self._check(CheckKind.EQUAL, pattern.substitute(self._bindings), value, source)
            return True
        (name,) = self._missing[source]
        split = _split_linear(pattern, name, self._bindings)
        if split is None:
            return False
        factor, rest = split
        numerator = value - rest if factor > 0 else rest - value
        self._check(CheckKind.DIVISIBLE, numerator, constant(abs(factor)), source)
        self._bind(name, abs(factor), numerator, source)
        return True

    def _bind(self, name: str, factor: int, value: Dim, source: int) -> None:
        """Binds a symbol of which `factor * name == value`."""
        self._scaled[name] = factor, value
        self._bindings[name] = floordiv(value, factor)
        self._sources[name] = source
        ends = [end for end in self._bounds[name] if isinstance(end, Dim)]
        if all(end.symbols <= self._bindings.keys() for end in ends):
            self._check_bounds(name)
        else:
            self._unbounded.append(name)
        for user in self._users.get(name, ()):
            self._missing[user].discard(name)
            if len(self._missing[user]) <= 1:
                heappush(self._ready, user)

    def _check_bounds(self, name: str) -> None:
        """The symbol has to lie within its bounds, which may refer to other unknowns."""
        factor, value = self._scaled[name]
        low, high = (as_dim(end).substitute(self._bindings) if end is not None else None for end in self._bounds[name])
        if low is not None:
            self._check(CheckKind.NON_NEGATIVE, value - factor * low, constant(0), self._sources[name])
        if high is not None:
            self._check(CheckKind.NON_NEGATIVE, factor * high - value, constant(0), self._sources[name])

    def _check(self, kind: CheckKind, lhs: Dim, rhs: Dim, source: int) -> None:
        holds = self._prove(kind, lhs, rhs)
        if holds is None:
            self._checks.append(Check(kind, lhs, rhs, source))
        elif not holds:
            pattern, value = self._patterns[source]
            raise MatchError(f"{value} does not match {pattern}{self._explain(pattern)}", source)

    def _prove(self, kind: CheckKind, lhs: Dim, rhs: Dim) -> bool | None:
        match kind:
            case CheckKind.EQUAL:
                return self._prover.equal(lhs, rhs)
            case CheckKind.DIVISIBLE:
                return self._prover.divisible(lhs, rhs)
            case CheckKind.NON_NEGATIVE:
                return self._prover.less_equal(0, lhs)

    def _explain(self, pattern: Dim) -> str:
        """The bindings that the pattern uses, for an error message."""
        facts = [f"{name} = {self._bindings[name]}" for name in sorted(pattern.symbols & self._bindings.keys())]
        return f" with {', '.join(facts)}" if facts else ""


class _Unchecked(_Solver):
    """Only says what can be solved for: values of which nothing is known may pass every check."""

    @override
    def _check(self, kind: CheckKind, lhs: Dim, rhs: Dim, source: int) -> None:
        pass


def _split_linear(pattern: Dim, name: str, bindings: Mapping[str, Dim]) -> tuple[int, Dim] | None:
    """`(k, rest)` when the pattern is `k * name + rest` with the bindings put in: `k` not 0, `rest` free of `name`."""
    factor: int | None = None
    rest: list[Term] = []
    for coefficient, monomial in pattern.terms:
        own = [(atom, power) for atom, power in monomial if name in atom.symbols]
        if not own:
            rest.append((coefficient, monomial))
            continue
        others = tuple(pair for pair in monomial if pair not in own)
        scaling = intern_dim(((coefficient, others),)).substitute(bindings).constant_value
        if factor is not None or own != [(SymbolAtom.get(name), 1)] or not scaling:
            return None
        factor = scaling
    return None if factor is None else (factor, intern_dim(tuple(rest)).substitute(bindings))

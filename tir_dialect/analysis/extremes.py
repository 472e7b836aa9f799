"""Minimum and maximum of an expression while variables run over ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tir_dialect.analysis.index_space import Variable
from tir_dialect.dims import (
    Atom,
    Dim,
    FloorDivAtom,
    MaxAtom,
    MinAtom,
    ModAtom,
    Prover,
    SymbolAtom,
    constant,
    floordiv,
    from_atom,
    maximum,
    minimum,
    total,
)
from tir_dialect.dims.expr import intern_dim


@dataclass(frozen=True)
class Extremes:
    """Bounds of a value, both inclusive; `exact` if both are attained whenever no range is empty."""

    low: Dim
    high: Dim
    exact: bool = True


def extremes(dim: Dim, variables: Sequence[Variable], prover: Prover) -> Extremes | None:
    """Bounds of `dim` while `variables`, outermost first, run over their ranges; the bounds are free of them.

    `None` if a range has an end that is no expression, or the sign of a factor is not known. Bounds are exact where
    every variable has a constant factor and occurs once, and its range does not depend on other variables.
    """
    result = Extremes(dim, dim)
    names = {name for variable in variables for name in variable.dim.symbols}
    for variable in reversed(variables):
        name = variable.dim.as_symbol or ""
        if name not in result.low.symbols | result.high.symbols:
            continue
        if variable.lower is None or variable.upper is None:
            return None
        ends = Extremes(variable.lower, variable.upper - 1)
        low, high = _eliminate(result.low, name, ends, prover), _eliminate(result.high, name, ends, prover)
        if low is None or high is None:
            return None
        independent = names.isdisjoint(ends.low.symbols | ends.high.symbols)
        result = Extremes(low.low, high.high, result.exact and low.exact and high.exact and independent)
    return result


def _eliminate(dim: Dim, name: str, ends: Extremes, prover: Prover) -> Extremes | None:
    """Bounds of `dim` while one symbol lies between `ends`."""
    if name not in dim.symbols:
        return Extremes(dim, dim)
    lows: list[Dim] = []
    highs: list[Dim] = []
    factors: dict[Atom, Dim] = {}
    for coefficient, monomial in dim.terms:
        dependent = [(atom, power) for atom, power in monomial if name in atom.symbols]
        factor = intern_dim(((coefficient, tuple(part for part in monomial if part not in dependent)),))
        if not dependent:
            lows.append(factor)
            highs.append(factor)
            continue
        (atom, power), *others = dependent
        if others or power != 1:
            return None
        factors[atom] = factors[atom] + factor if atom in factors else factor
    exact = len(factors) == 1
    for atom, factor in factors.items():
        bounds, sign = _of_atom(atom, name, ends, prover), _sign(factor, prover)
        if bounds is None or sign is None:
            return None
        exact = exact and bounds.exact
        lows.append(factor * (bounds.low if sign > 0 else bounds.high))
        highs.append(factor * (bounds.high if sign > 0 else bounds.low))
    return Extremes(total(lows), total(highs), exact)


def _sign(factor: Dim, prover: Prover) -> int | None:
    if prover.less_equal(0, factor):
        return 1
    return -1 if prover.less_equal(factor, 0) else None


def _of_atom(atom: Atom, name: str, ends: Extremes, prover: Prover) -> Extremes | None:
    if isinstance(atom, SymbolAtom):
        return ends
    parts = [_eliminate(operand, name, ends, prover) for operand in atom.operands]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    match atom:
        case FloorDivAtom():
            return _of_quotient(known[0], known[1], prover)
        case ModAtom():
            return _of_remainder(atom, known[0], known[1], prover)
        case MinAtom():
            return Extremes(minimum(*(part.low for part in known)), minimum(*(part.high for part in known)), False)
        case MaxAtom():
            return Extremes(maximum(*(part.low for part in known)), maximum(*(part.high for part in known)), False)
        case _:
            return None


def _of_quotient(numerator: Extremes, denominator: Extremes, prover: Prover) -> Extremes | None:
    divisor = denominator.low
    if divisor is not denominator.high or not prover.less_equal(1, divisor):
        return None
    return Extremes(floordiv(numerator.low, divisor), floordiv(numerator.high, divisor), numerator.exact)


def _of_remainder(atom: Atom, numerator: Extremes, denominator: Extremes, prover: Prover) -> Extremes | None:
    divisor = denominator.low
    if divisor is not denominator.high or not prover.less_equal(1, divisor):
        return None
    quotient = floordiv(numerator.low, divisor)
    if prover.equal(quotient, floordiv(numerator.high, divisor)):  # no wrap-around
        return Extremes(numerator.low - quotient * divisor, numerator.high - quotient * divisor, numerator.exact)
    if numerator.low is numerator.high:
        return Extremes(from_atom(atom), from_atom(atom), False)
    return Extremes(constant(0), divisor - 1, False)

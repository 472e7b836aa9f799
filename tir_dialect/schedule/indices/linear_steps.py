"""Steps between two vectors of integers that linear equations allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import gcd


@dataclass(frozen=True)
class Equation:
    """The sum of `factors[number] * step(number)` is `gap`; no factor is 0."""

    factors: Mapping[int, int]
    gap: int


def solution(equations: Iterable[Equation]) -> Mapping[int, int] | None:
    """Steps that solve the equations, not all of them 0 if such are found; `None` where none are found."""
    known: dict[int, int] = {}
    pending = list(equations)
    while pending:
        rest = [_without(equation, known) for equation in pending]
        chosen = min(rest, key=lambda equation: len(equation.factors))
        pending = [equation for equation in rest if equation is not chosen]
        steps = _steps(chosen, nearest=any(known.values()))
        if steps is None:
            return None
        known |= steps
    return known


def _without(equation: Equation, known: Mapping[int, int]) -> Equation:
    gap = equation.gap - sum(factor * known.get(number, 0) for number, factor in equation.factors.items())
    return Equation({number: factor for number, factor in equation.factors.items() if number not in known}, gap)


def _steps(equation: Equation, nearest: bool) -> Mapping[int, int] | None:
    """Steps that solve one equation: the nearest, or some that are not all 0."""
    match list(equation.factors.items()):
        case []:
            return None if equation.gap else {}
        case [(number, factor)]:
            return None if equation.gap % factor else {number: equation.gap // factor}
        case [(one, a), (other, b), *rest] if not equation.gap:
            zeros = {number: 0 for number, _ in rest}
            return zeros | ({one: 0, other: 0} if nearest else {one: b // gcd(a, b), other: -a // gcd(a, b)})
        case _:
            return None

"""Interval arithmetic over the integers, unbounded on either side.

End points are integers or the floats `INF` and `-INF`; floats never mix into integer arithmetic, so it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

INF = float("inf")

End: TypeAlias = int | float
Interval: TypeAlias = tuple[End, End]

EVERYTHING: Interval = (-INF, INF)


def plus(lhs: End, rhs: End) -> End:
    """The sum of two lower ends, or of two upper ends."""
    if isinstance(lhs, float):
        return lhs
    return rhs if isinstance(rhs, float) else lhs + rhs


def times(lhs: End, rhs: End) -> End:
    """The product of two ends; zero times infinity is zero, because infinity is not attained."""
    if lhs == 0 or rhs == 0:
        return 0
    if isinstance(lhs, float) or isinstance(rhs, float):
        return INF if (lhs > 0) == (rhs > 0) else -INF
    return lhs * rhs


def add(lhs: Interval, rhs: Interval) -> Interval:
    """All sums."""
    return plus(lhs[0], rhs[0]), plus(lhs[1], rhs[1])


def scale(interval: Interval, factor: int) -> Interval:
    """All products with an integer."""
    low, high = times(interval[0], factor), times(interval[1], factor)
    return (low, high) if factor >= 0 else (high, low)


def multiply(lhs: Interval, rhs: Interval) -> Interval:
    """All products."""
    corners = [times(left, right) for left in lhs for right in rhs]
    return min(corners), max(corners)


def power(interval: Interval, exponent: int) -> Interval:
    """All values of `x ** exponent`, exponent at least 1."""
    result = interval
    for _ in range(exponent - 1):
        result = multiply(result, interval)
    return (max(result[0], 0), result[1]) if exponent % 2 == 0 else result


def _quotient(numerator: End, denominator: End) -> End:
    """The floor of the quotient of ends, denominator > 0."""
    if isinstance(numerator, float):
        return numerator
    if isinstance(denominator, float):
        return 0 if numerator >= 0 else -1
    return numerator // denominator


def _floordiv_positive(numerator: Interval, denominator: Interval) -> Interval:
    low, high = numerator
    small, great = denominator
    return _quotient(low, great if low >= 0 else small), _quotient(high, small if high >= 0 else great)


def _mod_positive(numerator: Interval, denominator: Interval) -> Interval:
    low, high = numerator
    small, great = denominator
    if low >= 0 and high < small:
        return numerator
    limit = plus(great, -1)
    return 0, min(high, limit) if low >= 0 else limit


def floordiv(numerator: Interval, denominator: Interval) -> Interval:
    """All floor quotients by the denominators that are not 0."""
    positive, negative = _split_at_zero(denominator)
    parts = [_floordiv_positive(numerator, part) for part in positive]
    parts += [_floordiv_positive(scale(numerator, -1), scale(part, -1)) for part in negative]
    return hull(parts)


def mod(numerator: Interval, denominator: Interval) -> Interval:
    """All floor moduli by the denominators that are not 0."""
    positive, negative = _split_at_zero(denominator)
    parts = [_mod_positive(numerator, part) for part in positive]
    parts += [scale(_mod_positive(scale(numerator, -1), scale(part, -1)), -1) for part in negative]
    return hull(parts)


def _split_at_zero(interval: Interval) -> tuple[list[Interval], list[Interval]]:
    low, high = interval
    positive: list[Interval] = [(max(low, 1), high)] if high >= 1 else []
    negative: list[Interval] = [(low, min(high, -1))] if low <= -1 else []
    return positive, negative


def hull(intervals: Sequence[Interval]) -> Interval:
    """The least interval that contains all; everything for none, as an expression without a value may be anything."""
    if not intervals:
        return EVERYTHING
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def minimum(intervals: Sequence[Interval]) -> Interval:
    """All minima."""
    return min(low for low, _ in intervals), min(high for _, high in intervals)


def maximum(intervals: Sequence[Interval]) -> Interval:
    """All maxima."""
    return max(low for low, _ in intervals), max(high for _, high in intervals)


def broadcast(intervals: Sequence[Interval]) -> Interval:
    """All extents that operands broadcast to: one that cannot be 1 is the result."""
    low, high = hull(intervals)
    for own_low, own_high in intervals:
        if own_low > 1 or own_high < 1:
            low, high = max(low, own_low), min(high, own_high)
    return (low, high) if low <= high else EVERYTHING

"""What is known of an atom: expressions that it is never below, and never above."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from tir_dialect.dims.atoms import Atom, BroadcastAtom, FloorDivAtom, MaxAtom, MinAtom, ModAtom, SymbolAtom
from tir_dialect.dims.bounds import Bounds
from tir_dialect.dims.expr import Dim, as_dim, constant
from tir_dialect.dims.intervals import End, Interval


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
            return _floordiv(atom, interval, at_least)
        case ModAtom():
            return _mod(atom, interval, at_least)
        case MinAtom():
            each = [(_exact(operand),) for operand in atom.operands]
            return Estimates([_all(atom)], each, _all(atom))
        case MaxAtom():
            each = [(_exact(operand),) for operand in atom.operands]
            return Estimates(each, [_all(atom)], _all(atom))
        case BroadcastAtom():
            return _broadcast(atom, at_least)
        case _:
            raise TypeError(f"unknown atom class {type(atom).__name__}")


def _exact(value: Dim) -> Estimate:
    return Estimate(1, value)


def _only(end: End | Dim | None) -> list[Cases]:
    return [] if end is None or isinstance(end, float) else [(_exact(as_dim(end)),)]


def _all(atom: Atom) -> Cases:
    return tuple(map(_exact, atom.operands))


# Where a function has a value, its denominator is not 0; so one that is never negative counts as positive.


def _floordiv(atom: FloorDivAtom, interval: Interval, at_least: AtLeast) -> Estimates:
    low, high = _only(interval[0]), _only(interval[1])
    divisor = atom.denominator.constant_value
    if divisor is not None:
        low.insert(0, (Estimate(divisor, atom.numerator - (divisor - 1)),))
        high.insert(0, (Estimate(divisor, atom.numerator),))
    elif at_least(atom.denominator, 0) and at_least(atom.numerator, 0):
        high.append((_exact(atom.numerator),))
    return Estimates(low, high)


def _mod(atom: ModAtom, interval: Interval, at_least: AtLeast) -> Estimates:
    low, high = _only(interval[0]), _only(interval[1])
    if at_least(atom.denominator, 0):
        low.append((_exact(constant(0)),))
        high.append((_exact(atom.denominator - 1),))
        if at_least(atom.numerator, 0):
            high.append((_exact(atom.numerator),))
            if at_least(atom.denominator - atom.numerator, 1):
                low.append((_exact(atom.numerator),))
    return Estimates(low, high)


def _broadcast(atom: BroadcastAtom, at_least: AtLeast) -> Estimates:
    low = [_all(atom)]
    if all(at_least(operand, 1) for operand in atom.operands):
        low = [(case,) for case in _all(atom)]
    return Estimates(low, [_all(atom)], _all(atom))

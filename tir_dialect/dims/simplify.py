"""Simplification under bounds: what the canonical form leaves because it does not hold for all integers.

* a symbol with one value is that value
* `floordiv(a, b) = 0` and `mod(a, b) = a` where `0 <= a < b`; for a constant `b` also of parts:
  `floordiv(8 * i + j, 8) = i` for `0 <= j < 8`
* operands of `min` and `max` that never decide go; `broadcast(a, b) = b` where `a` is always 1, or `b` never
* `b * floordiv(a, b) + mod(a, b) = a`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tir_dialect.dims.atoms import Atom, BroadcastAtom, DivisionAtom, FloorDivAtom, MaxAtom, MinAtom, SymbolAtom
from tir_dialect.dims.bounds import Bounds
from tir_dialect.dims.division import floordiv_by_constant, mod_by_constant
from tir_dialect.dims.expr import Dim, as_dim, from_atom
from tir_dialect.dims.inequalities import open_moduli
from tir_dialect.dims.lattice import broadcast, maximum, minimum
from tir_dialect.dims.polynomial import divide
from tir_dialect.dims.traverse import BUILDERS, rewrite


class Oracle(Protocol):
    """What simplification asks for: a `Prover`."""

    bounds: Bounds

    def range(self, dim: Dim) -> tuple[int | None, int | None]:
        """Least and greatest value."""
        ...

    def less_equal(self, lhs: Dim, rhs: Dim) -> bool | None:
        """Whether `lhs <= rhs`."""
        ...

    def equal(self, lhs: Dim, rhs: Dim | int) -> bool | None:
        """Whether `lhs == rhs`."""
        ...


def simplify(dim: Dim, oracle: Oracle) -> Dim:
    """A dimension that is equal within the bounds, and simpler where a rule applies."""
    return _join_moduli(rewrite(dim, lambda atom, operands: _simplify_atom(atom, operands, oracle)))


def _join_moduli(dim: Dim) -> Dim:
    """`dim` with quotients and moduli joined where that makes it shorter."""
    opened = open_moduli(dim)
    return opened if len(opened.terms) < len(dim.terms) else dim


def _simplify_atom(atom: Atom, operands: Sequence[Dim], oracle: Oracle) -> Dim:
    operands = [_join_moduli(operand) for operand in operands]
    match atom:
        case SymbolAtom():
            low, high = oracle.bounds[atom.name]
            return as_dim(low) if low is not None and low == high else from_atom(atom)
        case DivisionAtom():
            return _simplify_division(atom, operands[0], operands[1], oracle)
        case MinAtom():
            return minimum(*_without_dominated(operands, oracle.less_equal))
        case MaxAtom():
            return maximum(*_without_dominated(operands, lambda lhs, rhs: oracle.less_equal(rhs, lhs)))
        case BroadcastAtom():
            return _simplify_broadcast(operands, oracle)
        case _:
            raise TypeError(f"unknown atom class {type(atom).__name__}")


def _simplify_division(atom: DivisionAtom, numerator: Dim, denominator: Dim, oracle: Oracle) -> Dim:
    is_quotient = isinstance(atom, FloorDivAtom)
    divisor = denominator.constant_value
    if divisor is not None:
        by_constant = floordiv_by_constant if is_quotient else mod_by_constant
        return by_constant(numerator, divisor, oracle.range)
    quotient, rest = divide(numerator, denominator)
    if oracle.less_equal(as_dim(0), rest) and oracle.less_equal(rest, denominator - 1):
        return quotient if is_quotient else rest
    return BUILDERS[type(atom)](numerator, denominator)


def _without_dominated(operands: Sequence[Dim], decides: Callable[[Dim, Dim], bool | None]) -> list[Dim]:
    """The operands without those for which another one always decides."""
    kept: list[Dim] = []
    for operand in operands:
        if any(decides(other, operand) for other in kept):
            continue
        kept = [other for other in kept if not decides(operand, other)]
        kept.append(operand)
    return kept


def _simplify_broadcast(operands: Sequence[Dim], oracle: Oracle) -> Dim:
    relevant = [operand for operand in operands if oracle.equal(operand, 1) is not True]
    fixed = [operand for operand in relevant if oracle.equal(operand, 1) is False]
    return min(fixed, key=lambda dim: dim.sort_key) if fixed else broadcast(*relevant)

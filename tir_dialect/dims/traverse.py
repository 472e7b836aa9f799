"""Substitution and evaluation: one visit to every distinct atom."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from tir_dialect.dims.atoms import Atom, BroadcastAtom, FloorDivAtom, MaxAtom, MinAtom, ModAtom, SymbolAtom
from tir_dialect.dims.division import floordiv, mod
from tir_dialect.dims.expr import Dim, constant, from_atom, multiply, total
from tir_dialect.dims.lattice import broadcast, maximum, minimum

if TYPE_CHECKING:
    from tir_dialect.dims.text import DimLike

BUILDERS: Mapping[type[Atom], Callable[..., Dim]] = {
    FloorDivAtom: floordiv,
    ModAtom: mod,
    MinAtom: minimum,
    MaxAtom: maximum,
    BroadcastAtom: broadcast,
}
"""The function that makes an atom of each class from its operands."""


def broadcast_extents(extents: Sequence[int]) -> int:
    """The extent that integers broadcast to; ValueError where they do not."""
    result = 1
    for extent in extents:
        if result not in (1, extent) and extent != 1:
            raise ValueError(f"extents {result} and {extent} do not broadcast")
        result = extent if result == 1 else result
    return result


EVALUATORS: Mapping[type[Atom], Callable[[Sequence[int]], int]] = {
    FloorDivAtom: lambda operands: operands[0] // operands[1],
    ModAtom: lambda operands: operands[0] % operands[1],
    MinAtom: min,
    MaxAtom: max,
    BroadcastAtom: broadcast_extents,
}
"""The value of an atom of each class from those of its operands."""


def evaluate(dim: Dim, values: Mapping[str, int]) -> int:
    """See `Dim.evaluate`."""
    if (name := dim.as_symbol) is not None:
        return values[name]
    if (number := dim.constant_value) is not None:
        return number
    known: dict[Atom, int] = {}

    def of_atom(atom: Atom) -> int:
        if isinstance(atom, SymbolAtom):
            return values[atom.name]
        found = known.get(atom)
        if found is None:
            found = known[atom] = EVALUATORS[type(atom)]([of_dim(operand) for operand in atom.operands])
        return found

    def of_dim(part: Dim) -> int:
        return sum(c * prod(of_atom(atom) ** power for atom, power in monomial) for c, monomial in part.terms)

    return of_dim(dim)


def substitute(dim: Dim, values: Mapping[str, DimLike]) -> Dim:
    """See `Dim.substitute`."""
    from tir_dialect.dims.text import to_dim

    def of_atom(atom: Atom, operands: Sequence[Dim]) -> Dim:
        if isinstance(atom, SymbolAtom):
            return to_dim(values[atom.name]) if atom.name in values else from_atom(atom)
        return BUILDERS[type(atom)](*operands)

    return dim if dim.symbols.isdisjoint(values) else rewrite(dim, of_atom)


def rewrite(dim: Dim, of_atom: Callable[[Atom, Sequence[Dim]], Dim]) -> Dim:
    """The expression built anew, bottom up: `of_atom` gets every distinct atom and its new operands."""
    known: dict[Atom, Dim] = {}

    def visit(part: Dim) -> Dim:
        results: list[Dim] = []
        for coefficient, monomial in part.terms:
            result = constant(coefficient)
            for atom, power in monomial:
                if atom not in known:
                    known[atom] = of_atom(atom, [visit(operand) for operand in atom.operands])
                for _ in range(power):
                    result = multiply(result, known[atom])
            results.append(result)
        return results[0] if len(results) == 1 else total(results)

    return visit(dim)

"""Dimensions as Python expressions."""

from __future__ import annotations

from collections.abc import Mapping

from tir_dialect.dims import Atom, BroadcastAtom, Dim, FloorDivAtom, MaxAtom, MinAtom, ModAtom, SymbolAtom


def dim_text(dim: Dim, names: Mapping[str, str]) -> str:
    """`dim` as a Python expression in parentheses if it is not one word; `names` are those of the symbols."""
    if not dim.terms:
        return "0"
    parts: list[str] = []
    for coefficient, monomial in dim.terms:
        factors = [_atom_text(atom, names) for atom, power in monomial for _ in range(power)]
        if coefficient != 1 or not factors:
            factors.insert(0, str(coefficient))
        parts.append(" * ".join(factors))
    text = " + ".join(parts)
    return text if text.isalnum() else f"({text})"


def _atom_text(atom: Atom, names: Mapping[str, str]) -> str:
    if isinstance(atom, SymbolAtom):
        return names[atom.name]
    operands = [dim_text(operand, names) for operand in atom.operands]
    match atom:
        case FloorDivAtom():
            return f"({operands[0]} // {operands[1]})"
        case ModAtom():
            return f"({operands[0]} % {operands[1]})"
        case MinAtom():
            return f"min({', '.join(operands)})"
        case MaxAtom():
            return f"max({', '.join(operands)})"
        case BroadcastAtom():
            return f"broadcast_extents([{', '.join(operands)}])"
        case _:
            raise TypeError(f"unknown atom class {type(atom).__name__}")

"""Symbolic dimensions: canonical integer expressions, their bounds, a prover and a solver. Plain values, no IR."""

from tir_dialect.dims.atoms import (
    Atom,
    BroadcastAtom,
    FloorDivAtom,
    MaxAtom,
    MinAtom,
    ModAtom,
    SymbolAtom,
    is_symbol_name,
)
from tir_dialect.dims.bounds import Bounds
from tir_dialect.dims.division import ceildiv, floordiv, mod
from tir_dialect.dims.expr import Dim, constant, product, symbol, total
from tir_dialect.dims.lattice import broadcast, maximum, minimum
from tir_dialect.dims.prover import Prover
from tir_dialect.dims.solver import Check, CheckKind, MatchError, Solution, match, solve
from tir_dialect.dims.text import DimLike, DimSyntaxError, parse_dim, to_dim

__all__ = [
    "Atom",
    "Bounds",
    "BroadcastAtom",
    "Check",
    "CheckKind",
    "Dim",
    "DimLike",
    "DimSyntaxError",
    "FloorDivAtom",
    "MatchError",
    "MaxAtom",
    "MinAtom",
    "ModAtom",
    "Prover",
    "Solution",
    "SymbolAtom",
    "broadcast",
    "ceildiv",
    "constant",
    "floordiv",
    "is_symbol_name",
    "match",
    "maximum",
    "minimum",
    "mod",
    "parse_dim",
    "product",
    "solve",
    "symbol",
    "to_dim",
    "total",
]

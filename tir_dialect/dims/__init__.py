"""Symbolic dimensions: canonical integer expressions, their bounds, a prover and a solver. Plain values, no IR."""

from tir_dialect.dims.bounds import Bounds, Ends
from tir_dialect.dims.division import FloorDivAtom, ModAtom, ceildiv, floordiv, mod
from tir_dialect.dims.expr import (
    Atom,
    Dim,
    DimLike,
    DimSizeError,
    FunctionAtom,
    Monomial,
    SymbolAtom,
    Term,
    constant,
    from_atom,
    from_term,
    parse_dim,
    product,
    symbol,
    to_dim,
    total,
)
from tir_dialect.dims.lattice import BroadcastAtom, MaxAtom, MinAtom, broadcast, maximum, minimum
from tir_dialect.dims.prover import Prover
from tir_dialect.dims.solver import Check, CheckKind, MatchError, Solution, determined, match, solve
from tir_dialect.dims.text import DimSyntaxError, is_symbol_name

__all__ = [
    "Atom",
    "Bounds",
    "BroadcastAtom",
    "Check",
    "CheckKind",
    "Dim",
    "DimLike",
    "DimSizeError",
    "DimSyntaxError",
    "Ends",
    "FloorDivAtom",
    "FunctionAtom",
    "MatchError",
    "MaxAtom",
    "MinAtom",
    "ModAtom",
    "Monomial",
    "Prover",
    "Solution",
    "SymbolAtom",
    "Term",
    "broadcast",
    "ceildiv",
    "constant",
    "determined",
    "floordiv",
    "from_atom",
    "from_term",
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

"""Dimensions as i64 values: sums of products, and the functions that dimensions know.

Division by an expression that is 0 does not trap; the number it gives is unspecified, as the dimension has no value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from lowering.to_llvm.arith_ops import floordiv, mod
from lowering.to_llvm.builder import LLVMBuilder
from tir_dialect.dims import (
    Atom,
    BroadcastAtom,
    Dim,
    FloorDivAtom,
    MaxAtom,
    MinAtom,
    ModAtom,
    SymbolAtom,
)

Combine = Callable[[SSAValue, SSAValue], SSAValue]


class DimValues:
    """Computes dimensions over given symbols, each once.

    The values are computed where the builder stands when they are first asked for, so that place has to dominate
    all uses.
    """

    def __init__(self, b: LLVMBuilder, symbols: Mapping[str, SSAValue]) -> None:
        self._b = b
        self._symbols = symbols
        self._dims: dict[Dim, SSAValue] = {}
        self._atoms: dict[Atom, SSAValue] = {}

    def __call__(self, dim: Dim) -> SSAValue:
        """The value of a dimension; `KeyError` for a symbol that is not given."""
        found = self._dims.get(dim)
        if found is None:
            found = self._dims[dim] = self._sum(dim)
        return found

    def _sum(self, dim: Dim) -> SSAValue:
        b = self._b
        result = b.integer(0)
        for coefficient, monomial in dim.terms:
            factors = [self._atom(atom) for atom, power in monomial for _ in range(power)]
            product = reduce(b.mul, factors) if factors else b.integer(1)
            if coefficient == -1 and b.known_integer(result) != 0:
                result = b.sub(result, product)
            else:
                result = b.add(result, b.mul(product, b.integer(coefficient)))
        return result

    def _atom(self, atom: Atom) -> SSAValue:
        found = self._atoms.get(atom)
        if found is None:
            found = self._atoms[atom] = self._compute(atom)
        return found

    def _compute(self, atom: Atom) -> SSAValue:
        b = self._b
        if isinstance(atom, SymbolAtom):
            return self._symbols[atom.name]
        operands = [self(operand) for operand in atom.operands]
        match atom:
            case FloorDivAtom():
                return floordiv(b, *operands)
            case ModAtom():
                return mod(b, *operands)
            case MinAtom():
                return reduce(lambda lhs, rhs: b.overloaded("llvm.smin", (lhs, rhs), i64), operands)
            case MaxAtom():
                return reduce(lambda lhs, rhs: b.overloaded("llvm.smax", (lhs, rhs), i64), operands)
            case BroadcastAtom():
                return reduce(self._broadcast, operands)
            case _:
                raise ValueError(f"dimension {atom} has no lowering")

    def _broadcast(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._b.select(self._b.compare("eq", lhs, self._b.integer(1)), rhs, lhs)

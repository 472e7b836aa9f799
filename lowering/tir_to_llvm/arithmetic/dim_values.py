"""Dimensions as i64 values: sums of products, and the functions that dimensions know.

Division by an expression that is 0 does not trap; the number it gives is unspecified, as the dimension has no value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import prod

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, i1, i64
from xdsl.ir import SSAValue

from lowering.llvm.llvm_builder import LLVMBuilder
from lowering.tir_to_llvm.arithmetic.division import floordiv, mod
from tir_dialect.dims import (
    Atom,
    Bounds,
    BroadcastAtom,
    Dim,
    FloorDivAtom,
    MaxAtom,
    MinAtom,
    ModAtom,
    SymbolAtom,
)
from tir_dialect.dims.bounds import Ranges, UnboundedRanges

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
        self._atoms: dict[Atom, tuple[SSAValue, int]] = {}
        """Each with a sign: a quotient that is rounded up is computed as it is, and not as the opposite of one that is
        rounded down."""
        self._ranges = Ranges(Bounds())
        self._safe_ranges = UnboundedRanges()
        """What holds of any symbols: whatever is passed to a kernel, it does not divide by 0."""

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
            product = reduce(self._multiply, (factor for factor, _ in factors)) if factors else b.integer(1)
            coefficient *= prod(sign for _, sign in factors)
            if coefficient == -1 and b.known_integer(result) != 0:
                result = self._subtract(result, product)
            else:
                result = self._add(result, self._multiply(product, b.integer(coefficient)))
        return result

    def _add(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._b.add(lhs, rhs)

    def _subtract(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._b.sub(lhs, rhs)

    def _multiply(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._b.mul(lhs, rhs)

    def _atom(self, atom: Atom) -> tuple[SSAValue, int]:
        found = self._atoms.get(atom)
        if found is None:
            found = self._floordiv(*atom.operands) if isinstance(atom, FloorDivAtom) else (self._compute(atom), 1)
            self._atoms[atom] = found
        return found

    def _compute(self, atom: Atom) -> SSAValue:
        b = self._b
        if isinstance(atom, SymbolAtom):
            return self._symbols[atom.name]
        match atom:
            case ModAtom(operands=(lhs, rhs)):
                natural = self._are_natural(lhs, rhs)
                return b.once(llvm.URemOp, (self(lhs), self(rhs)), i64) if natural else mod(b, self(lhs), self(rhs))
            case _:
                operands = [self(operand) for operand in atom.operands]
                b = self._b
                match atom:
                    case MinAtom():
                        return reduce(lambda lhs, rhs: b.overloaded("llvm.smin", (lhs, rhs), i64), operands)
                    case MaxAtom():
                        return reduce(lambda lhs, rhs: b.overloaded("llvm.smax", (lhs, rhs), i64), operands)
                    case BroadcastAtom():
                        return reduce(self._broadcast, operands)
                    case _:
                        raise ValueError(f"dimension {atom} has no lowering")

    def _floordiv(self, lhs: Dim, rhs: Dim) -> tuple[SSAValue, int]:
        """With what is known about the signs: for any signs it takes fourteen instructions."""
        b = self._b
        if self._safe_ranges.of(-rhs)[0] > 0:
            lhs, rhs = -lhs, -rhs
        if self._are_natural(lhs, rhs):
            return b.quotient(llvm.UDivOp, self(lhs), self(rhs)), 1
        if self._are_natural(-lhs, rhs):
            rounded = b.add(self(-lhs), b.sub(self(rhs), b.integer(1)))
            return b.quotient(llvm.UDivOp, rounded, self(rhs)), -1
        return floordiv(b, self(lhs), self(rhs)), 1

    def _are_natural(self, lhs: Dim, rhs: Dim) -> bool:
        """Whether a number that is not negative is divided by a positive one."""
        return self._safe_ranges.of(rhs)[0] > 0 and self._ranges.of(lhs)[0] >= 0

    def _broadcast(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._b.select(self._b.compare("eq", lhs, self._b.integer(1)), rhs, lhs)


class CheckedDimValues(DimValues):
    """As `DimValues`, for symbols that nobody has checked: `overflows` tells whether some result is wrong."""

    def __init__(self, b: LLVMBuilder, symbols: Mapping[str, SSAValue]) -> None:
        super().__init__(b, symbols)
        self._ranges = self._safe_ranges
        self.overflows = b.integer(0, i1)

    def _add(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._checked("llvm.sadd.with.overflow.i64", lhs, rhs)

    def _subtract(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._checked("llvm.ssub.with.overflow.i64", lhs, rhs)

    def _multiply(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._checked("llvm.smul.with.overflow.i64", lhs, rhs)

    def _checked(self, intrinsic: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        result, overflow = _with_overflow(self._b, intrinsic, lhs, rhs)
        self.overflows = self._b.make(llvm.OrOp, (self.overflows, overflow), i1)
        return result


def multiply_checked(b: LLVMBuilder, lhs: SSAValue, rhs: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The product, and whether it does not fit into 64 bits."""
    return _with_overflow(b, "llvm.smul.with.overflow.i64", lhs, rhs)


def _with_overflow(b: LLVMBuilder, intrinsic: str, lhs: SSAValue, rhs: SSAValue) -> tuple[SSAValue, SSAValue]:
    pair = b.intrinsic(intrinsic, (lhs, rhs), _RESULT_AND_OVERFLOW)
    result, overflow = (
        b.make(llvm.ExtractValueOp, (pair,), type_, {"position": DenseArrayBase.from_list(i64, [index])})
        for index, type_ in enumerate((i64, i1))
    )
    return result, overflow


_RESULT_AND_OVERFLOW = llvm.LLVMStructType.from_type_list([i64, i1])

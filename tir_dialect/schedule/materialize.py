"""Materialisation of dimensions as index values."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import (
    Atom,
    Dim,
    FloorDivAtom,
    MaxAtom,
    MinAtom,
    ModAtom,
    SymbolAtom,
    constant,
    from_atom,
    product,
)
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.ops.scalars import DimOp


def header_value(func: PrimFuncOp, dim: Dim) -> SSAValue:
    """A dimension over the symbols of the function as a value that the whole function may use."""
    if (name := dim.as_symbol) is not None and (argument := func.symbol_arg(name)) is not None:
        return argument
    last: Operation | None = None
    for op in _header(func):
        if _defines(op, dim):
            return op.results[0]
        last = op
    value = dim.constant_value
    op = DimOp(dim) if value is None else arith.ConstantOp.from_int_and_width(value, IndexType())
    if value is not None and value >= 0:
        op.result.name_hint = f"c{value}"
    block = func.body.block
    Rewriter.insert_op(op, InsertPoint.at_start(block) if last is None else InsertPoint.after(last))
    return op.result


def hoist_sizes(func: PrimFuncOp) -> None:
    """Computes bounds of loops and extents of blocks that are sizes where all of the function may use them."""
    sizes = set(func.symbol_names)
    for op in list(func.body.walk()):
        first = len(op.bindings) if isinstance(op, BlockOp) else 0
        count = len(op.operands) if isinstance(op, ForOp) else len(op.extents) if isinstance(op, BlockOp) else 0
        for number in range(first, first + count):
            dim = dim_of(op.operands[number])
            if dim is not None and dim.symbols <= sizes:
                op.operands[number] = header_value(func, dim)


def _header(func: PrimFuncOp) -> Iterable[Operation]:
    for op in func.body.block.ops:
        if not isinstance(op, AllocBufferOp | DimOp | arith.ConstantOp):
            return
        yield op


def _defines(op: Operation, dim: Dim) -> bool:
    if isinstance(op, DimOp):
        return op.dim is dim
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, IntegerAttr):
        return False
    return isinstance(op.result.type, IndexType) and op.value.value.data == dim.constant_value


class Materializer:
    """Puts the ops that compute dimensions before an op; each dimension and atom is computed once."""

    def __init__(self, func: PrimFuncOp, space: IndexSpace, point: InsertPoint):
        self._func = func
        self._symbols = frozenset(func.symbol_names)
        self._space = space
        self._point = point
        self._atoms: dict[Atom, SSAValue] = {}
        self._known: dict[Dim, SSAValue] = {}

    def remember(self, dim: Dim, value: SSAValue) -> None:
        """Says that a value that dominates the position is the value of `dim`."""
        self._known.setdefault(dim, value)

    def emit(self, dim: Dim) -> SSAValue:
        """The value of a dimension whose symbols all have values that dominate the position."""
        if dim.symbols <= self._symbols:
            return header_value(self._func, dim)
        if dim not in self._known:
            self._known[dim] = self._sum(dim)
        return self._known[dim]

    def _sum(self, dim: Dim) -> SSAValue:
        fixed, total = constant(0), None
        for coefficient, monomial in dim.terms:
            moving = [atom for atom, power in monomial for _ in range(power) if not atom.symbols <= self._symbols]
            sizes = [from_atom(atom) for atom, power in monomial for _ in range(power) if atom.symbols <= self._symbols]
            if not moving:
                fixed = fixed + product(sizes) * coefficient
                continue
            term = self._atom(moving[0])
            for atom in moving[1:]:
                term = self.insert(arith.MuliOp(term, self._atom(atom)))
            factor = product(sizes) * abs(coefficient)
            if factor.constant_value != 1:
                term = self.insert(arith.MuliOp(term, header_value(self._func, factor)))
            total = self._accumulate(total, term, coefficient < 0)
        if total is None or fixed.terms:
            value = fixed.constant_value
            if total is None:
                return header_value(self._func, fixed)
            if value is not None and value < 0:
                return self.insert(arith.SubiOp(total, header_value(self._func, constant(-value))))
            return self.insert(arith.AddiOp(total, header_value(self._func, fixed)))
        return total

    def _accumulate(self, total: SSAValue | None, term: SSAValue, negative: bool) -> SSAValue:
        if not negative:
            return term if total is None else self.insert(arith.AddiOp(total, term))
        start = header_value(self._func, constant(0)) if total is None else total
        return self.insert(arith.SubiOp(start, term))

    def insert(self, op: Operation) -> SSAValue:
        """Puts an op with one result there."""
        Rewriter.insert_op(op, self._point)
        return op.results[0]

    def _atom(self, atom: Atom) -> SSAValue:
        if atom not in self._atoms:
            self._atoms[atom] = self._compute(atom)
        return self._atoms[atom]

    def _compute(self, atom: Atom) -> SSAValue:
        if atom.symbols <= self._symbols:
            return header_value(self._func, from_atom(atom))
        if isinstance(atom, SymbolAtom):
            return self._space.variables[atom.name].value
        operands = [self.emit(operand) for operand in atom.operands]
        match atom:
            case FloorDivAtom():
                if self._is_unsigned(atom.operands):
                    return self.insert(arith.DivUIOp(operands[0], operands[1]))
                return self.insert(arith.FloorDivSIOp(operands[0], operands[1]))
            case ModAtom():
                lhs, rhs = operands
                if self._is_unsigned(atom.operands):
                    return self.insert(arith.RemUIOp(lhs, rhs))
                quotient = self.insert(arith.FloorDivSIOp(lhs, rhs))
                return self.insert(arith.SubiOp(lhs, self.insert(arith.MuliOp(quotient, rhs))))
            case MinAtom() | MaxAtom():
                op = arith.MinSIOp if isinstance(atom, MinAtom) else arith.MaxSIOp
                result = operands[0]
                for operand in operands[1:]:
                    result = self.insert(op(result, operand))
                return result
            case _:
                raise TypeError(f"a {type(atom).__name__} over loop variables has no value")

    def _is_unsigned(self, operands: tuple[Dim, ...]) -> bool:
        prover = self._space.prover
        # a divisor 0 has no result anyway
        return all(prover.less_equal(0, operand) is True for operand in operands)

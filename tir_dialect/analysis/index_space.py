"""Indices as expressions over the symbols of a function and the variables of its loops, and their extremes while
variables run over ranges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import BlockArgument, Operation, SSAValue

from tir_dialect.analysis.dims import DimEvaluator
from tir_dialect.analysis.structure import block_of, enclosing_func, is_inside, loop_of
from tir_dialect.dims import (
    Atom,
    Bounds,
    Dim,
    DimLike,
    FloorDivAtom,
    MaxAtom,
    MinAtom,
    ModAtom,
    Prover,
    SymbolAtom,
    constant,
    floordiv,
    from_atom,
    is_symbol_name,
    maximum,
    minimum,
    symbol,
    total,
)
from tir_dialect.dims.expr import intern_dim
from tir_dialect.ops.function import PrimFuncOp

_ZERO = constant(0)


@dataclass(frozen=True)
class Variable:
    """A loop variable or block iterator, and the symbol that stands for it: `lower <= symbol < upper`.

    An end that is no expression is `None`.
    """

    value: BlockArgument
    dim: Dim
    lower: Dim | None
    upper: Dim | None

    @property
    def is_empty(self) -> bool:
        """Whether there is certainly no value in the range."""
        if self.lower is None or self.upper is None:
            return False
        length = (self.upper - self.lower).constant_value
        return length is not None and length <= 0


class IndexSpace:
    """Expressions for the integer values in the regions of `root`, a function or one of its blocks.

    Each loop variable gets a symbol of its own, which no function symbol has, and so do the iterators of `root` and of
    blocks around it. Iterators of blocks inside of `root` stand for their bindings.
    """

    def __init__(self, root: Operation):
        func = root if isinstance(root, PrimFuncOp) else enclosing_func(root)
        self._root = root
        self._taken: set[str] = set() if func is None else set(func.symbol_names)
        self._variables: dict[str, Variable] = {}
        self._names: dict[BlockArgument, str] = {}
        self._bounds = Bounds() if func is None else func.bounds
        self._prover: tuple[int, Prover] = len(self._taken), Prover(self._bounds)
        self._evaluator = DimEvaluator(self._leaf, self)

    @property
    def root(self) -> Operation:
        """The function or block."""
        return self._root

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables that have been met so far, by symbol."""
        return self._variables

    def dim_of(self, value: SSAValue) -> Dim | None:
        """The expression of a value; `None` if it is computed from memory or by unknown ops."""
        return self._evaluator.dim_of(value)

    def variable(self, value: BlockArgument) -> Variable:
        """The variable that a loop variable or iterator is."""
        name = self._names.get(value)
        if name is None:
            name = self._fresh_name(value, len(self._names))
            self._names[value] = name
            self._variables[name] = Variable(value, symbol(name), *self._range(value))
        return self._variables[name]

    @property
    def prover(self) -> Prover:
        """Knows the bounds of the function's symbols and the ranges of the variables, which it takes as not empty."""
        count, prover = self._prover
        ranges = self._ranges() if count != len(self._taken) else {}
        if ranges:
            prover = Prover(self._bounds.with_entries(ranges))
            self._prover = len(self._taken), prover
        return prover

    def less_equal(self, lhs: DimLike, rhs: DimLike) -> bool | None:
        """Whether `lhs <= rhs`, as `prover` knows it."""
        return self.prover.less_equal(lhs, rhs)

    def _ranges(self) -> dict[str, tuple[Dim | None, Dim | None]]:
        """Least and greatest value of each symbol that the function does not have."""
        return {name: _ends(variable) for name, variable in self._variables.items()}

    def _leaf(self, value: SSAValue) -> Dim | None:
        if not isinstance(value, BlockArgument):
            return None
        block = block_of(value)
        if block is not None and block is not self._root and is_inside(value, self._root):
            return self._evaluator.dim_of(block.bindings[value.index])
        return None if block is None and loop_of(value) is None else self.variable(value).dim

    def _range(self, value: BlockArgument) -> tuple[Dim | None, Dim | None]:
        loop, block = loop_of(value), block_of(value)
        if block is not None:
            return _ZERO, self.dim_of(block.extents[value.index])
        if loop is None:
            return None, None
        return (_ZERO if loop.lower is None else self.dim_of(loop.lower)), self.dim_of(loop.upper)

    def _fresh_name(self, value: SSAValue, number: int) -> str:
        """A symbol that is not taken yet."""
        hint = value.name_hint
        stem = hint if hint is not None and is_symbol_name(hint) else "i"
        while f"{stem}${number}" in self._taken:
            number += 1
        self._taken.add(f"{stem}${number}")
        return f"{stem}${number}"


def _ends(variable: Variable) -> tuple[Dim | None, Dim | None]:
    if variable.is_empty:  # what is said about it does not matter
        return variable.lower, variable.lower
    return variable.lower, None if variable.upper is None else variable.upper - 1


@dataclass(frozen=True)
class Extremes:
    """Bounds of a value, both inclusive; `exact` if both are attained whenever no range is empty."""

    low: Dim
    high: Dim
    exact: bool = True


def extremes(dim: Dim, variables: Sequence[Variable], prover: Prover) -> Extremes | None:
    """Bounds of `dim` while `variables`, outermost first, run over their ranges; the bounds are free of them.

    `None` if a range has an end that is no expression, or the sign of a factor is not known. Bounds are exact where
    every variable has a constant factor and occurs once, and its range does not depend on other variables.
    """
    result = Extremes(dim, dim)
    names = {name for variable in variables for name in variable.dim.symbols}
    for variable in reversed(variables):
        name = variable.dim.as_symbol or ""
        if name not in result.low.symbols | result.high.symbols:
            continue
        if variable.lower is None or variable.upper is None:
            return None
        ends = Extremes(variable.lower, variable.upper - 1)
        low, high = _eliminate(result.low, name, ends, prover), _eliminate(result.high, name, ends, prover)
        if low is None or high is None:
            return None
        independent = names.isdisjoint(ends.low.symbols | ends.high.symbols)
        result = Extremes(low.low, high.high, result.exact and low.exact and high.exact and independent)
    return result


def _eliminate(dim: Dim, name: str, ends: Extremes, prover: Prover) -> Extremes | None:
    """Bounds of `dim` while one symbol lies between `ends`."""
    if name not in dim.symbols:
        return Extremes(dim, dim)
    lows: list[Dim] = []
    highs: list[Dim] = []
    factors: dict[Atom, Dim] = {}
    for coefficient, monomial in dim.terms:
        dependent = [(atom, power) for atom, power in monomial if name in atom.symbols]
        factor = intern_dim(((coefficient, tuple(part for part in monomial if part not in dependent)),))
        if not dependent:
            lows.append(factor)
            highs.append(factor)
            continue
        (atom, power), *others = dependent
        if others or power != 1:
            return None
        factors[atom] = factors[atom] + factor if atom in factors else factor
    exact = len(factors) == 1
    for atom, factor in factors.items():
        bounds, sign = _of_atom(atom, name, ends, prover), _sign(factor, prover)
        if bounds is None or sign is None:
            return None
        exact = exact and bounds.exact
        lows.append(factor * (bounds.low if sign > 0 else bounds.high))
        highs.append(factor * (bounds.high if sign > 0 else bounds.low))
    return Extremes(total(lows), total(highs), exact)


def _sign(factor: Dim, prover: Prover) -> int | None:
    if prover.less_equal(0, factor):
        return 1
    return -1 if prover.less_equal(factor, 0) else None


def _of_atom(atom: Atom, name: str, ends: Extremes, prover: Prover) -> Extremes | None:
    if isinstance(atom, SymbolAtom):
        return ends
    parts = [_eliminate(operand, name, ends, prover) for operand in atom.operands]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    match atom:
        case FloorDivAtom():
            return _of_quotient(known[0], known[1], prover)
        case ModAtom():
            return _of_remainder(atom, known[0], known[1], prover)
        case MinAtom():
            return Extremes(minimum(*(part.low for part in known)), minimum(*(part.high for part in known)), False)
        case MaxAtom():
            return Extremes(maximum(*(part.low for part in known)), maximum(*(part.high for part in known)), False)
        case _:
            return None


def _of_quotient(numerator: Extremes, denominator: Extremes, prover: Prover) -> Extremes | None:
    divisor = denominator.low
    if divisor is not denominator.high or not prover.less_equal(1, divisor):
        return None
    return Extremes(floordiv(numerator.low, divisor), floordiv(numerator.high, divisor), numerator.exact)


def _of_remainder(atom: Atom, numerator: Extremes, denominator: Extremes, prover: Prover) -> Extremes | None:
    divisor = denominator.low
    if divisor is not denominator.high or not prover.less_equal(1, divisor):
        return None
    quotient = floordiv(numerator.low, divisor)
    if prover.equal(quotient, floordiv(numerator.high, divisor)):  # no wrap-around
        return Extremes(numerator.low - quotient * divisor, numerator.high - quotient * divisor, numerator.exact)
    if numerator.low is numerator.high:
        return Extremes(from_atom(atom), from_atom(atom), False)
    return Extremes(constant(0), divisor - 1, False)

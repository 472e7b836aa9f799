"""Indices as expressions over the symbols of a function and the variables of its loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import BlockArgument, Operation, SSAValue

from tir_dialect.analysis.dims import DimEvaluator
from tir_dialect.analysis.structure import block_of, enclosing_func, is_inside, loop_of
from tir_dialect.dims import Bounds, Dim, DimLike, Prover, constant, is_symbol_name, symbol
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

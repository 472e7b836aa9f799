"""Indices as expressions over the symbols of a function and the variables of its loops, and their extremes while
variables run over ranges. In a `DataSpace`, integers from memory, scalar arguments or calls are symbols, too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from tir_dialect.analysis.dims import DimEvaluator
from tir_dialect.analysis.structure import (
    block_of,
    enclosing_func,
    has_no_effects,
    is_defined_inside,
    loop_of,
    root_buffer,
)
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
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.ops.raw_memory import AddressOfOp, MemoryAtOp

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
        if block is not None and block is not self._root and is_defined_inside(value, self._root):
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
            numerator, denominator = known
            divisor = denominator.low
            if divisor is not denominator.high or not prover.less_equal(1, divisor):
                return None
            return Extremes(floordiv(numerator.low, divisor), floordiv(numerator.high, divisor), numerator.exact)
        case ModAtom():
            return _of_remainder(atom, known[0], known[1], prover)
        case MinAtom():
            return Extremes(minimum(*(part.low for part in known)), minimum(*(part.high for part in known)), False)
        case MaxAtom():
            return Extremes(maximum(*(part.low for part in known)), maximum(*(part.high for part in known)), False)
        case _:
            return None


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


WIDE = 64
MOST = 1 << 16
"""The greatest factor of a number of fewer bits in a sum that counts as what the machine computes."""


class DataSpace(IndexSpace):
    """As `IndexSpace`, but every integer has an expression.

    A number that is loaded, or that comes from arithmetic that may wrap around with such numbers, is a symbol. What is
    computed in the same way from the same numbers is one symbol; two loads of an element are two, since somebody else
    may write to it in between.
    """

    def __init__(self, func: PrimFuncOp):
        super().__init__(func)
        self._evaluator = _DataEvaluator(self)
        self._changing = None if func.may_alias is not None else _changing(func)
        """Buffers that may be written; `None` for all."""
        self._symbols: dict[Hashable, Dim] = {}
        self._data: dict[str, int] = {}
        """How many bits a number has, by symbol."""

    def number(self, value: SSAValue) -> Dim | None:
        """The expression of an integer of any width, read as signed."""
        if isinstance(value.type, IndexType) or _bits(value.type) == WIDE:
            return self.dim_of(value)
        owner = value.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
            return constant(owner.value.value.data)
        if isinstance(owner, arith.ExtSIOp):
            return self.number(owner.input)
        return self._data_symbol(value)

    def is_data(self, dim: Dim) -> bool:
        """Whether an expression has numbers from memory, or variables of loops over them."""
        return any(name in self._data or self._ends(name, self.is_data) for name in dim.symbols)

    def is_wide(self, dim: Dim) -> bool:
        """As `is_data`, if arithmetic in 64 bits may not hold the numbers."""
        return any(self._data.get(name) == WIDE or self._ends(name, self.is_wide) for name in dim.symbols)

    def _ends(self, name: str, is_such: Callable[[Dim], bool]) -> bool:
        """Whether a symbol is the variable of a loop of which an end is `such`, or no expression."""
        variable = self.variables.get(name)
        return variable is not None and any(end is None or is_such(end) for end in (variable.lower, variable.upper))

    def never_changes(self, buffer: SSAValue) -> bool:
        """Whether the memory of a buffer is not written while the function runs."""
        return self._changing is not None and root_buffer(buffer) not in self._changing

    def structural(self, op: Operation, operands: tuple[Dim, ...]) -> Dim:
        """A symbol for what an op makes of numbers: one for equal ops."""
        return self._named((op.name, *map(str, op.properties.values()), operands), op.results[0], WIDE)

    @override
    def _ranges(self) -> dict[str, tuple[Dim | None, Dim | None]]:
        return super()._ranges() | {name: _range_of(bits) for name, bits in self._data.items()}

    def symbol_of(self, value: SSAValue) -> Dim | None:
        """The symbol of a loop variable, an iterator or a number from memory; `None` for what is no integer."""
        found = self._leaf(value)
        if found is not None or not isinstance(value.type, IndexType | IntegerType):
            return found
        owner = value.owner
        if isinstance(owner, arith.IndexCastOp | arith.ExtSIOp) and (_bits(owner.input.type) or WIDE) < WIDE:
            return self.number(owner.input)
        return self._data_symbol(value)

    def _data_symbol(self, value: SSAValue) -> Dim:
        bits = _bits(value.type) or WIDE
        owner = value.owner
        if isinstance(owner, arith.ExtUIOp):
            bits = -(_bits(owner.input.type) or WIDE)
        return self._named(self._key(value), value, bits)

    def _named(self, key: Hashable, value: SSAValue, bits: int) -> Dim:
        found = self._symbols.get(key)
        if found is None:
            name = self._fresh_name(value, len(self._taken))
            self._data[name] = bits
            found = self._symbols[key] = symbol(name)
        return found

    def _key(self, value: SSAValue) -> Hashable:
        """What two values have in common that are equal wherever both are known."""
        op = value.owner
        if not isinstance(op, Operation) or op.regions or len(op.results) != 1 or not has_no_effects(op):
            return value
        if not all(isinstance(each.type, IndexType | IntegerType) for each in op.operands):
            return value
        operands = tuple(map(self.number, op.operands))
        return (op.name, value.type, *map(str, op.properties.values()), operands)


class _DataEvaluator(DimEvaluator):
    """Arithmetic with numbers from memory is what the machine computes only where it cannot wrap around."""

    def __init__(self, space: DataSpace):
        super().__init__(space.symbol_of, space)
        self._space = space

    @override
    def _apply(self, op: Operation, operands: list[Dim]) -> Dim | None:
        space = self._space
        if isinstance(op, arith.IndexCastOp) or not any(map(space.is_data, operands)):
            return super()._apply(op, operands)
        if isinstance(op, arith.AddiOp | arith.SubiOp) and not any(map(space.is_wide, operands)):
            found = super()._apply(op, operands)
            if found is not None and all(abs(factor) <= MOST for factor, _ in found.terms):
                return found
        return space.structural(op, tuple(operands))


def _bits(type: Attribute) -> int | None:
    return type.width.data if isa(type, IntegerType) else None


def _range_of(bits: int) -> tuple[Dim | None, Dim | None]:
    """The least and greatest number of so many bits; of an unsigned one they are given as a negative number."""
    if bits == WIDE or bits == -WIDE:
        return None, None
    if bits < 0:
        return constant(0), constant((1 << -bits) - 1)
    return constant(-(1 << (bits - 1))), constant(max((1 << (bits - 1)) - 1, 1))


def _changing(func: PrimFuncOp) -> set[SSAValue]:
    """Buffers that may be written while the function runs."""
    found: set[SSAValue] = set()
    for op in func.body.walk():
        if isinstance(op, StoreOp | AddressOfOp):
            found.add(root_buffer(op.buffer))
        elif isinstance(op, CallOp | ForeignCallOp):
            found.update(root_buffer(each) for each in op.arguments)
        elif isinstance(op, MemoryAtOp):
            found.add(op.view)
    return found


class DataSources:
    """Classifies integers; sizes, loop variables and what is computed from them are no data. Memoised."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, bool] = {}

    def is_data(self, value: SSAValue) -> bool:
        """Whether a value depends on anything but sizes and loop variables."""
        pending = [value]
        while pending:
            sources = _sources(pending[-1])
            missing = [source for source in sources or () if source not in self._known]
            if missing:
                pending += missing
                continue
            current = pending.pop()
            self._known[current] = sources is None or any(self._known[source] for source in sources)
        return self._known[value]


def _sources(value: SSAValue) -> Sequence[SSAValue] | None:
    """What a value is computed from; `None` for data."""
    owner = value.owner
    if isinstance(owner, Operation):
        return None if isinstance(owner, LoadOp) or owner.regions or not has_no_effects(owner) else owner.operands
    assert isinstance(value, BlockArgument)
    loop, block, func = loop_of(value), block_of(value), owner.parent_op()
    if block is not None:
        return (block.bindings[value.index],)
    if loop is not None:
        return (loop.upper,) if loop.lower is None else (loop.lower, loop.upper)
    return () if isinstance(func, PrimFuncOp) and value.index < len(func.symbols) else None

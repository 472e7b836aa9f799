"""An index space in which integers from memory are symbols, too; and which integers come from memory, scalar
arguments or calls.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from typing_extensions import override
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from tir_dialect.analysis.dims import DimEvaluator
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import block_of, has_no_effects, loop_of, root_buffer
from tir_dialect.dims import Dim, constant, symbol
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.ops.raw_memory import AddressOfOp, MemoryAtOp

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

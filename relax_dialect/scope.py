"""Scoping of symbols: which an op uses, which values witness them, why an op that binds symbols may not be removed, and
what is known about their values; and look-up of the functions of a module by name.

The rule, a symbol may be used exactly where some witness dominates, is verified by a pass over whole functions; this
file says what one op or block contributes to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import cast
from weakref import WeakKeyDictionary, WeakValueDictionary

from typing_extensions import override
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.traits import ConditionallySpeculatable, EffectInstance, MemoryEffect, MemoryEffectKind, Resource

from relax_dialect.struct_info.symbols import iter_symbols
from relax_dialect.struct_info.types import PartialShapeAttr, shape_symbols
from tir_dialect.dims import Bounds, Prover
from tir_dialect.types import DimAttr, SymbolAttr


class BindsBlockSymbols(Operation, ABC):
    """An op whose entry block binds symbols: functions, closures, loops."""

    @override
    def verify(self, verify_nested_ops: bool = True) -> None:
        # First what nested ops rely on.
        if isinstance(self, IRDLOperation):
            self.get_irdl_definition().verify(self)
        super().verify(verify_nested_ops)

    @property
    @abstractmethod
    def symbols(self) -> Sequence[SymbolAttr]:
        """The symbols that the op's block arguments witness, with their bounds."""

    @abstractmethod
    def block_witnesses(self, block: Block) -> Mapping[str, BlockArgument]:
        """The arguments of `block`, one of the op's own, that witness symbols."""


class BindsResultSymbols(Operation, ABC):
    """An op some of whose results witness symbols: `relax.match_cast`, and regions that pass witnesses on."""

    @property
    @abstractmethod
    def result_witnesses(self) -> Mapping[str, OpResult]:
        """The results that witness symbols."""


def symbols_witnessed(position: Operation | Block) -> Mapping[str, SSAValue]:
    """The witnesses that an op makes by its results, or a block by its arguments: symbol to value."""
    if isinstance(position, Block):
        parent = position.parent_op()
        return parent.block_witnesses(position) if isinstance(parent, BindsBlockSymbols) else {}
    return position.result_witnesses if isinstance(position, BindsResultSymbols) else {}


def symbols_used(op: Operation) -> set[str]:
    """The symbols that `op` itself uses in the types of its operands and results and in its properties and attributes.

    Those that its own results witness are left out, and so is everything in its regions.
    """
    types: Iterable[Attribute] = (*op.operand_types, *op.result_types)
    used = {name for info in types for name in iter_symbols(info)}
    for attribute in (*op.properties.values(), *op.attributes.values()):
        used.update(attribute_symbols(attribute))
    return used.difference(symbols_witnessed(op))


def block_symbols_used(block: Block) -> set[str]:
    """The symbols in the types of a block's arguments that the block itself does not witness."""
    used = {name for argument in block.args for name in iter_symbols(argument.type)}
    return used.difference(symbols_witnessed(block))


def attribute_symbols(attribute: Attribute) -> Iterator[str]:
    """The free symbols of an attribute: of types, dimensions, shapes, and lists and dictionaries of them."""
    if isinstance(attribute, DimAttr):
        yield from attribute.data.symbols
    elif isinstance(attribute, PartialShapeAttr):
        yield from shape_symbols(attribute.data)
    elif isinstance(attribute, ArrayAttr):
        for element in cast("ArrayAttr[Attribute]", attribute):
            yield from attribute_symbols(element)
    elif isinstance(attribute, DictionaryAttr):
        for element in attribute.data.values():
            yield from attribute_symbols(element)
    else:
        yield from iter_symbols(attribute)


def prover_at(op: Operation) -> Prover:
    """A prover that knows the bounds of the symbols visible at `op`; shared by all ops with the same bounds."""
    binders: list[tuple[SymbolAttr, ...]] = []
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, BindsBlockSymbols):
            binders.append(tuple(parent.symbols))
        parent = parent.parent_op()
    return _prover_inside(tuple(binders))


@lru_cache(maxsize=1024)
def _prover_inside(binders: tuple[tuple[SymbolAttr, ...], ...]) -> Prover:
    """The prover inside of ops that bind these symbols, the innermost first."""
    entries: dict[str, tuple[int, int | None]] = {}
    for symbol in (symbol for symbols in binders for symbol in symbols):
        entries.setdefault(symbol.symbol.data, symbol.interval)
    return prover_for(Bounds(entries))


@lru_cache(maxsize=256)
def prover_for(bounds: Bounds) -> Prover:
    """The prover of these bounds."""
    return Prover(bounds)


_tables: WeakKeyDictionary[Operation, WeakValueDictionary[str, Operation]] = WeakKeyDictionary()
"""Tables of modules that are still there. They hold no op: an op holds its module, which would never go then."""


def enclosing_module(op: Operation) -> ModuleOp | None:
    """The innermost module that `op` is in, or that it is."""
    current: Operation | None = op
    while current is not None and not isinstance(current, ModuleOp):
        current = current.parent_op()
    return current


def symbol_name(op: Operation) -> str | None:
    """The name under which `op` is in the symbol table, if it has one."""
    name = op.properties.get("sym_name")
    return name.data if isinstance(name, StringAttr) else None


def find_function(op: Operation, name: str) -> Operation | None:
    """The op called `name` in the module around `op`; `None` if there is none, or no module.

    The table of a module is remembered; an entry counts only if it is still that module's and still has the name, and
    a name that is not found makes a new table.
    """
    module = enclosing_module(op)
    if module is None:
        return None
    table = _tables.get(module)
    found = None if table is None else table.get(name)
    if found is not None and found.parent is module.body.block and symbol_name(found) == name:
        return found
    ops = {symbol: inner for inner in module.body.block.ops if (symbol := symbol_name(inner)) is not None}
    _tables[module] = WeakValueDictionary(ops)
    return ops.get(name)


def called_functions(op: Operation) -> Iterator[str]:
    """The names of the functions that `op` refers to, if any."""
    callee = op.properties.get("callee")
    if isinstance(callee, SymbolRefAttr):
        yield callee.string_value()


_NO_EFFECT: frozenset[EffectInstance] = frozenset()


@dataclass(frozen=True)
class SymbolScope(Resource):
    """The symbols that are in scope. No value changes with it: effects on it do not make an op impure."""

    def name(self) -> str:
        return "<symbols>"


class CheckedWitness(MemoryEffect, ConditionallySpeculatable):
    """Like `Checked`, for an op that may bind symbols.

    A use of a symbol in a type or property is no use of a value, so passes that only see values would drop the witness.
    While there is such a use, the op makes something that belongs to a value of the user: an op that holds both may be
    removed, the witness alone may not.
    """

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        bound = symbols_witnessed(op).keys()
        user = next(_values_with(bound, op), None) if bound else None
        if user is None:
            return _NO_EFFECT
        return frozenset((EffectInstance(MemoryEffectKind.ALLOC, user, SymbolScope()),))

    @classmethod
    def is_speculatable(cls, op: Operation) -> bool:
        return False


def _values_with(symbols: Collection[str], op: Operation) -> Iterator[SSAValue]:
    """Values of ops that use one of the symbols otherwise than through a result of `op`, the outermost scope first."""
    parent = op.parent_op()
    if parent is not None and (passed_on := symbols & symbols_witnessed(parent).keys()):
        yield from _values_with(passed_on, parent)
    own = set(op.results)
    following = op.next_op
    while following is not None:
        for inner in following.walk():
            if _uses(inner, symbols):
                yield from (value for value in (*inner.results, *inner.operands) if value not in own)
        following = following.next_op


def _uses(op: Operation, symbols: Collection[str]) -> bool:
    return not symbols_used(op).isdisjoint(symbols) or any(
        not block_symbols_used(block).isdisjoint(symbols) for region in op.regions for block in region.blocks
    )

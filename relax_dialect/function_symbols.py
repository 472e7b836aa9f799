"""The symbols of a function: which its ops bind and name, and their replacement by others or by dimensions; and the
symbols of a kernel that it calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.hints import isa

from relax_dialect.ops.dataflow import DataflowOp
from relax_dialect.ops.structure import ClosureOp
from relax_dialect.scope import block_symbols_used, symbols_used, symbols_witnessed
from relax_dialect.struct_info.symbols import substitute, substitute_shape
from relax_dialect.struct_info.types import PartialShapeAttr, StructInfo
from tir_dialect.dims import Dim, symbol
from tir_dialect.types import DimAttr, SymbolAttr


def bindings(op: Operation) -> Iterator[str]:
    """The symbols that are witnessed by ops and blocks inside `op`, in program order, one for each witness.

    A region that passes a witness on makes no new one.
    """
    for inner in op.walk():
        if not isinstance(inner, DataflowOp):
            yield from symbols_witnessed(inner)
        for region in inner.regions:
            for block in region.blocks:
                yield from symbols_witnessed(block)


def bound_symbols(op: Operation) -> dict[str, None]:
    """The symbols that are witnessed by ops and blocks inside `op`, in program order, those of its entry first."""
    return dict.fromkeys(bindings(op))


def all_symbols(op: Operation) -> set[str]:
    """The symbols that are used or witnessed anywhere inside `op`."""
    return named_symbols(op).union(bindings(op))


def named_symbols(op: Operation) -> set[str]:
    """The symbols that types, properties and attributes name anywhere inside `op`, apart from where they are bound."""
    found: set[str] = set()
    for inner in op.walk():
        found |= symbols_used(inner)
        for region in inner.regions:
            for block in region.blocks:
                found |= block_symbols_used(block)
    return found


def captures(op: Operation) -> tuple[list[SSAValue], set[str]]:
    """The values and the symbols that the regions of `op` use and that are made outside of it."""
    values: dict[SSAValue, None] = {}
    inside: set[SSAValue] = set()
    symbols: set[str] = set()
    witnessed: set[str] = set()
    for each in op.walk():
        for block in (block for region in each.regions for block in region.blocks):
            inside.update(block.args)
            symbols |= block_symbols_used(block)
            witnessed.update(symbols_witnessed(block))
        if each is not op:
            values.update(dict.fromkeys(each.operands))
            inside.update(each.results)
            symbols |= symbols_used(each)
            witnessed.update(symbols_witnessed(each))
    return [value for value in values if value not in inside], symbols - witnessed


def substitute_in(ops: Iterable[Operation], mapping: Mapping[str, Dim]) -> None:
    """Replaces symbols at once in `ops` and everything inside them.

    A symbol that one of the ops binds may only become another symbol. Inside a closure that binds one of the symbols
    the name is that of the closure's own.
    """
    if not mapping:
        return
    for op in list(ops):
        op.properties = {name: _substitute(attribute, mapping) for name, attribute in op.properties.items()}
        op.attributes = {name: _substitute(attribute, mapping) for name, attribute in op.attributes.items()}
        for result in op.results:
            substitute_in_value(result, mapping)
        own = op.function_type.symbol_names if isinstance(op, ClosureOp) else ()
        inside = {name: dim for name, dim in mapping.items() if name not in own}
        for block in [block for region in op.regions for block in region.blocks]:
            for argument in block.args:
                substitute_in_value(argument, inside)
            substitute_in(block.ops, inside)


def substitute_in_value(value: SSAValue, mapping: Mapping[str, Dim]) -> SSAValue:
    """Replaces symbols in the type of a value; gives the value that replaces it."""
    info = _substitute(value.type, mapping)
    return value if info == value.type else Rewriter.replace_value_with_new_type(value, info)


def _substitute(attribute: Attribute, mapping: Mapping[str, Dim]) -> Attribute:
    if isinstance(attribute, StructInfo):
        return substitute(attribute, mapping)
    if isinstance(attribute, DimAttr):
        return DimAttr(attribute.data.substitute(mapping))
    if isinstance(attribute, PartialShapeAttr):
        return PartialShapeAttr(substitute_shape(attribute.data, mapping))
    if isinstance(attribute, SymbolAttr):
        new = mapping.get(attribute.symbol.data)
        name = None if new is None else new.as_symbol
        return attribute if name is None else SymbolAttr(name, *attribute.interval)
    if isa(attribute, ArrayAttr[Attribute]):
        return ArrayAttr(_substitute(each, mapping) for each in attribute)
    if isinstance(attribute, DictionaryAttr):
        return DictionaryAttr({name: _substitute(each, mapping) for name, each in attribute.data.items()})
    return attribute


@dataclass
class KernelDims:
    """Maps dimensions of the caller to dimensions of one kernel.

    A symbol that is a dimension of a buffer by itself keeps its name; so does every expression over such symbols. Any
    other dimension of a buffer, such as the only dimension `m * n` of a flattened tensor, gets a symbol of its own:
    inside the kernel it does not matter how the caller came by the size. Dimensions that are no buffer's, such as the
    positions of a slice, stay as they are; the caller gives the values of their symbols.
    """

    _known: set[str] = field(default_factory=set[str])
    _renamed: dict[Dim, Dim] = field(default_factory=dict[Dim, Dim])

    @staticmethod
    def of(shapes: Iterable[Sequence[Dim]], others: Sequence[Dim] = ()) -> KernelDims:
        """The dimensions of a kernel whose buffers have these shapes, and that uses `others` too."""
        dims = list(dict.fromkeys(dim for shape in shapes for dim in shape))
        result = KernelDims({name for dim in dims if (name := dim.as_symbol) is not None})
        taken = {name for dim in (*dims, *others) for name in dim.symbols}
        for dim in dims:
            if not dim.symbols <= result._known:
                name = next(name for i in range(len(taken) + 1) if (name := f"d{i}") not in taken)
                taken.add(name)
                result._renamed[dim] = symbol(name)
        return result

    def shape(self, dims: Sequence[Dim]) -> tuple[Dim, ...]:
        """The shape of a buffer in the kernel's symbols."""
        return tuple(self._renamed.get(dim, dim) for dim in dims)

    def original(self, dim: Dim) -> Dim:
        """The caller's dimension for one in the kernel's symbols."""
        names = {new.as_symbol: old for old, new in self._renamed.items()}
        return dim.substitute({name: old for name, old in names.items() if name is not None})

    def symbols(self, shapes: Iterable[Sequence[Dim]], others: Sequence[Dim] = ()) -> tuple[str, ...]:
        """The kernel's symbols in an order that does not depend on their names."""
        used = [*(self.shape(dims) for dims in shapes), others]
        return tuple(dict.fromkeys(name for dims in used for dim in dims for name in sorted(dim.symbols)))

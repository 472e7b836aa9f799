"""Which symbols an op uses, and which it or its blocks witness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, Block, Operation, ParametrizedAttribute, SSAValue

from relax_dialect.scope import symbols_witnessed
from relax_dialect.struct_info.base import PartialShapeAttr, shape_symbols
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.symbols import free_symbols
from tir_dialect.attributes import DimAttr
from tir_dialect.ops.function import PrimFuncOp

NO_SYMBOLS: frozenset[str] = frozenset()


def witnesses(position: Operation | Block) -> Mapping[str, SSAValue]:
    """The values that witness symbols: results of an op, arguments of a block."""
    func = position.parent_op() if isinstance(position, Block) else None
    if isinstance(func, PrimFuncOp):
        return dict(zip(func.symbol_names, func.symbol_args, strict=False))
    return symbols_witnessed(position)


def entry_witnesses(op: Operation) -> Mapping[str, SSAValue]:
    """The witnesses among the arguments of the entry blocks of `op`; its signature may use them."""
    found: dict[str, SSAValue] = {}
    for region in op.regions:
        if region.first_block is not None:
            found |= witnesses(region.first_block)
    return found


class SymbolsInAttributes:
    """The free symbols of attributes and types; each distinct object is looked into once."""

    def __init__(self) -> None:
        # By identity: attributes hash by content, which costs more than looking. The module keeps them alive.
        self._known: dict[int, frozenset[str]] = {}

    def attributes(self, op: Operation) -> Iterator[tuple[str, frozenset[str]]]:
        """Where the properties and attributes of `op` name symbols, and which."""
        for kind, attributes in (("property", op.properties), ("attribute", op.attributes)):
            for name, attribute in attributes.items():
                if used := self.of(attribute):
                    yield f"{kind} {name}", used

    def results(self, op: Operation) -> Iterator[tuple[str, frozenset[str]]]:
        """Where the types of the results of `op` name symbols, and which."""
        for index, result in enumerate(op.results):
            if used := self.of(result.type):
                yield f"type of result #{index}", used

    def arguments(self, block: Block) -> Iterator[tuple[str, frozenset[str]]]:
        """Where the types of a block's arguments name symbols, and which."""
        for index, argument in enumerate(block.args):
            if used := self.of(argument.type):
                yield f"type of argument #{index}", used

    def of(self, attribute: Attribute) -> frozenset[str]:
        """The free symbols of one attribute."""
        if (known := self._known.get(id(attribute))) is None:
            known = self._known[id(attribute)] = self._look_into(attribute)
        return known

    def _look_into(self, attribute: Attribute) -> frozenset[str]:
        match attribute:
            case DimAttr():
                return frozenset(attribute.data.symbols)
            case PartialShapeAttr():
                return frozenset(shape_symbols(attribute.data))
            case FuncType():  # binds symbols of its own
                return free_symbols(attribute)
            case DictionaryAttr():
                parts = tuple(attribute.data.values())
            case ArrayAttr():
                parts = attribute.data
            case ParametrizedAttribute():
                parts = attribute.parameters
            case _:
                return NO_SYMBOLS
        return NO_SYMBOLS.union(*map(self.of, parts))

"""All ops inside of ops and regions, without the nested generators of xDSL's `walk`: a generator for each region around
an op takes longer than most of what is asked about it. And the functions that an op names.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, Region
from xdsl.utils.hints import isa


def walked(op: Operation) -> list[Operation]:
    """An op and all ops in it, in the order of `walk`."""
    return [op, *ops_in(*op.regions)]


def ops_in(*regions: Region) -> list[Operation]:
    """All ops in regions, in the order of `walk`."""
    found: list[Operation] = []
    pending = _from_last(regions)
    while pending:
        op = pending.pop()
        found.append(op)
        if op.regions:
            pending += _from_last(op.regions)
    return found


def _from_last(regions: tuple[Region, ...]) -> list[Operation]:
    """The ops of blocks of some regions, the last one first."""
    found: list[Operation] = []
    for region in reversed(regions):
        block = region.last_block
        while block is not None:
            op = block.last_op
            while op is not None:
                found.append(op)
                op = op.prev_op
            block = block.prev_block
    return found


def referenced_functions(op: Operation) -> Iterator[str]:
    """The names of functions in the properties and attributes of `op` itself."""
    for attribute in (*op.properties.values(), *op.attributes.values()):
        yield from _names(attribute)


def _names(attribute: Attribute) -> Iterator[str]:
    if isinstance(attribute, SymbolRefAttr):
        yield attribute.root_reference.data
    elif isa(attribute, ArrayAttr[Attribute]):
        for element in attribute:
            yield from _names(element)
    elif isinstance(attribute, DictionaryAttr):
        for element in attribute.data.values():
            yield from _names(element)

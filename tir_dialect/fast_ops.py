"""What is done to very many ops, in a fraction of the time that xDSL takes: walks over ops inside of others, also for
the functions that they name; construction from parts that are known to be valid; removal after the last use.

xDSL's `walk` has a generator for each region around an op, which takes longer than most of what is asked about the op.
A lowering makes tens of thousands of ops. `Operation.create` spends most of its time with what such an op has not:
successors, regions, a location that is looked up; the constructor of an IRDL op sorts its operands into segments first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, ArrayAttr, DictionaryAttr, LocationAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue, SSAValues, Use
from xdsl.rewriter import Rewriter
from xdsl.transforms.dead_code_elimination import is_trivially_dead
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


OpT = TypeVar("OpT", bound=Operation)

_NOTHING: Mapping[str, Attribute] = {}


def new_op(
    kind: type[OpT],
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = _NOTHING,
    location: LocationAttr = UNKNOWN_LOC,
    successors: Sequence[Block] = (),
    regions: Sequence[Region] = (),
) -> OpT:
    """As `kind.create`."""
    op = kind.__new__(kind)
    fill_op(op, operands, result_types, properties, location, regions)
    if successors:
        op.successors = successors
    return op


def fill_op(
    op: Operation,
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = _NOTHING,
    location: LocationAttr = UNKNOWN_LOC,
    regions: Sequence[Region] = (),
) -> None:
    """Initialises an op as its constructor does.

    Operands are in the order of the definition; segment sizes are ordinary properties.
    """
    facts = vars(op)
    if operands:
        # The uses of values by a new op, before the lists of their uses, as `SSAValue.add_use` puts them there.
        uses: list[Use] = []
        for operand in operands:
            use, following = Use(op, len(uses)), operand.first_use
            if following is not None:
                vars(use)["_next_use"] = following
                vars(following)["_prev_use"] = use
            operand.first_use = use
            uses.append(use)
        facts["_operands"], facts["_operand_uses"] = SSAValues(operands), tuple(uses)
    facts["results"] = SSAValues([OpResult(type_, op, index) for index, type_ in enumerate(result_types)])
    facts["properties"] = {**_defaults(type(op)), **properties}
    facts["attributes"] = {}
    facts["location"] = location
    facts["regions"] = ()
    for region in regions:
        op.add_region(region)


def as_value(value: SSAValue | Operation) -> SSAValue:
    """`SSAValue.get`, without checks against abstract classes."""
    return value if isinstance(value, OpResult | BlockArgument) else SSAValue.get(value)


@cache
def _defaults(kind: type[Operation]) -> Mapping[str, Attribute]:
    """The default properties of ops of a class."""
    return kind.create().properties


def erase_dead(
    candidates: Iterable[Operation],
    *,
    among: Callable[[Operation], bool] = lambda op: True,
    erase: Callable[[Operation], None] = Rewriter.erase_op,
) -> None:
    """Erases those of the ops that nothing uses and that have no effects, then what only they used, and so on.

    The last candidate is looked at first. Only ops `among` some are erased, each by a call of `erase`.
    """
    pending = list(candidates)
    while pending:
        op = pending.pop()
        if op.parent is None or not among(op) or not is_trivially_dead(op):
            continue
        operands = [operand.owner for operand in op.operands]
        erase(op)
        pending += [owner for owner in operands if isinstance(owner, Operation)]

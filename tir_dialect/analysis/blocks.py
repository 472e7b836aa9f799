"""Well-formedness of `tir.block`: it uses loops only through iterators, and stores as their kinds require."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from tir_dialect.analysis.declarations import undeclared_access
from tir_dialect.analysis.dependence import Dependence, is_loop_variable
from tir_dialect.analysis.dims import dim_of
from tir_dialect.analysis.structure import ancestors, is_inside, root_buffer, view_offsets
from tir_dialect.ops.blocks import BlockIterator, BlockOp
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.ops.verifiers import VERIFIERS
from tir_dialect.types import IteratorKind


@VERIFIERS.attach("tir.block")
def verify_block(block: BlockOp) -> None:
    """Raises `VerifyException` if the body of `block` disagrees with its iterators."""
    _verify_uses_of_loops(block)
    for _, message in _misuses(block):
        raise VerifyException(message)  # C4
    if (wrong := undeclared_access(block)) is not None:
        raise VerifyException(f"{_describe(block)} has {wrong}")  # C5


def _verify_uses_of_loops(block: BlockOp) -> None:
    dependence = Dependence(is_loop_variable, through_bindings=False)
    for value in _values_from_outside(block):
        variables = dependence.of(value)
        if variables:
            name = min(map(_name, variables))
            raise VerifyException(
                f"{_describe(block)} uses the loop variable {name}, expected an iterator for it"
            )  # C3


def _values_from_outside(block: BlockOp) -> Iterator[SSAValue]:
    """The values that the body of `block` uses but does not define."""
    seen: set[SSAValue] = set()
    for op in block.body.walk():
        for operand in op.operands:
            if operand not in seen:
                seen.add(operand)
                if not is_inside(operand, block):
                    yield operand


def misused_iterators(block: BlockOp) -> set[SSAValue]:
    """The spatial iterators missing in the indices of a store, and the reduce iterators that occur in one.

    Conditions around a store are not trusted to choose one value of a missing iterator.
    """
    return {value for value, _ in _misuses(block, conditions=False)}


def _misuses(block: BlockOp, *, conditions: bool = True) -> Iterator[tuple[SSAValue, str]]:
    """The iterators that stores do not use as their kinds say, each with what is wrong.

    With `conditions`, an iterator in a condition around a store counts as one in its indices.
    """
    iterators = [iterator for iterator in block.iterators if not _is_unit(iterator)]
    spatial = [iterator.value for iterator in iterators if iterator.kind is IteratorKind.SPATIAL]
    reduce = [iterator.value for iterator in iterators if iterator.kind is IteratorKind.REDUCE]
    if not spatial and not reduce:
        return
    stores = [op for op in block.body.walk() if isinstance(op, StoreOp)]
    written = {root_buffer(store.buffer) for store in stores}
    every = [iterator.value for iterator in iterators]

    def loaded_from(load: LoadOp) -> Iterable[SSAValue]:
        return every if root_buffer(load.buffer) in written else load.operands

    any_use = Dependence(lambda argument: argument in every, loads=loaded_from)
    direct_use = Dependence(lambda argument: argument in every, loads=lambda load: ())
    for store in stores:
        if is_inside(root_buffer(store.buffer), block):
            continue
        indices = [*store.indices, *view_offsets(store.buffer)]
        deciding = any_use.of_all([*indices, *(_conditions(store, block) if conditions else ())])
        for value in spatial:
            if value not in deciding:
                yield value, f"{_stores(block, store)} without its spatial iterator {_name(value)}"
        for value in reduce:
            if value in direct_use.of_all(indices):
                yield value, f"{_stores(block, store)} with its reduce iterator {_name(value)}"


def _conditions(store: StoreOp, block: BlockOp) -> Iterator[SSAValue]:
    """The conditions in a block that a store is under, which may hold for one instance alone."""
    for op in ancestors(store):
        if op is block:
            return
        condition = op.condition if isinstance(op, IfOp | BlockOp) else None
        if condition is not None:
            yield condition


def _is_unit(iterator: BlockIterator) -> bool:
    """Whether an iterator has at most one value."""
    extent = dim_of(iterator.extent)
    return extent is not None and extent.constant_value in (0, 1)


def _stores(block: BlockOp, store: StoreOp) -> str:
    return f"{_describe(block)} stores to {_name(store.buffer)} at indices"


def _describe(block: BlockOp) -> str:
    return f"'tir.block' op \"{block.block_name.data}\""


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "without a name"

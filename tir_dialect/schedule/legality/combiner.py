"""The parts of a reduction block: accumulators, incoming values, and the combining ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import root_buffer
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.schedule.legality.program_order import touches
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure.statements import is_index_op


@dataclass(frozen=True)
class Combination:
    """`store[k] = combine(accumulator[0], ..., source[0], ...)` for each `k`."""

    accumulators: tuple[LoadOp, ...]
    repeated: Mapping[SSAValue, SSAValue]
    """Loads of what was loaded before, and the first load of each."""
    sources: tuple[SSAValue, ...]
    combine: tuple[Operation, ...]
    """The ops that depend on accumulators, in order."""
    stores: tuple[StoreOp, ...]


def combination(self: ScheduleState, block: BlockOp) -> Combination:
    """How a reduction block updates its result.

    Refuses a block that does not load each accumulator where it stores it, and before, compute from them and as many
    other values by pure ops, and store each result once; each accumulator must meet the value that comes in for it.
    """
    name = block.block_name.data
    body = [op for op in block.body.block.ops if op is not block.init]
    stores = {op.buffer: op for op in body if isinstance(op, StoreOp)}
    loads = [op for op in body if isinstance(op, LoadOp) and op.buffer in stores]
    first = {load.buffer: load for load in reversed(loads)}
    if not stores or first.keys() != stores.keys() or len(stores) != sum(isinstance(op, StoreOp) for op in body):
        raise self.error(f'block "{name}" does not load and store each of its results once')
    if any(body.index(load) > body.index(stores[load.buffer]) for load in loads):
        raise self.error(f'block "{name}" loads a result that it has stored')
    memory = {root_buffer(buffer) for buffer in stores}
    others = [op for op in body if touches(op, memory, writes_only=False) and op not in (*loads, *stores.values())]
    if others or len(memory) < len(stores):
        raise self.error(f'block "{name}" uses the memory of its results in several ways')
    _check_indices(self, block, stores, loads)
    repeated = _repeated(block)
    combine = _dependent(self, name, body, loads)
    accumulators = tuple(first[buffer] for buffer in stores)
    sources = _sources(self, name, combine, accumulators, repeated)
    if any(store.value not in {result for op in combine for result in op.results} for store in stores.values()):
        raise self.error(f'block "{name}" stores a value that does not depend on the accumulator')
    return Combination(accumulators, repeated, sources, combine, tuple(stores.values()))


def _repeated(block: BlockOp) -> dict[SSAValue, SSAValue]:
    """Which loads give what another one before has given, if nothing is stored in between."""
    space = IndexSpace(block)
    first: dict[tuple[object, ...], SSAValue] = {}
    found: dict[SSAValue, SSAValue] = {}
    for op in block.body.block.ops:
        if isinstance(op, LoadOp):
            key = (op.buffer, op.lanes, *(space.dim_of(index) or index for index in op.indices))
            if first.setdefault(key, op.result) is not op.result:
                found[op.result] = first[key]
    return found


def _check_indices(
    self: ScheduleState, block: BlockOp, stores: Mapping[SSAValue, StoreOp], loads: Sequence[LoadOp]
) -> None:
    """Refuses a block that starts, loads and stores a result at different indices."""
    name, space = block.block_name.data, IndexSpace(block)
    init = () if block.init is None else block.init.body.block.ops
    for access in (*loads, *(op for op in init if isinstance(op, StoreOp) and op.buffer in stores)):
        store = stores[access.buffer]
        positions = [[space.dim_of(index) or index for index in op.indices] for op in (access, store)]
        if positions[0] != positions[1]:
            verb = "starts" if isinstance(access, StoreOp) else "loads"
            raise self.error(f'block "{name}" {verb} and stores its results at different indices')


def _dependent(
    self: ScheduleState, name: str, body: Sequence[Operation], loads: Sequence[LoadOp]
) -> tuple[Operation, ...]:
    values = {load.result for load in loads}
    found: list[Operation] = []
    for op in body:
        if isinstance(op, StoreOp) or not any(operand in values for inner in op.walk() for operand in inner.operands):
            continue
        if not is_index_op(op):
            raise self.error(f"block \"{name}\" combines its values by '{op.name}', expected pure ops")
        found.append(op)
        values.update(op.results)
    return tuple(found)


def _sources(
    self: ScheduleState,
    name: str,
    combine: Sequence[Operation],
    accumulators: Sequence[LoadOp],
    repeated: Mapping[SSAValue, SSAValue],
) -> tuple[SSAValue, ...]:
    """The value that comes in for each accumulator: the one that it meets in an op."""
    meets: dict[SSAValue, set[SSAValue]] = {load.result: set() for load in accumulators}
    inside = {result for op in combine for result in op.results} | meets.keys()
    everything: set[SSAValue] = set()
    for op in combine:
        operands = [repeated.get(operand, operand) for operand in op.operands]
        other = {operand for operand in operands if operand not in inside}
        everything |= other
        for accumulator in meets.keys() & set(operands):
            meets[accumulator] |= other
    sources = [meets[load.result] for load in accumulators]
    if any(len(source) != 1 for source in sources) or set[SSAValue]().union(*sources) != everything:
        raise self.error(f'block "{name}" does not combine each accumulator with one value')
    found = tuple(next(iter(source)) for source in sources)
    if len(set(found)) != len(found) or any(s.type != a.result.type for s, a in zip(found, accumulators, strict=True)):
        raise self.error(f'block "{name}" does not combine each accumulator with one value of its type')
    return found

"""Reduction blocks taken apart: accumulators, the values that come in, and how they are combined."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.schedule.edits import is_index_op
from tir_dialect.schedule.state import ScheduleState


@dataclass(frozen=True)
class Combination:
    """`store[k] = combine(accumulator[0], ..., source[0], ...)` for each `k`."""

    accumulators: tuple[LoadOp, ...]
    sources: tuple[SSAValue, ...]
    combine: tuple[Operation, ...]
    """The ops that depend on accumulators, in order."""
    stores: tuple[StoreOp, ...]


def combination(self: ScheduleState, block: BlockOp) -> Combination:
    """How a reduction block updates its result.

    Refuses a block that does not load each accumulator once, compute from them and as many other values by pure ops,
    and store each result once; each accumulator must meet the value that comes in for it.
    """
    name = block.block_name.data
    body = [op for op in block.body.block.ops if op is not block.init]
    stores = tuple(op for op in body if isinstance(op, StoreOp))
    written = {store.buffer for store in stores}
    accumulators = tuple(op for op in body if isinstance(op, LoadOp) and op.buffer in written)
    by_buffer = {load.buffer: load for load in accumulators}
    if len(by_buffer) != len(accumulators) or set(by_buffer) != written or len(stores) != len(written):
        raise self.error(f'block "{name}" does not load and store each of its results once')
    if any(list(store.indices) != list(by_buffer[store.buffer].indices) for store in stores):
        raise self.error(f'block "{name}" loads and stores its results at different indices')
    combine = _dependent(self, name, body, accumulators)
    sources = _sources(self, name, combine, [by_buffer[store.buffer] for store in stores])
    if any(store.value not in {result for op in combine for result in op.results} for store in stores):
        raise self.error(f'block "{name}" stores a value that does not depend on the accumulator')
    return Combination(tuple(by_buffer[store.buffer] for store in stores), sources, combine, stores)


def _dependent(
    self: ScheduleState, name: str, body: list[Operation], accumulators: tuple[LoadOp, ...]
) -> tuple[Operation, ...]:
    values = {load.result for load in accumulators}
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
    self: ScheduleState, name: str, combine: tuple[Operation, ...], accumulators: list[LoadOp]
) -> tuple[SSAValue, ...]:
    """The value that comes in for each accumulator: the one that it meets in an op."""
    inside = {result for op in combine for result in op.results} | {load.result for load in accumulators}
    meets: dict[SSAValue, set[SSAValue]] = {load.result: set() for load in accumulators}
    for op in combine:
        own = [operand for operand in op.operands if operand in meets]
        other = [operand for operand in op.operands if operand not in inside]
        for accumulator in own:
            meets[accumulator].update(other)
    sources = [meets[load.result] for load in accumulators]
    everything = {operand for op in combine for operand in op.operands if operand not in inside}
    if any(len(source) != 1 for source in sources) or set().union(*sources) != everything:
        raise self.error(f'block "{name}" does not combine each accumulator with one value')
    found = tuple(next(iter(source)) for source in sources)
    if len(set(found)) != len(found) or any(s.type != a.result.type for s, a in zip(found, accumulators, strict=True)):
        raise self.error(f'block "{name}" does not combine each accumulator with one value of its type')
    return found

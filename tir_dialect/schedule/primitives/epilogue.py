"""Fusing an epilogue into the init of a reduction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.dims import constant
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.handles import Block, is_inside
from tir_dialect.schedule.legality.elementwise import (
    ElementBlock,
    check_moved_up,
    element_block,
    iterators_of_indices,
    own_allocation,
)
from tir_dialect.schedule.legality.instances import Instances
from tir_dialect.schedule.legality.monoid import Combination, check_monoid, check_neutral, combination
from tir_dialect.schedule.legality.motion import describe
from tir_dialect.schedule.rewriting.edits import erase_nest
from tir_dialect.schedule.rewriting.materialize import header_value
from tir_dialect.schedule.rewriting.nests import earlier_user, hoist_allocation
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.structure import iterator_extent, shape_of


@dataclass(frozen=True)
class _Plan:
    block: BlockOp
    init: InitOp
    parts: Combination
    epilogue: ElementBlock
    loads: tuple[LoadOp, ...]
    """Where the epilogue loads the result of the reduction."""
    addend: SSAValue
    """What the epilogue combines the result with."""
    allocation: AllocBufferOp
    positions: tuple[int | None, ...]
    """Which iterator of the epilogue each index of the result is."""
    target: tuple[int | None, ...]
    """Which iterator each index of the epilogue's store is."""


@primitive
def fuse_reduction_epilogue(self: ScheduleState, reduction_block: Block | str, epilogue_block: Block | str) -> None:
    """Fuses an epilogue into a reduction: the other operand of the epilogue becomes the initial value.

    rewrite:
        for i: for r: block(init: B[i] = 0; B[i] += A[i, r])
        for i: C[i] = B[i] + bias[i]
        -> for i: for r: block(init: C[i] = bias[i]; C[i] += A[i, r])

    Sums of floating-point numbers are made in another order.

    Refuses:
    1. a reduction without init, or whose init is not neutral for its combination;
    2. a reduction of several results, by several operations, or that is not associative and commutative;
    3. a result that is a parameter or view, or that others use;
    4. an epilogue that does more than store one element, or stores another dtype;
    5. an epilogue that combines the result by another operation (use `reverse_compute_at`), or with what uses it;
    6. an epilogue that does not run once for each element, at its iterators;
    7. inputs and outputs of the epilogue that others use in between.
    """
    blocks = [self.block_named(each) if isinstance(each, str) else each for each in (reduction_block, epilogue_block)]
    plan = _plan(self, *(each.op for each in blocks))
    position = earlier_user(self, plan.epilogue.store.buffer, [plan.block])
    _move_start(self, plan)
    for op in (*plan.parts.accumulators, *plan.parts.repeated, *plan.parts.stores):
        access = op.owner if isinstance(op, SSAValue) else op
        if isinstance(access, LoadOp | StoreOp) and access.buffer is plan.allocation.buffer:
            _retarget(self, plan, access)
    if position is not None:
        hoist_allocation(plan.epilogue.store.buffer, position)
    erase_nest(plan.epilogue.op)
    Rewriter.erase_op(plan.allocation)


def _plan(self: ScheduleState, block: BlockOp, consumer: BlockOp) -> _Plan:
    name = block.block_name.data
    if block.init is None:
        raise self.error(f'block "{name}" has no init')
    parts = combination(self, block)
    if len(parts.stores) != 1 or len(parts.combine) != 1:
        raise self.error(f'block "{name}" does not combine the values of one result by one operation')
    epilogue = element_block(self, consumer)
    allocation = own_allocation(self, parts.stores[0].buffer)
    loads = _loads(self, block, epilogue, allocation.buffer)
    addend = _addend(self, parts.combine[0], epilogue, loads)
    positions = _positions(self, epilogue, loads[0], "loads")
    target = _positions(self, epilogue, epilogue.store, "stores")
    kinds = [epilogue.store.buffer_type.dtype, allocation.buffer_type.dtype]
    if kinds[0] != kinds[1]:
        raise self.error(f'expected block "{consumer.block_name.data}" to store {kinds[1]}, got {kinds[0]}')
    _check_domain(self, consumer, allocation.buffer, positions)
    check_moved_up(self, epilogue, block, allocation.buffer)
    check_neutral(self, name, block.init, parts)
    check_monoid(self, name, parts, commutes=True)
    return _Plan(block, block.init, parts, epilogue, loads, addend, allocation, positions, target)


def _loads(self: ScheduleState, block: BlockOp, epilogue: ElementBlock, buffer: SSAValue) -> tuple[LoadOp, ...]:
    """Where the epilogue loads the result; refuses a result that others use, too."""
    own = tuple(load for load in epilogue.loads if load.buffer is buffer)
    for use in buffer.uses:
        if use.operation not in own and not is_inside(use.operation, block):
            raise self.error(f'{describe(use.operation)} uses buffer "{buffer.name_hint}", too')
    if len(own) != 1 or own[0].parent is not epilogue.op.body.block:
        name = epilogue.op.block_name.data
        raise self.error(f'expected block "{name}" to load buffer "{buffer.name_hint}" once, got {len(own)} loads')
    return own


def _addend(self: ScheduleState, combine: Operation, epilogue: ElementBlock, loads: Sequence[LoadOp]) -> SSAValue:
    op, name = epilogue.store.value.owner, epilogue.op.block_name.data
    value = loads[0].result
    if type(op) is not type(combine) or not isinstance(op, Operation) or list(op.operands).count(value) != 1:
        got = f"'{op.name}'" if isinstance(op, Operation) else "an iterator"
        raise self.error(
            f"expected block \"{name}\" to combine the result by '{combine.name}' with another value, got {got}; "
            "what has to come last can be moved by reverse_compute_at"
        )
    addend = next(operand for operand in op.operands if operand is not value)
    if any(use.operation is not op for use in value.uses):
        raise self.error(f'block "{name}" uses the result in what it combines it with')
    return addend


def _positions(
    self: ScheduleState, epilogue: ElementBlock, access: LoadOp | StoreOp, verb: str
) -> tuple[int | None, ...]:
    found = None if access.lanes is not None else iterators_of_indices(epilogue.op, access.indices)
    if found is None:
        name = epilogue.op.block_name.data
        raise self.error(f'block "{name}" {verb} at other indices than its iterators, each once')
    return tuple(found)


def _check_domain(self: ScheduleState, consumer: BlockOp, buffer: SSAValue, positions: Sequence[int | None]) -> None:
    """Refuses an epilogue that does not run for all elements of the result."""
    name = consumer.block_name.data
    for number, extent in zip(positions, shape_of(buffer), strict=True):
        covered = constant(1) if number is None else iterator_extent(self, consumer, number)
        if self.space.prover.equal(covered, extent) is not True:
            raise self.error(f'block "{name}" covers {covered} of {extent} elements of buffer "{buffer.name_hint}"')
    instances, everything = Instances(self, consumer), range(len(consumer.iterators))
    if not (instances.reach_all(everything) and instances.have_others(everything)):
        raise self.error(f'the loops do not reach all values of the iterators of block "{name}"')


def _move_start(self: ScheduleState, plan: _Plan) -> None:
    """Lets the init store what the epilogue combines with, to where that stores."""
    start = next(op for op in plan.init.body.block.ops if isinstance(op, StoreOp))
    mapping: dict[SSAValue, SSAValue] = {}
    for number, argument in enumerate(plan.epilogue.op.body.block.args):
        mapping[argument] = _index(self, plan, start, number)
    body = plan.epilogue.op.body.block
    for op in body.ops:
        if op not in (*plan.loads, plan.epilogue.store, plan.epilogue.store.value.owner):
            Rewriter.insert_op(op.clone(mapping), InsertPoint.before(start))
    start.operands[0] = mapping.get(plan.addend, plan.addend)
    _retarget(self, plan, start)


def _index(self: ScheduleState, plan: _Plan, access: LoadOp | StoreOp, number: int | None) -> SSAValue:
    """The value of an iterator of the epilogue for the element that an access of the reduction is about."""
    if number is None or number not in plan.positions:
        return header_value(self.func, constant(0))
    return access.indices[plan.positions.index(number)]


def _retarget(self: ScheduleState, plan: _Plan, access: LoadOp | StoreOp) -> None:
    """Lets an access of the result be one of the epilogue's output."""
    indices = [_index(self, plan, access, number) for number in plan.target]
    buffer = plan.epilogue.store.buffer
    new = LoadOp(buffer, indices) if isinstance(access, LoadOp) else StoreOp(access.value, buffer, indices)
    new.location = access.location
    Rewriter.replace_op(access, new)

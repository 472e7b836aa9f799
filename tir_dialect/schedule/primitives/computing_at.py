"""Moving a block under a loop of its consumers or of its producers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.dependence import Dependence, is_loop_variable
from tir_dialect.analysis.init import init_placement
from tir_dialect.analysis.regions import AxisRange, block_regions, read_buffers, written_buffers
from tir_dialect.analysis.structure import ancestors, is_defined_inside, root_buffer
from tir_dialect.dims import constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule.handles import Block, Loop, is_inside
from tir_dialect.schedule.legality.accesses import (
    Access,
    Position,
    accesses_in,
    box_in,
    conflicting_buffers,
    join,
    positions_of,
)
from tir_dialect.schedule.legality.instances import (
    Instances,
    accesses_of,
    check_in_order,
    check_new_instances,
    common_loop,
    is_dense,
)
from tir_dialect.schedule.legality.motion import (
    available,
    check_same_instances,
    describe,
    move_in_any_order,
    own_allocation,
    runs_between,
    touches,
)
from tir_dialect.schedule.nests import (
    check_movable,
    check_no_branch,
    check_plain_conditions,
    insert_point_in,
    move_with_new_loops,
    sink_allocations,
)
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.structure import comes_before, iterator_extent, loops_without, shape_of
from tir_dialect.types import IteratorKind

Positions = Mapping[SSAValue, Sequence[Position | None]]
"""Per buffer that the block writes, which iterator each index is."""


@primitive
def compute_at(
    self: ScheduleState, block: Block, loop: Loop, preserve_unit_loops: bool = False, index: int = -1
) -> None:
    """Moves a block into a loop of its consumers, where it computes what each iteration needs.

    rewrite:
        for i: for j: B[i, j] = f(A[i, j])
        for i: for j: C[i, j] = B[i, j]
        -> for i:
             for j: B[i, j] = f(A[i, j])
             for j: C[i, j] = B[i, j]

    The buffers that the block writes are allocated in the loop. Elements that several iterations need are computed
    several times. Loops of one iteration are left out unless `preserve_unit_loops`. The block comes before its
    first consumer, or after `index` ops of the loop; -2 is the first position that there is. It may write tiles that
    its iterators number, upwards or downwards.

    Refuses:
    1. a block with scan or opaque iterators, that updates what it reads, or with a predicate other than the bounds of
       its iterators;
    2. an ancestor of the block, and a loop in a branch or block that the block is not in;
    3. results that are parameters or views, that others write, or that are no tiles numbered by the iterators;
    4. consumers outside of the loop, or none in it;
    5. inputs that are written before the block would run, and a loop before the block;
    6. instances that do not exist now and may access elements outside of a buffer;
    7. reductions whose loops leave out or repeat instances, or may not begin with the init;
    8. an `index` after the first consumer;
    9. parallel, vectorized or bound loops whose iterations would share elements.
    """
    move = partial(_move, preserve_unit_loops=preserve_unit_loops, index=index)
    move_in_any_order(self, block, loop, move)


def _move(self: ScheduleState, block: Block, loop: Loop, *, preserve_unit_loops: bool, index: int) -> None:
    op, target = block.op, loop.op
    check_movable(self, op, target)
    positions = _store_positions(self, op)
    for buffer in positions:
        own_allocation(self, buffer)
    reads = _consumer_accesses(self, op, target, positions.keys())
    _check_inputs(self, op, target)
    # Refuses what instances that the block has then but not now, or another order of them, would change.
    instances = Instances(self, op, common_loop(op, target))
    everything = range(len(op.iterators))
    check_new_instances(self, instances, instances.extents(everything), everything, accesses_of(op))
    if instances.reduced and not instances.take_all(everything):
        raise self.error(
            f'the loops of block "{op.block_name.data}" do not take its iterators through all values, so elements '
            "are reduced over different ones"
        )
    check_in_order(self, instances)
    ranges = _needed(self, op, target, reads, positions)
    point = insert_point_in(self, target, index, before=[access.op for access in reads])
    move_with_new_loops(self, op, ranges, point, preserve_unit_loops=preserve_unit_loops)
    # what an iteration reads of them it has computed, unless it goes on with a reduction
    reduced = Dependence(is_loop_variable).of_all(it.binding for it in op.iterators if it.kind.is_reduced)
    sink_allocations(positions, target, lambda _buffer, each: each.induction_var not in reduced)


def _store_positions(self: ScheduleState, block: BlockOp) -> dict[SSAValue, list[Position | None]]:
    regions = block_regions(block)
    found: dict[SSAValue, list[Position | None]] = {}
    for region in regions.writes:
        positions = positions_of(block, regions, region, self.func.symbol_names)
        if positions is None:
            raise self.error(
                f'block "{block.block_name.data}" stores to buffer "{region.buffer.name_hint}" at other indices than '
                "its iterators, each once, or multiples of them"
            )
        found[root_buffer(region.buffer)] = positions
    return found


def _consumer_accesses(
    self: ScheduleState, block: BlockOp, target: ForOp, buffers: AbstractSet[SSAValue]
) -> list[Access]:
    found: list[Access] = []
    loop = target.induction_var.name_hint
    for access in accesses_in(self.space, self.func):
        if access.buffer not in buffers or is_inside(access.op, block):
            continue
        name = access.buffer.name_hint
        if access.is_store:
            raise self.error(f'buffer "{name}" is also written by {describe(access.op)}')
        if not is_inside(access.op, target):
            raise self.error(f'{describe(access.op)} reads buffer "{name}" outside of loop "{loop}"')
        found.append(access)
    if not found:
        raise self.error(f'nothing in loop "{loop}" reads what block "{block.block_name.data}" writes')
    return found


def _check_inputs(self: ScheduleState, block: BlockOp, target: ForOp) -> None:
    inputs = read_buffers(block) - written_buffers(block)
    top = loops_without(block, target)[0]
    writer = runs_between(self, block, [top], inputs, writes_only=True)
    writer = writer or next((op for op in top.walk() if touches(op, inputs, writes_only=True)), None)
    name = block.block_name.data
    if writer is not None:
        raise self.error(f'{describe(writer)} writes an input of block "{name}" before it would run')
    if not comes_before(self, block, top):
        raise self.error(f'block "{name}" comes after loop "{target.induction_var.name_hint}"')


def _needed(
    self: ScheduleState, block: BlockOp, target: ForOp, reads: Sequence[Access], positions: Positions
) -> list[AxisRange]:
    """The values of the block's iterators that one iteration of the loop needs."""
    needed: dict[int, list[AxisRange]] = {}
    for buffer, indices in positions.items():
        own = [access for access in reads if access.buffer is buffer]
        box = box_in(self, own, target, shape_of(buffer)) if own else []
        for position, axis in zip(indices, box, strict=False):
            if position is not None:
                needed.setdefault(position.iterator, []).append(position.values(axis))
    instances = Instances(self, block, common_loop(block, target))
    others = {number: instances.ranges([number])[0] for number in instances.reduced}
    return [
        join(self.space.prover, needed[number])
        if number in needed
        else others.get(number, AxisRange(constant(0), iterator_extent(self, block, number)))
        for number in range(len(block.iterators))
    ]


Writes = Mapping[SSAValue, Sequence[Access]]
"""The stores inside of the loop, by buffer."""


@primitive
def reverse_compute_at(
    self: ScheduleState, block: Block, loop: Loop, preserve_unit_loops: bool = False, index: int = -1
) -> None:
    """Moves a block into a loop of its producers, where it consumes what each iteration has produced.

    rewrite:
        for i: for j: B[i, j] = f(A[i, j])
        for i: for j: C[i, j] = B[i, j]
        -> for i:
             for j: B[i, j] = f(A[i, j])
             for j: C[i, j] = B[i, j]

    Buffers that are then used in the loop only are allocated there. A reduction may go on in each iteration of the
    loop, over what that has produced. Loops of one iteration are left out unless `preserve_unit_loops`. The block comes
    to the end of the loop, or after `index` ops of it; -2 is the first position that there is. It may read by
    quotients and remainders, `B[v // 4, v % 4]`, as layouts are changed.

    Refuses:
    1. a block with scan or opaque iterators, that updates what it reads, or with a predicate other than the bounds of
       its iterators;
    2. an ancestor of the block, and a loop after it, or in a branch or block that the block is not in;
    3. inputs of which none is written in the loop, or one outside of blocks, in a branch, or again by others;
    4. inputs that an iteration does not complete: loops that drive reduce iterators of their producers;
    5. elements that other iterations produce, and elements that are scattered;
    6. other instances than the block has now, and reductions whose instances could repeat or come before the init;
    7. other inputs that are written, outputs that are used, and values that are computed, between the loop and the
       block;
    8. an `index` before the producers;
    9. parallel, vectorized or bound loops whose iterations would share elements.
    """
    move = partial(_move_after_producers, preserve_unit_loops=preserve_unit_loops, index=index)
    move_in_any_order(self, block, loop, move, may_refuse_late=block.op.init is not None)


def _move_after_producers(
    self: ScheduleState, block: Block, loop: Loop, *, preserve_unit_loops: bool, index: int
) -> None:
    op, target = block.op, loop.op
    check_movable(self, op, target)
    if not comes_before(self, target, op):
        raise self.error(f'block "{block.name}" comes before loop "{loop.name}"')
    inputs = read_buffers(op)
    writes: dict[SSAValue, list[Access]] = {}
    for access in accesses_in(self.space, target):
        if access.is_store and access.buffer in inputs:
            writes.setdefault(access.buffer, []).append(access)
    if not writes:
        name = target.induction_var.name_hint
        raise self.error(f'nothing in loop "{name}" writes what block "{op.block_name.data}" reads')
    _check_complete(self, op, target, writes)
    _check_others(self, op, target, writes)
    _check_outside_values(self, op, target)
    ranges = available(self, op, _boxes(self, target, writes), loop.name)
    check_same_instances(self, op, target, ranges)
    # Whether an iteration is left with a part of a reduction only.
    domains = [AxisRange(constant(0), iterator_extent(self, op, number)) for number in range(len(ranges))]
    kinds = [iterator.kind for iterator in op.iterators]
    pairs = zip(kinds, ranges, domains, strict=True)
    in_parts, common = (
        any(kind is IteratorKind.REDUCE and found != domain for kind, found, domain in pairs),
        common_loop(op, target),
    )
    point = insert_point_in(self, target, index, after=[access.op for found in writes.values() for access in found])
    move_with_new_loops(self, op, ranges, point, preserve_unit_loops=preserve_unit_loops)
    self.changed()
    # iterations may read what others have written
    sink_allocations(writes, target, lambda buffer, each: buffer not in conflicting_buffers(self.space, each))
    if in_parts:
        # Refuses a reduction in parts, where it has come to, of which one may come twice, or before the init.
        check_in_order(self, Instances(self, op, common))
        if init_placement(op) is None:
            raise self.error(f'the init of block "{op.block_name.data}" could come after a part of the reduction')


def _check_complete(self: ScheduleState, block: BlockOp, target: ForOp, writes: Writes) -> None:
    """Refuses buffers that an iteration does not leave complete in the box that it writes."""
    around = loops_without(block, target)
    variables: set[SSAValue] = {loop.induction_var for loop in around}
    for buffer, accesses in writes.items():
        for access in accesses:
            writers = [op for op in ancestors(access.op) if isinstance(op, BlockOp) and is_inside(op, target)]
            if not writers:
                raise self.error(f"buffer \"{buffer.name_hint}\" is written by a '{access.op.name}' outside of a block")
            for writer in writers:
                check_no_branch(self, writer)
                if any(buffer in conflicting_buffers(self.space, around_loop) for around_loop in around):
                    check_plain_conditions(self, writer)
                _check_not_late(self, writer, buffer, variables)
        _check_other_writers(self, block, buffer, around)


def _check_not_late(self: ScheduleState, writer: BlockOp, buffer: SSAValue, variables: set[SSAValue]) -> None:
    """Refuses a block that writes a buffer in several iterations of loops."""
    dependence = Dependence(is_loop_variable)
    for iterator in writer.iterators:
        late = dependence.of(iterator.binding) & variables
        if late and iterator.kind is not IteratorKind.SPATIAL:
            raise self.error(
                f'buffer "{buffer.name_hint}" is complete only after loop "{min(map(_name, late))}", '
                f'which drives a {iterator.kind.value} iterator of block "{writer.block_name.data}"'
            )


def _name(value: SSAValue) -> str:
    return value.name_hint or "loop"


def _check_other_writers(self: ScheduleState, block: BlockOp, buffer: SSAValue, around: Sequence[ForOp]) -> None:
    target, name = around[-1], buffer.name_hint
    writer = runs_between(self, around[0], [block], {buffer}, writes_only=True)
    if writer is not None:
        raise self.error(f'{describe(writer)} writes buffer "{name}" before block "{block.block_name.data}"')
    for op in self.func.walk():
        if not touches(op, {buffer}, writes_only=True) or is_inside(op, target):
            continue
        if is_inside(op, around[0]) and comes_before(self, target, op):
            hint = target.induction_var.name_hint
            raise self.error(f'{describe(op)} writes buffer "{name}" behind loop "{hint}"')
        if any(is_inside(op, loop) and buffer in conflicting_buffers(self.space, loop) for loop in around):
            raise self.error(f'{describe(op)} writes elements of buffer "{name}" again in another iteration')


def _check_others(self: ScheduleState, block: BlockOp, target: ForOp, writes: Writes) -> None:
    """Refuses if what else the block reads, or what it writes, is touched until it would have run."""
    top, name = loops_without(block, target)[0], block.block_name.data
    outputs = written_buffers(block)
    inputs = read_buffers(block) - writes.keys() - outputs
    writer = runs_between(self, top, [block], inputs, writes_only=True)
    writer = writer or next((op for op in top.walk() if touches(op, inputs, writes_only=True)), None)
    if writer is not None:
        raise self.error(f'{describe(writer)} writes an input of block "{name}" before it')
    user = runs_between(self, top, [block], outputs, writes_only=False)
    user = user or next((op for op in top.walk() if touches(op, outputs, writes_only=False)), None)
    if user is not None:
        raise self.error(f'{describe(user)} uses an output of block "{name}" before it')


def _check_outside_values(self: ScheduleState, block: BlockOp, target: ForOp) -> None:
    """Refuses a block that uses a value that is computed after the loop."""
    for op in block.body.walk():
        for operand in op.operands:
            owner = operand.owner
            if is_defined_inside(operand, block) or not isinstance(owner, Operation):
                continue
            if isinstance(owner.parent_op(), PrimFuncOp) and comes_before(self, owner, target):
                continue
            raise self.error(
                f"block \"{block.block_name.data}\" uses a value of '{owner.name}' that is computed after loop "
                f'"{target.induction_var.name_hint}"'
            )


def _boxes(self: ScheduleState, target: ForOp, writes: Writes) -> dict[SSAValue, list[AxisRange]]:
    """What an iteration of the loop produces of each buffer; refuses a buffer of which it writes scattered elements."""
    found: dict[SSAValue, list[AxisRange]] = {}
    for buffer, accesses in writes.items():
        found[buffer] = box_in(self, accesses, target, shape_of(buffer))
        if not is_dense(self, accesses, target, found[buffer]):
            loop, name = target.induction_var.name_hint, buffer.name_hint
            raise self.error(f'an iteration of loop "{loop}" writes scattered elements of buffer "{name}"')
    return found

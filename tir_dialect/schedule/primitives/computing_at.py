"""Moving a block under a loop of its consumers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from xdsl.ir import SSAValue

from tir_dialect.analysis.dependence import Dependence, is_loop_variable
from tir_dialect.analysis.regions import AxisRange, block_regions
from tir_dialect.analysis.structure import root_buffer
from tir_dialect.dims import constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.handles import Block, Loop, is_inside
from tir_dialect.schedule.legality.accesses import Access, accesses_in, read_buffers, written_buffers
from tir_dialect.schedule.legality.boxes import Position, box_in, join, positions_of
from tir_dialect.schedule.legality.elementwise import own_allocation
from tir_dialect.schedule.legality.instances import Instances, check_in_order, common_loop
from tir_dialect.schedule.legality.motion import describe, move_in_any_order, runs_between, touches
from tir_dialect.schedule.legality.safe_accesses import accesses_of, check_new_instances
from tir_dialect.schedule.rewriting.nests import check_movable, insert_point_in
from tir_dialect.schedule.rewriting.renest import move_with_new_loops, sink_allocations
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.structure import comes_before, iterator_extent, loops_without, shape_of

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
    _check_instances(self, op, target)
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


def _check_instances(self: ScheduleState, block: BlockOp, target: ForOp) -> None:
    """Refuses what instances that the block has then but not now, or another order of them, would change."""
    instances = Instances(self, block, common_loop(block, target))
    everything = range(len(block.iterators))
    check_new_instances(self, instances, instances.extents(everything), everything, accesses_of(block))
    if instances.reduced and not instances.take_all(everything):
        raise self.error(
            f'the loops of block "{block.block_name.data}" do not take its iterators through all values, so elements '
            "are reduced over different ones"
        )
    check_in_order(self, instances)


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

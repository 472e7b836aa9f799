"""Whether a block stays inside of its buffers in instances that it did not have before."""

from __future__ import annotations

from collections.abc import Sequence

from tir_dialect.analysis.index_space import IndexSpace, Variable, extremes
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.schedule.legality.instances import Instances
from tir_dialect.schedule.state import ScheduleState


def check_new_instances(
    self: ScheduleState,
    instances: Instances,
    extents: Sequence[Dim],
    numbers: Sequence[int],
    accesses: Sequence[LoadOp | StoreOp],
) -> None:
    """Refuses to run accesses of a block wherever its iterators are below `extents` if they might leave a buffer there.

    They do not if there is an instance now for all of these values of the iterators `numbers`, which they depend on.
    """
    block, equal = instances.block, self.space.prover.equal
    domain = zip(instances.extents(numbers), numbers, strict=True)
    is_same = all(equal(own, extents[number]) is True for own, number in domain)
    if is_same and instances.take_all(numbers) and instances.have_others(numbers):
        return
    # An access that is not known to be in its buffer while the iterators of the block are below the
    # extents.
    space = IndexSpace(block)
    variables = [
        Variable(argument, space.variable(argument).dim, constant(0), extent)
        for argument, extent in zip(block.body.block.args, extents, strict=True)
    ]
    access = next((op for op in accesses if not _is_inside(space, op, variables)), None)
    if access is not None:
        raise self.error(
            f'block "{block.block_name.data}" would run for elements for which it may not run now, and may access '
            f'buffer "{access.buffer.name_hint}" outside of its shape there'
        )


def accesses_of(block: BlockOp) -> list[LoadOp | StoreOp]:
    """The loads and stores of a block."""
    return [op for op in block.body.walk() if isinstance(op, LoadOp | StoreOp)]


def _is_inside(space: IndexSpace, op: LoadOp | StoreOp, variables: Sequence[Variable]) -> bool:
    for index, extent in zip(op.indices, op.buffer_type.shape, strict=True):
        dim = space.dim_of(index)
        found = None if dim is None else extremes(dim, variables, space.prover)
        if found is None or op.lanes is not None:
            return False
        if space.less_equal(0, found.low) is not True or space.prover.less(found.high, extent) is not True:
            return False
    return True

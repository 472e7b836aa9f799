"""Whether spatial iterators are what they are called, where `distances` knows better."""

from __future__ import annotations

from collections.abc import Sequence

from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.legality.accesses import described
from tir_dialect.schedule.legality.distances import Distance, distances
from tir_dialect.schedule.legality.instances import Instances
from tir_dialect.schedule.state import ScheduleState


def check_apart(self: ScheduleState, loop: ForOp, block: BlockOp) -> None:
    """ScheduleError if instances of the block in different iterations of the loop share elements."""
    outer = loop.parent_op()
    instances = Instances(self, block, outer if isinstance(outer, ForOp) else None)
    for found in distances(Instances(self, block)):
        if loop not in instances.idle(found.steps) and _exist(instances, found):
            name = loop.induction_var.name_hint
            raise self.error(f'the iterations of loop "{name}" are not independent: {_text(block, found)}')


def check_order(self: ScheduleState, block: BlockOp, loops: Sequence[ForOp], order: Sequence[ForOp]) -> None:
    """ScheduleError if of two instances that share elements another may come first in the order of loops.

    Without an order, instances come in any.
    """
    instances = Instances(self, block)
    for found in distances(instances):
        if _exist(instances, found) and not (order and _keeps(instances, found, loops, order)):
            raise self.error(f"the order of loops matters: {_text(block, found)}")


def _exist(instances: Instances, found: Distance) -> bool:
    """Whether there may be instances that are so far apart."""
    less_equal = instances.state.space.less_equal
    for number, step in found.steps.items():
        reach = instances.box([number])[0].extent
        if any(less_equal(reach, least) is True for least in ((step, -step) if found.always else (1,))):
            return False
    return True


def _keeps(instances: Instances, found: Distance, loops: Sequence[ForOp], order: Sequence[ForOp]) -> bool:
    """Whether an order of loops keeps that of the instances.

    It does if the loops that move the iterators (which ones, is known about steps that are always the same) stay in
    their order, and if the iterators are loop variables that grow together.
    """
    signs = {step.constant_value is not None and step.constant_value > 0 for step in found.steps.values()}
    if found.always and len(signs) == 1 and all(_is_plain(instances, number) for number in found.steps):
        return True
    idle = instances.idle(found.steps if found.always else range(len(instances.block.iterators)))
    before, after = ([loop for loop in some if loop not in idle] for some in (loops, order))
    return before == after


def _is_plain(instances: Instances, number: int) -> bool:
    binding = instances.binding(number)
    return binding is not None and binding.as_symbol is not None


def _text(block: BlockOp, found: Distance) -> str:
    names = {number: block.body.block.args[number].name_hint for number in found.steps}
    steps = (f'{_length(step)} in "{names[number]}"' for number, step in found.steps.items())
    return (
        f'instances of block "{block.block_name.data}" that are {" and ".join(steps)} apart share elements of '
        f"{described(found.buffer)}"
    )


def _length(step: Dim) -> str:
    return str(step if step.constant_value is None else abs(step.constant_value))

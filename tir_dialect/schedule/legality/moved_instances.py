"""Whether a block that is moved into other loops runs for the same values of its iterators as before."""

from __future__ import annotations

from collections.abc import Sequence

from tir_dialect.analysis.determination import Axis
from tir_dialect.analysis.regions import AxisRange
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.legality.accesses import Access
from tir_dialect.schedule.legality.boxes import box_in
from tir_dialect.schedule.legality.instances import Instances, check_in_order, common_loop, is_dense
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure.extents import iterator_extent


def check_same_instances(self: ScheduleState, block: BlockOp, loop: ForOp, ranges: Sequence[AxisRange]) -> None:
    """Refuses to let a block run for `ranges` in a loop where that makes other instances than it has now.

    Both are compared in an iteration of the innermost loop around both. A reduction has to run from its init on.
    """
    position = loop.body.block.last_op
    if not block.iterators or position is None:
        return
    common = common_loop(block, loop)
    extents = [iterator_extent(self, block, number) for number in range(len(block.iterators))]
    # as if iterators were the indices of a buffer
    bindings = tuple(Axis(self.space.dim_of(it.binding)) for it in block.iterators)
    before = [Access(block, block.bindings[0], True, bindings)]
    after = [Access(position, block.bindings[0], True, tuple(Axis(axis.lower, axis.extent) for axis in ranges))]
    boxes = [box_in(self, instances, common, extents) for instances in (before, after)]
    name, hint = block.block_name.data, loop.induction_var.name_hint
    if not all(_is_same(self, *pair) for pair in zip(*boxes, strict=True)):
        raise self.error(
            f'block "{name}" runs for {_text(boxes[0])} of its iterators, in loop "{hint}" it would for '
            f"{_text(boxes[1])}; the loops of producer and consumer have to cover the same elements"
        )
    for instances, box in zip((before, after), boxes, strict=True):
        if not is_dense(self, instances, common, box):
            raise self.error(
                f'block "{name}" may not run for all of {_text(box)}, so in loop "{hint}" it may have other instances'
            )
    check_in_order(self, Instances(self, block, common))


def _is_same(self: ScheduleState, one: AxisRange, other: AxisRange) -> bool:
    equal = self.space.prover.equal
    return equal(one.lower, other.lower) is True and equal(one.extent, other.extent) is True


def _text(box: Sequence[AxisRange]) -> str:
    return f"[{', '.join(map(str, box))}]"

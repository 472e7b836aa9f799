"""What blocks declare to read, where what they read is replaced."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.structure import ancestors, is_inside
from tir_dialect.dims import constant
from tir_dialect.ops.accesses import RegionAxis
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.ops.regions import ReadsOp
from tir_dialect.schedule.legality.program_order import describe
from tir_dialect.schedule.rewriting.materialize import header_value
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure.extents import shape_of


def check_declared(self: ScheduleState, regions: Sequence[ReadsOp], loads: Sequence[LoadOp]) -> None:
    """Refuses a block that declares to read more of a buffer than its loads of it show."""
    for region in regions:
        block = region.parent_op()
        own = [load for load in loads if any(op is block for op in ancestors(load))]
        points = all(axis.upper is None for axis in region.axes)
        moving = [load for load in own if isinstance(block, BlockOp) and not _is_element(block, load)]
        if not own or not (points or moving):
            raise self.error(
                f'{describe(region)} declares to read more of buffer "{region.buffer.name_hint}" than it loads, '
                "expected the elements of its loads; leave the declaration out"
            )


def redeclare(self: ScheduleState, regions: Sequence[ReadsOp], loads: Sequence[LoadOp]) -> None:
    """Replaces what blocks declare to read of one buffer by what `loads`, which came instead of it, read in them."""
    for region in regions:
        block = region.parent_op()
        if isinstance(block, BlockOp):
            for load in loads:
                if block in ancestors(load):
                    read = ReadsOp(load.buffer, _axes(self, block, load))
                    near = load.parent is block.body.block
                    Rewriter.insert_op(read, InsertPoint.before(load) if near else InsertPoint.at_end(block.body.block))
        Rewriter.erase_op(region)


def _axes(self: ScheduleState, block: BlockOp, load: LoadOp) -> list[RegionAxis]:
    """The element that is loaded, or all elements where its position is known only in a loop or branch of the block."""
    if _is_element(block, load):
        return [RegionAxis(index, None) for index in load.indices]
    ends = [header_value(self.func, extent) for extent in shape_of(load.buffer)]
    return [RegionAxis(header_value(self.func, constant(0)), end) for end in ends]


def _is_element(block: BlockOp, load: LoadOp) -> bool:
    """Whether all indices of a load are known at the end of a block."""
    return all(_is_known(block, index) for index in load.indices)


def _is_known(block: BlockOp, value: SSAValue) -> bool:
    """Whether a value is known at the end of a block."""
    home = value.owner.parent if isinstance(value.owner, Operation) else value.owner
    return home is block.body.block or not is_inside(value, block)

"""New nests of loops around new blocks."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.regions import AxisRange
from tir_dialect.dims import constant
from tir_dialect.name_hints import as_name_hint
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.schedule.rewriting.materialize import Materializer
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure.extents import shape_of
from tir_dialect.types import BufferType, IteratorKind


def insert_nest(
    self: ScheduleState,
    block: BlockOp,
    ranges: Sequence[AxisRange],
    hints: Sequence[str],
    point: InsertPoint,
    location: LocationAttr = UNKNOWN_LOC,
) -> None:
    """Puts a new block at `point` with a loop per iterator, which runs over the range and binds the iterator."""
    emitter = Materializer(self.func, self.space, point)
    outer: Operation = block
    for axis, hint, number in reversed(list(zip(ranges, hints, range(len(ranges)), strict=True))):
        upper = emitter.emit(axis.lower + axis.extent)
        lower = emitter.emit(axis.lower) if axis.lower.terms else None
        loop = ForOp(upper, lower=lower, name_hint=hint)
        block.operands[number] = loop.induction_var
        loop.body.block.add_op(outer)
        outer = loop
    for op in (block, *(op for op in outer.walk() if isinstance(op, ForOp))):
        op.location = location
    Rewriter.insert_op(outer, point)


def copy_block(
    self: ScheduleState, name: str, source: SSAValue, target: SSAValue, box: Sequence[AxisRange], point: InsertPoint
) -> BlockOp:
    """A block, with its loops at `point`, that copies a box of one buffer to the same position of another."""
    emitter = Materializer(self.func, self.space, point)
    extents = [emitter.emit(extent) for extent in shape_of(target)]
    hints = [f"ax{axis}" for axis in range(len(box))]
    iterators = [(IteratorKind.SPATIAL, extent, extent) for extent in extents]
    block = BlockOp(name, iterators, name_hints=[f"v{hint}" for hint in hints])
    indices = block.body.block.args
    load = LoadOp(source, indices)
    block.body.block.add_ops([load, StoreOp(load.result, target, indices)])
    insert_nest(self, block, box, hints, point)
    return block


def whole(buffer: SSAValue) -> list[AxisRange]:
    """The box of all elements."""
    return [AxisRange(constant(0), extent) for extent in shape_of(buffer)]


def allocate_like(self: ScheduleState, buffer: SSAValue, name: str, scope: str, point: InsertPoint) -> SSAValue:
    """A new buffer with the shape and dtype of another, in row-major order."""
    kind = SSAValue.get(buffer, type=BufferType).type
    op = AllocBufferOp(BufferType(kind.shape, kind.dtype, scope=scope))
    op.buffer.name_hint = as_name_hint(name)
    Rewriter.insert_op(op, point)
    return op.buffer

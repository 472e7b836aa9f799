"""The common parts of `compute_at` and `reverse_compute_at`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from tir_dialect.analysis.structure import ancestors
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule.errors import ScheduleError
from tir_dialect.schedule.handles import is_inside
from tir_dialect.schedule.legality.accesses import read_buffers, written_buffers
from tir_dialect.schedule.rewriting.edits import statements
from tir_dialect.schedule.rewriting.renest import check_no_branch, check_plain_conditions
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.types import BufferType, IteratorKind


def loops_without(block: BlockOp, loop: ForOp) -> list[ForOp]:
    """`loop` and the loops around it that do not hold the block, outermost first."""
    found = [loop]
    for op in ancestors(loop):
        if is_inside(block, op):
            break
        if isinstance(op, ForOp):
            found.insert(0, op)
    return found


def check_movable(self: ScheduleState, block: BlockOp, loop: ForOp) -> None:
    """ScheduleError for blocks that cannot be moved, and loops that no block can be moved into."""
    name, target = block.block_name.data, loop.induction_var.name_hint
    if is_inside(block, loop):
        raise self.error(f'block "{name}" is already inside of loop "{target}"')
    for iterator in block.iterators:
        if iterator.kind not in (IteratorKind.SPATIAL, IteratorKind.REDUCE):
            raise self.error(
                f'block "{name}" has an iterator of kind {iterator.kind.value}, expected spatial and reduce ones only'
            )
    if block.init is None and not read_buffers(block).isdisjoint(written_buffers(block)):
        raise self.error(f'block "{name}" updates what it reads, so it may not run more often')
    for op in ancestors(loop):
        if is_inside(block, op):
            break
        if isinstance(op, IfOp | BlockOp):
            raise self.error(f'loop "{target}" stands in a \'{op.name}\' without block "{name}"')
    check_no_branch(self, block)
    check_plain_conditions(self, block)


def place_in(
    self: ScheduleState, loop: ForOp, index: int, *, after: Sequence[Operation] = (), before: Sequence[Operation] = ()
) -> InsertPoint:
    """The place for a block in a loop: the last one that there is for -1, the first one for -2, or behind `index` ops.

    It is behind the ops that hold `after`, and in front of those that hold `before`; refuses another `index`.
    """
    ops = [op for op in statements(loop.body.block) if not isinstance(op, AllocBufferOp)]
    first = max((number + 1 for number, op in enumerate(ops) if _holds_any(op, after)), default=0)
    last = min((number for number, op in enumerate(ops) if _holds_any(op, before)), default=len(ops))
    number = {-1: last, -2: first}.get(index, index)
    if not first <= number <= last:
        name = loop.induction_var.name_hint
        raise self.error(f'expected an index of {first} to {last}, or -1 or -2, in loop "{name}", got {index}')
    return InsertPoint.at_end(loop.body.block) if number == len(ops) else InsertPoint.before(ops[number])


def _holds_any(op: Operation, others: Sequence[Operation]) -> bool:
    return any(is_inside(other, op) for other in others)


def comes_before(self: ScheduleState, first: Operation, second: Operation) -> bool:
    """Whether `first` starts before `second` in the text."""
    return next(op for op in self.func.walk() if op is first or op is second) is first


def shape_of(buffer: SSAValue) -> tuple[Dim, ...]:
    """The extents of a buffer."""
    return buffer.type.shape if isinstance(buffer.type, BufferType) else ()


def iterator_extent(self: ScheduleState, block: BlockOp, number: int) -> Dim:
    """The extent of an iterator; refuses one that is no expression of sizes and iterators of blocks around."""
    extent = self.space.dim_of(block.extents[number])
    if extent is None:
        raise _extent_error(self, block, number, "comes from memory")
    return extent


def sized_extent(self: ScheduleState, block: BlockOp, number: int) -> Dim:
    """The extent of an iterator, of which a buffer may be made; refuses one that is no expression of sizes."""
    extent = iterator_extent(self, block, number)
    if not extent.symbols <= set(self.func.symbol_names):
        raise _extent_error(self, block, number, "depends on a block around")
    return extent


def _extent_error(self: ScheduleState, block: BlockOp, number: int, found: str) -> ScheduleError:
    hint, name = block.iterators[number].value.name_hint, block.block_name.data
    return self.error(f'the extent of iterator "{hint}" of block "{name}" {found}, expected an expression of sizes')

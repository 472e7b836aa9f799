"""Loops that hold a block, extents of buffers and iterators, and conditions of blocks as comparisons."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import ancestors
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.schedule.handles import ScheduleError, is_inside
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.types import BufferType


def loops_without(block: BlockOp, loop: ForOp) -> list[ForOp]:
    """`loop` and the loops around it that do not hold the block, outermost first."""
    found = [loop]
    for op in ancestors(loop):
        if is_inside(block, op):
            break
        if isinstance(op, ForOp):
            found.insert(0, op)
    return found


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


@dataclass(frozen=True)
class Less:
    """The condition `lhs < rhs`."""

    lhs: Dim
    rhs: Dim


def conditions_of(space: IndexSpace, block: BlockOp) -> list[Less | SSAValue]:
    """The conditions that together are the condition of a block; a value is one that is no comparison of dimensions."""
    return [] if block.condition is None else conjuncts(space, block.condition)


def conjuncts(space: IndexSpace, condition: SSAValue) -> list[Less | SSAValue]:
    """The conditions that all hold where one does; a value is one that is no comparison of dimensions."""
    found: list[Less | SSAValue] = []
    pending = [condition]
    while pending:
        value = pending.pop()
        owner = value.owner
        if isinstance(owner, arith.AndIOp):
            pending += (owner.rhs, owner.lhs)
            continue
        less = _less(space, owner) if isinstance(owner, arith.CmpiOp) else None
        found.append(value if less is None else less)
    return found


def _less(space: IndexSpace, op: arith.CmpiOp) -> Less | None:
    lhs, rhs = space.dim_of(op.lhs), space.dim_of(op.rhs)
    if lhs is None or rhs is None:
        return None
    match arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]:
        case "slt":
            return Less(lhs, rhs)
        case "sgt":
            return Less(rhs, lhs)
        case "sle":
            return Less(lhs, rhs + 1)
        case "sge":
            return Less(rhs - 1, lhs)
        case _:
            return None

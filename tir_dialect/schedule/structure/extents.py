"""The extents of buffers and iterators as dimensions."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.schedule.errors import ScheduleError
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.types import BufferType


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

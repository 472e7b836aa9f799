"""Buffers that are only loaded from and stored to."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.structure import root_buffer
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.calls import ForeignCallOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.ops.regions import ReadsOp, WritesOp
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.types import BufferType


def check_plain_uses(self: ScheduleState, block: BlockOp, buffer: SSAValue, *, calls: bool = False) -> None:
    """Refuses a block that uses the memory of a buffer otherwise than by loads and stores, which regions may sum up.

    Loads and stores of a view of it are no such uses.

    With `calls`, a buffer without gaps may be passed to foreign functions.
    """
    if (op := other_use(block, buffer, calls=calls)) is not None:
        what = "through a view" if buffer not in op.operands else f"in '{op.name}'"
        raise self.error(
            f'block "{block.block_name.data}" uses buffer "{buffer.name_hint}" {what}, expected loads and stores only'
        )


def other_use(block: BlockOp, buffer: SSAValue, *, calls: bool = False) -> Operation | None:
    """An op in a block that uses the memory of a buffer otherwise than `check_plain_uses` allows."""
    plain: tuple[type[Operation], ...] = (LoadOp, StoreOp, ReadsOp, WritesOp)
    if calls and isinstance(buffer.type, BufferType) and buffer.type.is_compact:
        plain = (*plain, ForeignCallOp)
    memory = root_buffer(buffer)
    for op in block.body.walk():
        used = [operand for operand in op.operands if root_buffer(operand) is memory]
        if used and (any(operand is not buffer for operand in used) or not isinstance(op, plain)):
            return op
    return None

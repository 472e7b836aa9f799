"""Finding loops and blocks."""

from __future__ import annotations

from collections.abc import Callable

from tir_dialect.analysis.regions import read_buffers, written_buffers
from tir_dialect.analysis.structure import child_blocks, enclosing_loops
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule.edits import blocks_in, scope_of
from tir_dialect.schedule.handles import Block, Loop
from tir_dialect.schedule.state import ScheduleState, primitive, query


@query
def work_on(self: ScheduleState, function: str) -> None:
    """Selects the function that names refer to; the default is `@main`, or the only function of the module.

    Refuses:
    1. a name that no function of the module has.
    """
    func = self.functions.named.get(function)
    if func is None:
        raise self.error(f"expected the name of a function, got @{function}; {self.functions.names}")
    self.functions.current = func


@primitive
def enter_postproc(self: ScheduleState) -> None:
    """Marks the start of postprocessing: `Trace.simplified` and `apply_to_schedule` may drop what follows."""


@query
def get_block(self: ScheduleState, name: str) -> Block:
    """The block called `name`.

    "root" is the function itself, as an argument of `get_child_blocks` and `get_output_blocks`.

    Refuses:
    1. a name that no block has.
    """
    return self.block_named(name)


@query
def get_blocks(self: ScheduleState) -> tuple[Block, ...]:
    """All blocks, in program order, outer ones first."""
    return tuple(self.block(op) for op in blocks_in(self.func))


@query
def get_loops(self: ScheduleState, block: Block) -> tuple[Loop, ...]:
    """The loops around a block, up to the next block or the function, outermost first."""
    return tuple(self.loop(op) for op in enclosing_loops(block.op))


@query
def get_producers(self: ScheduleState, block: Block) -> tuple[Block, ...]:
    """The sibling blocks that write what a block reads, in program order."""
    reads = read_buffers(block.op)
    return _beside(self, block.op, lambda other: not reads.isdisjoint(written_buffers(other)))


@query
def get_consumers(self: ScheduleState, block: Block) -> tuple[Block, ...]:
    """The sibling blocks that read what a block writes, in program order."""
    writes = written_buffers(block.op)
    return _beside(self, block.op, lambda other: not writes.isdisjoint(read_buffers(other)))


def _beside(self: ScheduleState, block: BlockOp, wanted: Callable[[BlockOp], bool]) -> tuple[Block, ...]:
    scope = scope_of(block)
    others = (op for op in blocks_in(scope) if op is not block and scope_of(op) is scope)
    return tuple(self.block(op) for op in others if wanted(op))


@query
def get_output_blocks(self: ScheduleState, block: Block | None = None) -> tuple[Block, ...]:
    """The blocks of the function, or inside a block, that write parameters or buffers allocated outside it."""
    scope = self.func if block is None else block.op
    own = {op.buffer for op in scope.walk() if isinstance(op, AllocBufferOp)}
    return tuple(self.block(op) for op in blocks_in(scope) if written_buffers(op) - own)


@query
def get_child_blocks(self: ScheduleState, block_or_loop: Block | Loop | None = None) -> tuple[Block, ...]:
    """The blocks immediately inside a block, a loop or the function, in program order."""
    return tuple(self.block(op) for op in child_blocks(self.func if block_or_loop is None else block_or_loop.op))

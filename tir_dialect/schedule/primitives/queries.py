"""Finding loops and blocks."""

from __future__ import annotations

from tir_dialect.analysis.structure import enclosing_loops
from tir_dialect.schedule.edits import blocks_in
from tir_dialect.schedule.handles import Block, Loop
from tir_dialect.schedule.state import ScheduleState, query


@query
def get_block(self: ScheduleState, name: str) -> Block:
    """The block called `name`. Refuses if there is none, naming those there are."""
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
def get_child_blocks(self: ScheduleState, block_or_loop: Block | Loop) -> tuple[Block, ...]:
    """The blocks inside a block or loop, in program order."""
    return tuple(self.block(op) for op in blocks_in(block_or_loop.op))

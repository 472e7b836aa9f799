"""Copies of buffers that are made inside of a loop."""

from __future__ import annotations

from collections.abc import Callable

from tir_dialect.schedule.handles import Block, Loop
from tir_dialect.schedule.primitives.caching import cache_read, cache_write
from tir_dialect.schedule.primitives.computing_at import compute_at
from tir_dialect.schedule.primitives.reverse_computing_at import reverse_compute_at
from tir_dialect.schedule.rewriting.buffers import Which
from tir_dialect.schedule.state import ScheduleState, primitive


@primitive
def read_at(self: ScheduleState, loop: Loop, block: Block, read_buffer_index: Which, storage_scope: str) -> Block:
    """Copies what a block reads in each iteration of a loop: `cache_read`, then `compute_at` of the copy.

    rewrite:
        for i: for j: C[i, j] = f(A[i, j])
        -> for i:
             for x: A_local[i, x] = A[i, x]
             for j: C[i, j] = f(A_local[i, j])

    Returns the block that copies.

    Refuses:
    1. what `cache_read` refuses;
    2. copies that `compute_at` would not move into the loop.
    """

    def copied(schedule: ScheduleState) -> Block:
        copy = cache_read(schedule, block, read_buffer_index, storage_scope, [block])
        compute_at(schedule, copy, loop)
        return copy

    return _tried(self, copied)


@primitive
def write_at(self: ScheduleState, loop: Loop, block: Block, write_buffer_index: Which, storage_scope: str) -> Block:
    """Copies what a block writes in each iteration of a loop: `cache_write`, then `reverse_compute_at` of the copy.

    rewrite:
        for i: for j: C[i, j] = f(A[i, j])
        -> for i:
             for j: C_local[i, j] = f(A[i, j])
             for x: C[i, x] = C_local[i, x]

    Returns the block that copies.

    Refuses:
    1. what `cache_write` refuses;
    2. copies that `reverse_compute_at` would not move into the loop.
    """

    def copied(schedule: ScheduleState) -> Block:
        copy = cache_write(schedule, block, write_buffer_index, storage_scope)
        reverse_compute_at(schedule, copy, loop)
        return copy

    return _tried(self, copied)


def _tried(self: ScheduleState, action: Callable[[ScheduleState], Block]) -> Block:
    """What several primitives give, of which none runs here where another one would refuse."""
    self.as_refusal(lambda: action(self.copy()))
    return action(self)

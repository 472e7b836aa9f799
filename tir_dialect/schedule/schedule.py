"""The schedule: a prim_func and the primitives that transform it."""

from __future__ import annotations

from tir_dialect.schedule.primitives import (
    blockizing,
    caching,
    computing_at,
    fusing,
    inlining,
    kinds,
    layout,
    ordering,
    padding,
    partition,
    queries,
    reductions,
    reindexing,
    reverse_computing_at,
    rfactor,
    splitting,
    storage,
    tensorizing,
)
from tir_dialect.schedule.state import ScheduleState


class Schedule(ScheduleState):
    """Transforms a prim_func in place, step by step.

    ```python
    sch = Schedule(func)
    i, j, r = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, [None, 8])
    sch.vectorize(i1)
    print(sch.trace.as_python())
    ```

    A primitive raises ScheduleError, and leaves the function as it is, if it would change what the function computes.
    """

    get_block = queries.get_block
    get_sblock = queries.get_block
    get_blocks = queries.get_blocks
    get_loops = queries.get_loops
    get_child_blocks = queries.get_child_blocks

    split = splitting.split
    fuse = fusing.fuse
    reorder = ordering.reorder
    tile = ordering.tile
    add_unit_loop = ordering.add_unit_loop
    loop_partition = partition.loop_partition
    merge = partition.merge

    parallel = kinds.parallel
    vectorize = kinds.vectorize
    unroll = kinds.unroll
    bind = kinds.bind
    annotate = kinds.annotate
    unannotate = kinds.unannotate

    compute_inline = inlining.compute_inline
    reverse_compute_inline = inlining.reverse_compute_inline
    compute_at = computing_at.compute_at
    reverse_compute_at = reverse_computing_at.reverse_compute_at

    cache_read = caching.cache_read
    cache_write = caching.cache_write
    reindex = reindexing.reindex
    set_scope = storage.set_scope
    storage_align = storage.storage_align

    decompose_reduction = reductions.decompose_reduction
    rfactor = rfactor.rfactor

    transform_layout = layout.transform_layout
    pad_einsum = padding.pad_einsum
    blockize = blockizing.blockize
    tensorize = tensorizing.tensorize

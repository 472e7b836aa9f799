"""The schedule: a prim_func and the primitives that transform it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.schedule.handles import Block, Loop
from tir_dialect.schedule.primitives import (
    annotating,
    blockizing,
    caching,
    computing_at,
    inlining,
    layout,
    loops,
    ordering,
    padding,
    queries,
    reductions,
    reindexing,
    rfactor,
    tensorizing,
)
from tir_dialect.schedule.state import ScheduleState

ELSEWHERE = {
    "get_sref": "handles have the operation as op",
    "set_axis_separator": "memory has one dimension",
    "unsafe_hide_buffer_access": "use annotate_buffer_access, which checks what can be checked",
}
"""Primitives of TVM that do not exist here, and their replacements."""


class Schedule(ScheduleState):
    """Transforms a prim_func, or the prim_funcs of a module, in place. Methods and arguments are those of TVM.

    ```python
    sch = Schedule(func)
    i, j, r = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, [None, 8])
    sch.vectorize(i1)
    print(sch.trace.as_python())
    ```

    A primitive that would change what the function computes raises ScheduleError and leaves the function unchanged; its
    docstring says when. All of them refuse:

    1. handles of loops and blocks that are no longer in the function, or not in the same block;
    2. arguments of other types, and names and numbers of blocks, buffers and functions that are not there;
    3. if they change the order of accesses, functions whose parameters may overlap, or that take addresses of elements.
    """

    @property
    def mod(self) -> ModuleOp:
        """The module that is scheduled; for a function outside any module, a new module with a copy of it."""
        root = self.functions.root
        around = root if isinstance(root, ModuleOp) else root.parent_op()
        return around if isinstance(around, ModuleOp) else ModuleOp([root.clone()])

    def get(self, handle: Block | Loop) -> BlockOp | ForOp:
        """The operation of a handle; ScheduleError if it is no longer in the function."""
        own = self.own_handle(handle)
        self.check(own)
        return own.op

    def remove_rv(self, handle: Block | Loop) -> None:
        """Invalidates a handle; a later query gives the loop or block a new one."""
        own = self.own_handle(handle)
        self.check(own)
        self.forget(own)

    @property
    def func_working_on(self) -> str | None:
        """The name of the current function; `None` if none of several has been selected."""
        current = self.functions.current
        return None if current is None else current.sym_name.data

    def seed(self, seed: int) -> None:
        """Seeds the random number generator of the sampling primitives."""
        self.random.seed(seed)

    def fork_seed(self) -> int:
        """A new seed, for another schedule that draws other samples."""
        return self.random.getrandbits(31)

    def show(self) -> None:
        """Prints the function or module, and the trace."""
        print(str(self.functions.root))
        self.trace.show()

    work_on = queries.work_on
    enter_postproc = queries.enter_postproc
    get_block = queries.get_block
    get_sblock = queries.get_block
    get_blocks = queries.get_blocks
    get_loops = queries.get_loops
    get_child_blocks = queries.get_child_blocks
    get_producers = queries.get_producers
    get_consumers = queries.get_consumers
    get_output_blocks = queries.get_output_blocks

    sample_categorical = queries.sample_categorical
    sample_perfect_tile = queries.sample_perfect_tile
    sample_partitioned_tile = queries.sample_partitioned_tile
    sample_compute_location = queries.sample_compute_location

    split = loops.split
    fuse = loops.fuse
    reorder = ordering.reorder
    reorder_block_iter_var = ordering.reorder_block_iter_var
    tile = ordering.tile
    add_unit_loop = ordering.add_unit_loop
    loop_partition = loops.loop_partition
    merge = loops.merge

    parallel = annotating.parallel
    vectorize = annotating.vectorize
    unroll = annotating.unroll
    bind = annotating.bind
    annotate = annotating.annotate
    unannotate = annotating.unannotate

    compute_inline = inlining.compute_inline
    reverse_compute_inline = inlining.reverse_compute_inline
    compute_at = computing_at.compute_at
    reverse_compute_at = computing_at.reverse_compute_at
    rolling_buffer = layout.rolling_buffer

    cache_read = caching.cache_read
    cache_write = caching.cache_write
    cache_inplace = caching.cache_inplace
    cache_index = caching.cache_index
    read_at = caching.read_at
    write_at = caching.write_at
    reindex = reindexing.reindex
    reindex_cache_read = reindexing.reindex_cache_read
    reindex_cache_write = reindexing.reindex_cache_write
    annotate_buffer_access = annotating.annotate_buffer_access
    set_scope = annotating.set_scope
    storage_align = annotating.storage_align
    unsafe_set_dtype = annotating.unsafe_set_dtype

    decompose_reduction = reductions.decompose_reduction
    rfactor = rfactor.rfactor
    fuse_reduction_epilogue = reductions.fuse_reduction_epilogue

    transform_layout = layout.transform_layout
    transform_block_layout = layout.transform_block_layout
    pad_einsum = padding.pad_einsum
    can_decompose_padding = padding.can_decompose_padding
    decompose_padding = padding.decompose_padding
    blockize = blockizing.blockize
    tensorize = tensorizing.tensorize

    def __repr__(self) -> str:
        names = ", ".join(f"@{name}" for name in self.functions.named)
        return f"Schedule({names})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """The error for a primitive of TVM that does not exist here names its replacement."""
            if name in ELSEWHERE:
                raise AttributeError(f'there is no primitive "{name}": {ELSEWHERE[name]}')
            raise AttributeError(f'a schedule has no attribute "{name}"', name=name, obj=self)

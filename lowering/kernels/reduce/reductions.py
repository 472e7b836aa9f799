"""Generates a reduction by the form that suits its axes, and partitions it among threads.

With kept axes, lanes run along a kept axis if that is contiguous, otherwise along a reduced one. Threads have ranges of
results. For tall matrices they have ranges of rows instead, and partial results of all columns, which are combined in
order: a range of columns would read short parts of rows, at whose ends hardware prefetchers stop.

A reduction to a single result is partitioned into ranges of elements, whose partial results are combined in order.

The maximum or minimum of a row takes one comparison per element if the row has no special values. The exact maximum of
two floats, where NaN wins and 0 is above -0, is five instructions on x86; the plain one is one. The sum of all
elements, one more instruction, tells whether there may be a NaN. Then, and if the result is a zero, the row is reduced
once more by the exact rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i1
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    BAND_ROWS,
    L3_PART,
    PAGE_BYTES,
    REDUCE_MAX_SCALAR_WINDOWS,
    REDUCE_MIN_TASK_ROWS,
    REDUCE_PAGES_FROM_MEMORY,
    REDUCE_ROW_END_ELEMENTS,
    REDUCE_VECTORS,
    REDUCE_WINDOWS_END_ELEMENTS,
)
from lowering.kernels.emit.accumulators import Accumulators, accumulator, folded, folds_as_integers
from lowering.kernels.emit.body import Body, combined
from lowering.kernels.emit.guards import find_clipping
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.emit.loop_nest import LoopNest
from lowering.kernels.emit.prefetching import NextBand
from lowering.kernels.emit.vectorization import (
    AxisGroup,
    collapse_axes,
    lane_count,
    masks_are_cheap,
    vector_iteration,
)
from lowering.kernels.reduce.argmax import element_ops, has_lanes, order_of, order_of_all
from lowering.kernels.reduce.argmax_loops import MAX_ROWS, ArgColumns, ArgReduction
from lowering.kernels.reduce.columns import Columns
from lowering.kernels.reduce.pooling import Pooling, choose_pooling, reduction_lanes
from lowering.kernels.structure.reduction import Reduction
from lowering.kernels.structure.stages import Stage, is_heavy, work_of
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum, product
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.arithmetic import GreaterOp
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import AllocBufferOp, StoreOp
from tir_dialect.types import BufferType, IteratorKind, LoopKind


@dataclass(frozen=True)
class RowMaximum:
    """Generates one row."""

    kernel: Kernel
    stage: Stage
    reduction: Reduction
    row: AxisGroup

    @property
    def width(self) -> int:
        """Elements of an iteration; a row has one iteration at least."""
        return self.kernel.target.lanes(32) * REDUCE_VECTORS

    def emit_unless_special(self, at: Mapping[int, SSAValue]) -> SSAValue:
        """Writes the result, unless the row is short; returns whether the exact reduction is needed."""
        code, length = self.kernel.code, self.kernel.code.dim(self.row.extent)
        if self.row.extent.constant_value is not None:
            return self._find(at, length)
        is_short = code.compare("slt", length, self.width)
        branch = IfOp(is_short, result_types=[i1])
        code.emit(branch)
        with code.inside(branch.then_body.block):
            code.emit(YieldOp(is_short))
        with code.inside(branch.else_body.block):
            code.emit(YieldOp(self._find(at, length)))
        return branch.outputs[0]

    def _find(self, at: Mapping[int, SSAValue], length: SSAValue) -> SSAValue:
        """Writes the result, and returns whether it is a zero, or some element may be NaN."""
        code, first = self.kernel.code, Body(self.kernel, self.stage, at)
        first.run([op for op in self.stage.init if not isinstance(op, StoreOp)])
        best, total = self._full_of(first.value(self.reduction.first[0])), self._full_of(code.number(0.0, f32))
        body, ops = Body(self.kernel, self.stage, at, self.row.last), element_ops(self.stage, self.reduction)
        body.hoist(ops, {store.buffer for store in self.stage.stores})

        def meet(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            here = body.at_index(index)
            here.run(ops)
            number = here.value(self.reduction.sources[0])
            return [self._better(number, old[0]), code.add_floats(old[1], number)]

        # The last iteration overlaps the one before: repeated elements change neither the maximum nor whether there is
        # NaN.
        with code.loop(code.divide(code.add(length, self.width - 1), self.width), "v") as iteration:
            start = code.minimum(code.mul(iteration, self.width), code.sub(length, self.width))
            vector_iteration(self.kernel, start, self.width, None, [best, total], meet)
        result, total = folded(self.kernel, best, self._better), folded(self.kernel, total, code.add_floats)
        Accumulators(self.kernel, [self.stage], {0: self.reduction}, 1, at).write({0: [result]})
        is_zero = code.value(arith.CmpfOp(result, code.number(0.0, f32), "oeq"))
        return code.either(is_zero, code.value(arith.CmpfOp(total, total, "uno")))

    def _better(self, number: SSAValue, old: SSAValue) -> SSAValue:
        """The better of two elements."""
        code = self.kernel.code
        if isinstance(self.reduction.combine[0], arith.MaximumfOp):
            return code.value(GreaterOp(number, old))
        return code.select(code.value(arith.CmpfOp(number, old, "olt")), number, old)

    def _full_of(self, value: SSAValue) -> SSAValue:
        """A buffer for an iteration, filled with a value."""
        code = self.kernel.code
        buffer = accumulator(self.kernel, BufferType([1], f32), self.width)
        with code.loop(code.index(self.width), "lane", kind=LoopKind.VECTORIZED) as lane:
            code.store(value, buffer, [lane])
        return buffer


def find_row_maximum(kernel: Kernel, stage: Stage, reduction: Reduction) -> RowMaximum | None:
    """The row whose maximum or minimum of f32 a stage takes, with contiguous elements; `None` if it does not."""
    rows = collapse_axes(kernel, [stage], stage.of_kind(IteratorKind.REDUCE))
    loads = [load for load in stage.loads if load not in reduction.accumulators]
    if len(rows) != 1 or not folds_as_integers(kernel, reduction.combine) or any(map(is_heavy, stage.needed)):
        return None
    found = RowMaximum(kernel, stage, reduction, rows[0])
    length = rows[0].extent.constant_value
    side_by_side = all(kernel.access(stage, load).strides[rows[0].last].constant_value in (0, 1) for load in loads)
    return found if side_by_side and (length is None or length >= found.width) else None


class ColumnReduction:
    """A stage with reduced axes, and kept axes inside of those that `at` fixes."""

    def __init__(self, kernel: Kernel, stage: Stage, reduction: Reduction, around: int, prefetches: bool = False):
        """With `prefetches`, bands of rows that come from memory are prefetched."""
        self.kernel, self.stage, self.reduction = kernel, stage, reduction
        self.code = kernel.code
        spatial = [axis for axis in stage.of_kind(IteratorKind.SPATIAL) if axis >= around]
        self.spatial = collapse_axes(kernel, [stage], spatial)
        self.reduced = collapse_axes(kernel, [stage], stage.of_kind(IteratorKind.REDUCE))
        found = reduction_lanes(kernel, stage, reduction, self.spatial, self.reduced, inner=around > 0)
        self.lane, self.taps_if_few = found.group, found.taps_if_few
        self.windows = None if found.window is None else choose_pooling(kernel, stage, found.window)
        self.lanes = lane_count(kernel, [stage], self.lane) if self.lane in self.spatial else 1
        order = order_of(stage, reduction) if self.lanes > 1 else None
        data = [load for load in stage.loads if load not in reduction.accumulators]
        prefetches = prefetches and self.lanes > 1 and len(self.reduced) == 1
        ahead = NextBand.of(kernel, stage, data, self.reduced[0].last, self.lane.last) if prefetches else None
        self.argmax_columns = None if order is None else ArgColumns(kernel, stage, reduction, order, self.lane, ahead)
        self.lanes = self.lanes if self.argmax_columns is None else self.argmax_columns.lanes
        clipping = find_clipping(stage, reduction, self.lane.last) if self.lanes > 1 else None
        self.columns = Columns(kernel, stage, reduction, self.reduced, self.lane, self.lanes, clipping, ahead)

    @property
    def outermost(self) -> AxisGroup:
        """The group of the outermost loop."""
        others = [group for group in self.spatial if group is not self.lane]
        return others[0] if others else self.spatial[0]

    @property
    def work(self) -> Dim:
        """The work of the stage, in additions."""
        if self.windows is not None:
            rows = product(group.extent for group in self.spatial if group is not self.lane)
            return work_of(self.stage) + rows * REDUCE_WINDOWS_END_ELEMENTS
        ends = product(group.extent for group in self.spatial) if self.lane in self.reduced else constant(0)
        return work_of(self.stage) + ends * REDUCE_ROW_END_ELEMENTS

    @property
    def can_split_rows(self) -> bool:
        """Whether threads can have ranges of rows, with partial results of all columns."""
        alone = len(self.spatial) == len(self.reduced) == 1 and self.lanes > 1 and self.windows is None
        return alone and bool(self.reduction.combine) and self.columns.clipping is None

    @property
    def can_fuse_elementwise(self) -> bool:
        """Whether an elementwise stage can be fused while results of pooling are in registers."""
        return self.windows is not None and self.windows.are_in_registers

    def fuse_elementwise(self, stage: Stage) -> ColumnReduction | None:
        """Fuses an elementwise stage with pooling: here, or only for short rows, whose code is returned then.

        A stage that also uses the index in the row is not fused for long rows: a loop nest of its own knows their
        interior.
        """
        assert self.windows is not None  # asked only for pooling
        if self.lane.last not in stage.pinned:
            self.windows.follow(stage)
            return None
        short = copy(self)
        short.windows = self.windows.take_short(stage)
        return short

    @property
    def is_short(self) -> SSAValue:
        """Whether rows are so short that the code for short rows is used."""
        assert self.windows is not None  # asked only if there is code for short rows
        assert self.windows.short is not None
        return self.windows.short.is_one_iteration

    def prepare(self) -> None:
        """Allocates memory that all results share, before the loops."""
        if self.windows is not None:
            self.windows.prepare()
        if self.argmax_columns is not None:
            self.argmax_columns.prepare()

    def emit(self, at: Mapping[int, SSAValue], chunk: tuple[SSAValue, SSAValue] | None = None) -> None:
        """The loops, after `prepare`; `part` is the range of the outermost group."""
        self._loops([group for group in self.spatial if group is not self.lane], dict(at), chunk)

    def emit_rows(self, rows: tuple[SSAValue, SSAValue]) -> None:
        """The partial results of a range of rows for all columns, after `prepare`."""
        target = self.columns if self.argmax_columns is None else self.argmax_columns
        target.emit({}, None, self.code.dim(self.lane.extent), rows)

    def _loops(
        self, groups: Sequence[AxisGroup], at: dict[int, SSAValue], chunk: tuple[SSAValue, SSAValue] | None
    ) -> None:
        if not groups:
            if self.windows is not None:
                self._windows(self.windows, at)
            elif self.lanes == 1:  # also where the lanes are of a reduced axis
                self._rows(at, chunk)
            elif self.argmax_columns is not None:
                self._argmax_columns(self.argmax_columns, at, chunk)
            else:
                self.columns.emit(at, *self._beginning_and_length(chunk))
            return
        low, high = (None, self.code.dim(groups[0].extent)) if chunk is None else chunk
        with self.code.loop(high, self._name(groups[0]), lower=low) as index:
            self._loops(groups[1:], {**at, groups[0].last: index}, None)

    def _windows(self, windows: Pooling, at: dict[int, SSAValue]) -> None:
        """A row of pooling results; a few results through memory are reduced one by one, with lanes along the
        window.
        """
        if not self.taps_if_few or windows.are_in_registers:
            windows.emit(at)
            return
        with self.code.when(
            self.code.compare("sgt", self.code.dim(self.lane.extent), REDUCE_MAX_SCALAR_WINDOWS)
        ) as are_many:
            windows.emit(at)
        with self.code.otherwise(are_many):
            self._rows(at, None)

    def _name(self, group: AxisGroup) -> str:
        return self.stage.axes[group.last].value.name_hint or "i"

    def _beginning_and_length(self, chunk: tuple[SSAValue, SSAValue] | None) -> tuple[SSAValue | None, SSAValue]:
        if chunk is None:
            return None, self.code.dim(self.lane.extent)
        return chunk[0], self.code.sub(chunk[1], chunk[0])

    def _argmax_columns(
        self, argmax_columns: ArgColumns, at: dict[int, SSAValue], chunk: tuple[SSAValue, SSAValue] | None
    ) -> None:
        """In lanes; one by one if there are too many rows for indices of that width."""
        can_count = argmax_columns.can_count
        if isinstance(can_count, SSAValue):
            with self.code.when(can_count) as branch:
                argmax_columns.emit(at, *self._beginning_and_length(chunk))
            with self.code.otherwise(branch):
                self._rows(at, chunk, reduce_in_order)
        elif can_count:
            argmax_columns.emit(at, *self._beginning_and_length(chunk))
        else:
            self._rows(at, chunk, reduce_in_order)

    def _rows(
        self, at: dict[int, SSAValue], chunk: tuple[SSAValue, SSAValue] | None, reduce: RowCode | None = None
    ) -> None:
        """Lanes along a reduced axis, or none."""
        reduce = reduce or reduce_rows
        if self.lane in self.spatial:
            low, high = (None, self.code.dim(self.lane.extent)) if chunk is None else chunk
            with self.code.loop(high, self._name(self.lane), lower=low) as index:
                reduce(self.kernel, self.stage, self.reduction, {**at, self.lane.last: index})
            return
        reduce(self.kernel, self.stage, self.reduction, at)


RowCode: TypeAlias = Callable[[Kernel, Stage, Reduction, Mapping[int, SSAValue]], None]
"""Generates one result."""


def reduce_rows(kernel: Kernel, stage: Stage, reduction: Reduction, at: Mapping[int, SSAValue]) -> None:
    """One result: all reduced axes in one loop nest."""
    order = order_of(stage, reduction) if has_lanes(kernel) else None
    if order is None:
        row = find_row_maximum(kernel, stage, reduction)
        with nullcontext() if row is None else kernel.code.when(row.emit_unless_special(at)):
            reduce_by_loop_nest(kernel, stage, reduction, at)
        return
    short = None if masks_are_cheap(kernel, [stage]) else partial(reduce_in_order, kernel, stage, reduction, at)
    ArgReduction(kernel, stage, reduction, order).emit(at, short)


def reduce_in_order(kernel: Kernel, stage: Stage, reduction: Reduction, at: Mapping[int, SSAValue]) -> None:
    """One result, in the order of the elements, without lanes."""
    reduce_by_loop_nest(kernel, stage, replace(reduction, combine=()), at)


def reduce_by_loop_nest(kernel: Kernel, stage: Stage, reduction: Reduction, at: Mapping[int, SSAValue]) -> None:
    """One result, by the loop nest that all kinds of reductions have in common."""
    accumulators = LoopNest(kernel, [stage], stage.of_kind(IteratorKind.REDUCE), {0: reduction}, prefetches=True).emit(
        at
    )
    if accumulators is not None:
        accumulators.write(accumulators.finish())


def emit_kept_axes_reduction(kernel: Kernel, stage: Stage, reduction: Reduction) -> None:
    """Generates a reduction with kept axes, partitioned by rows if there are many, otherwise by the outermost axis."""
    code, columns = kernel.code, ColumnReduction(kernel, stage, reduction, 0, prefetches=True)
    by_rows = _is_row_partition_profitable(kernel, columns)
    if isinstance(by_rows, SSAValue):
        with code.when(by_rows) as branch:
            _PartitionedRows(kernel, columns).emit()
        with code.otherwise(branch):  # few rows are long if they come from memory
            _emit_by_results(kernel, ColumnReduction(kernel, stage, reduction, 0))
    elif by_rows:
        _PartitionedRows(kernel, columns).emit()
    else:
        _emit_by_results(kernel, columns)


def _emit_by_results(kernel: Kernel, columns: ColumnReduction) -> None:
    lanes = columns.lanes if columns.outermost is columns.lane else 1
    with kernel.partition(columns.outermost.extent, columns.work, lanes) as chunk:
        columns.prepare()
        columns.emit({}, chunk)


def _is_row_partition_profitable(kernel: Kernel, columns: ColumnReduction) -> bool | SSAValue:
    """Whether a partition by rows is profitable: known now, or at run time."""
    tasks, rows = kernel.tasks(columns.work), columns.reduced[0].extent.constant_value
    too_few = tasks.constant_value == 1 or (rows is not None and rows < 2 * REDUCE_MIN_TASK_ROWS)
    if too_few or not columns.can_split_rows:
        return False
    # Not negative if several threads have enough rows each, and one of these holds: the columns do not suffice for
    # all threads; the matrix comes from memory, and ranges of a row are some pages long at most; or it comes from L3,
    # and ranges of a row are shorter than a page.
    stage, target = columns.stage, kernel.target
    data = [load for load in stage.loads if load not in columns.reduction.accumulators]
    size = max((byte_size(load.buffer_type.dtype) for load in data), default=1)
    rows, row_bytes = columns.reduced[0].extent, columns.lane.extent * size
    many = minimum(tasks - 2, rows - REDUCE_MIN_TASK_ROWS * tasks, constant(MAX_ROWS - 1) - rows)
    narrow = columns.lanes * (tasks - 1) - columns.lane.extent
    from_memory = minimum(
        rows * row_bytes - target.l3_bytes // L3_PART - 1, REDUCE_PAGES_FROM_MEMORY * PAGE_BYTES * tasks - row_bytes
    )
    from_cache = minimum(rows * row_bytes - target.l2_bytes * tasks - 1, PAGE_BYTES * tasks - row_bytes)
    wanted = minimum(many, maximum(narrow, from_memory, from_cache))
    known = wanted.constant_value
    return kernel.code.compare("sge", kernel.code.dim(wanted), 0) if known is None else known >= 0


class _PartitionedRows:
    """Partial results of all columns for each range of rows, and their combination."""

    def __init__(self, kernel: Kernel, columns: ColumnReduction):
        self.kernel, self.code, self.columns = kernel, kernel.code, columns
        self.reduction, self.lane, self.lanes = columns.reduction, columns.lane, columns.lanes
        tasks, self.rows = kernel.tasks(columns.work), columns.reduced[0].extent
        self.chunk_rows = BAND_ROWS * ceildiv(self.rows, BAND_ROWS * tasks)
        self.count = self.code.dim(ceildiv(self.rows, self.chunk_rows))
        self.whole = self.lanes * ceildiv(self.lane.extent, constant(self.lanes))
        """Columns rounded up to whole vectors, so that the last one is loaded without a mask."""

    def emit(self) -> None:
        """The parallel loop over ranges of rows, then the loop over columns."""
        code, kernel, chunk_rows = self.code, self.kernel, self.code.dim(self.chunk_rows)
        shape = [kernel.target.cores, self.whole]
        kinds = [BufferType(shape, load.buffer_type.dtype, align=64) for load in self.reduction.accumulators]
        self.parts = [code.value(AllocBufferOp(kind), "parts") for kind in kinds]
        with code.loop(self.count, "task", kind=LoopKind.PARALLEL) as task:
            low = code.mul(task, chunk_rows)
            for load, chunks in zip(self.reduction.accumulators, self.parts, strict=True):
                kernel.rows[load.buffer] = code.part(chunks, task, [self.lane.extent]), 0
            self.columns.prepare()
            self.columns.emit_rows((low, code.minimum(code.dim(self.rows), code.add(low, chunk_rows))))
            for load in self.reduction.accumulators:
                del kernel.rows[load.buffer]
        self._combine()

    def _combine(self) -> None:
        """Combines the partial results, vector by vector."""
        code, lanes, length = self.code, self.lanes, self.code.dim(self.lane.extent)
        whole = code.divide(length, lanes)
        with code.loop(whole, "block") as block:
            self._vector(code.mul(block, lanes), None)
        done = code.mul(whole, lanes)
        left = code.sub(length, done)
        with code.when(code.compare("sgt", left, 0)):
            self._vector(done, left)

    def _vector(self, start: SSAValue, left: SSAValue | None) -> None:
        """Combines a vector, of which the first `left` lanes are stored."""
        code, kernel, columns, reduction = self.code, self.kernel, self.columns, self.reduction
        accumulators = [accumulator(kernel, load.buffer_type, self.lanes) for load in reduction.accumulators]

        def loaded(number: SSAValue, index: SSAValue) -> list[SSAValue]:
            return [code.load(chunk, [number, index]) for chunk in self.parts]

        def store(index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
            body = Body(kernel, columns.stage, {self.lane.last: index}, self.lane.last)
            body.values |= {store.value: value for store, value in zip(reduction.stores, old, strict=True)}
            body.run(reduction.stores)
            return old

        first = code.index(0)
        vector_iteration(kernel, start, self.lanes, None, accumulators, lambda index, _: loaded(first, index))
        with code.loop(self.count, "part", lower=code.index(1)) as number:
            vector_iteration(
                kernel,
                start,
                self.lanes,
                None,
                accumulators,
                lambda index, old: combined(kernel, reduction, old, loaded(number, index)),
            )
        vector_iteration(kernel, start, self.lanes, left, accumulators, store)


def emit_full_reduction(kernel: Kernel, stage: Stage, reduction: Reduction) -> None:
    """Generates a reduction without kept axes."""
    order = order_of_all(kernel, stage, reduction) if has_lanes(kernel) else None
    if order is not None:
        _emit_parallel_argmax(kernel, stage, reduction, ArgReduction(kernel, stage, reduction, order))
        return
    nest = LoopNest(kernel, [stage], range(len(stage.axes)), {0: reduction}, prefetches=True)
    tasks = kernel.tasks(work_of(stage))
    outermost = nest.outermost
    if tasks.constant_value == 1 or not reduction.combine or outermost is None:
        reduce_rows(kernel, stage, reduction, {})
        return
    code, chunks = kernel.code, _parts(kernel, reduction)
    step = nest.lanes * nest.unroll
    chunk_rows = step * maximum(ceildiv(outermost.extent, step * tasks), constant(1))
    # A thread without elements still has a result: the initial value.
    with code.loop(code.dim(tasks), "task", kind=LoopKind.PARALLEL) as task:
        low = code.minimum(code.mul(task, code.dim(chunk_rows)), code.dim(outermost.extent))
        high = code.minimum(code.add(low, code.dim(chunk_rows)), code.dim(outermost.extent))
        accumulators = nest.emit({}, (low, high))
        assert accumulators is not None
        for chunk, value in zip(chunks, accumulators.finish()[0], strict=True):
            code.store(value, chunk, [task])
    _combine(kernel, stage, reduction, chunks, code.dim(tasks))


def _emit_parallel_argmax(kernel: Kernel, stage: Stage, reduction: Reduction, search: ArgReduction) -> None:
    """Argmax of all elements, as if they were one row; each thread has at least one iteration of it."""
    code, tasks = kernel.code, kernel.tasks(work_of(stage))
    short = None if masks_are_cheap(kernel, [stage]) else partial(reduce_in_order, kernel, stage, reduction, {})
    if tasks.constant_value == 1:
        search.emit({}, short)
        return
    length = search.length
    with code.when(search.is_long) as is_long:
        count = code.minimum(code.dim(tasks), code.divide(length, search.width))
        chunks = _parts(kernel, reduction)
        with code.loop(count, "task", kind=LoopKind.PARALLEL) as task:
            low, high = (code.divide(code.mul(each, length), count) for each in (task, code.add(task, 1)))
            for chunk, value in zip(chunks, search.part({}, low, code.sub(high, low)), strict=True):
                code.store(value, chunk, [task])
        _combine(kernel, stage, reduction, chunks, count)
    with code.otherwise(is_long):
        search.emit_short({}, short)


def _parts(kernel: Kernel, reduction: Reduction) -> Sequence[SSAValue]:
    """Memory for the result of each thread."""
    types = [BufferType([kernel.target.cores], load.buffer_type.dtype, align=64) for load in reduction.accumulators]
    return [kernel.code.value(AllocBufferOp(each), "parts") for each in types]


def _combine(kernel: Kernel, stage: Stage, reduction: Reduction, chunks: Sequence[SSAValue], tasks: SSAValue) -> None:
    code, zero = kernel.code, kernel.code.index(0)
    with code.loop(tasks, "part", lower=code.index(1), vectorize=False) as chunk:
        left = [code.load(buffer, [zero]) for buffer in chunks]
        right = [code.load(buffer, [chunk]) for buffer in chunks]
        for value, buffer in zip(combined(kernel, reduction, left, right), chunks, strict=True):
            code.store(value, buffer, [zero])
    results = [code.load(buffer, [zero]) for buffer in chunks]
    Accumulators(kernel, [stage], {0: reduction}, 1, {}).write({0: results})

"""Reductions whose lanes run along a kept axis: each lane has a result of its own.

A few vectors of results are accumulated at once while the loops over the reduced axes run: a column of a matrix is
summed in rows of some cache lines, and a pooling window for all lanes together.

Reductions of columns for which threads share the rows of a tall matrix.

A thread that had some of the columns would read parts of rows, at whose ends prefetchers stop. So it has whole rows,
and results of its own for all columns; these are combined at the end, in order.

Reductions to a single result: threads reduce parts, which are then combined in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.body import Body, combined
from lowering.kernels.cpu.emit.guards import find_border
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.prefetching import BAND, PART_OF_L3, NextBand
from lowering.kernels.cpu.emit.vectorization import Group, group_axes, lane_count, masks_are_cheap, vector_iteration
from lowering.kernels.cpu.reduce.argmax import has_lanes, order_of, order_of_all
from lowering.kernels.cpu.reduce.argmax_columns import MOST_ROWS, ArgColumns
from lowering.kernels.cpu.reduce.argmax_rows import ArgReduction
from lowering.kernels.cpu.reduce.columns import Columns
from lowering.kernels.cpu.reduce.pooling import Windows, windows_of
from lowering.kernels.cpu.reduce.row_maximum import find_extreme_row
from lowering.kernels.cpu.reduce.windows import reduction_lanes
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage, work_of
from lowering.kernels.cpu.traversal.accumulators import Accumulators, accumulator
from lowering.kernels.cpu.traversal.loop_nest import Sweep
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum, product
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.types import BufferType, IteratorKind, LoopKind

ROW_END = 16
"""To make one number of a vector of sums takes as long as so many elements."""

ROW_OF_WINDOWS = 48
"""The same for a row of windows, however short: it goes through memory."""
FEW_RESULTS = 3
"""Up to so many windows of a row are reduced one by one."""


class ColumnReduction:
    """A stage with kept axes, inside those that `at` fixes, and reduced axes."""

    def __init__(self, kernel: Kernel, stage: Stage, reduction: Reduction, around: int, asks: bool = False):
        """A stage that `asks` for bands of rows does so where they come from memory."""
        self.kernel, self.stage, self.reduction = kernel, stage, reduction
        self.code = kernel.code
        spatial = [axis for axis in stage.of_kind(IteratorKind.SPATIAL) if axis >= around]
        self.spatial = group_axes(kernel, [stage], spatial)
        self.reduced = group_axes(kernel, [stage], stage.of_kind(IteratorKind.REDUCE))
        found = reduction_lanes(kernel, stage, reduction, self.spatial, self.reduced, inner=around > 0)
        self.lane, self.members_if_few = found.group, found.members_if_few
        self.windows = None if found.window is None else windows_of(kernel, stage, found.window)
        self.lanes = lane_count(kernel, [stage], self.lane) if self.lane in self.spatial else 1
        order = order_of(stage, reduction) if self.lanes > 1 else None
        data = [load for load in stage.loads if load not in reduction.accumulators]
        asks = asks and self.lanes > 1 and len(self.reduced) == 1
        ahead = NextBand.of(kernel, stage, data, self.reduced[0].last, self.lane.last) if asks else None
        self.arguments = None if order is None else ArgColumns(kernel, stage, reduction, order, self.lane, ahead)
        self.lanes = self.lanes if self.arguments is None else self.arguments.lanes
        border = find_border(stage, reduction, self.lane.last) if self.lanes > 1 else None
        self.columns = Columns(kernel, stage, reduction, self.reduced, self.lane, self.lanes, border, ahead)

    @property
    def outermost(self) -> Group:
        """The group whose loop is around all others."""
        others = [group for group in self.spatial if group is not self.lane]
        return others[0] if others else self.spatial[0]

    @property
    def work(self) -> Dim:
        """About how many additions' time the stage takes."""
        if self.windows is not None:
            rows = product(group.extent for group in self.spatial if group is not self.lane)
            return work_of(self.stage) + rows * ROW_OF_WINDOWS
        ends = product(group.extent for group in self.spatial) if self.lane in self.reduced else constant(0)
        return work_of(self.stage) + ends * ROW_END

    @property
    def can_split_rows(self) -> bool:
        """Whether ranges of rows, all columns of each, may be reduced apart from each other."""
        alone = len(self.spatial) == len(self.reduced) == 1 and self.lanes > 1 and self.windows is None
        return alone and bool(self.reduction.combine) and self.columns.border is None

    @property
    def may_map_windows(self) -> bool:
        """Whether a map can follow results of windows while they are in registers."""
        return self.windows is not None and self.windows.are_in_registers

    def map_windows(self, stage: Stage) -> ColumnReduction | None:
        """Has a map of the results computed with them: here, or only for short rows, which others are given for.

        What is computed from the index in the row, too, is not computed for long ones, as it is by loops
        that know where the middle is.
        """
        assert self.windows is not None  # for which it may be asked
        if self.lane.last not in stage.pinned:
            self.windows.follow(stage)
            return None
        short = copy(self)
        short.windows = self.windows.take_short(stage)
        return short

    @property
    def is_short(self) -> SSAValue:
        """Whether rows are so short that those that are given for these are meant."""
        assert self.windows is not None  # they are given
        assert self.windows.short is not None
        return self.windows.short.is_one_iteration

    def prepare(self) -> None:
        """Memory that all results share, before the loops."""
        if self.windows is not None:
            self.windows.prepare()
        if self.arguments is not None:
            self.arguments.prepare()

    def emit(self, at: Mapping[int, SSAValue], part: tuple[SSAValue, SSAValue] | None = None) -> None:
        """The loops, after `prepare`; `part` is the range of the outermost group."""
        self._loops([group for group in self.spatial if group is not self.lane], dict(at), part)

    def emit_rows(self, rows: tuple[SSAValue, SSAValue]) -> None:
        """What a range of rows contributes to all columns, after `prepare`, if they can be split and counted."""
        target = self.columns if self.arguments is None else self.arguments
        target.emit({}, None, self.code.dim(self.lane.extent), rows)

    def _loops(self, groups: Sequence[Group], at: dict[int, SSAValue], part: tuple[SSAValue, SSAValue] | None) -> None:
        if not groups:
            if self.windows is not None:
                self._windows(self.windows, at)
            elif self.lane in self.reduced or self.lanes == 1:
                self._rows(at, part)
            elif self.arguments is not None:
                self._best_of_columns(self.arguments, at, part)
            else:
                self.columns.emit(at, *self._beginning_and_length(part))
            return
        low, high = (None, self.code.dim(groups[0].extent)) if part is None else part
        with self.code.loop(high, self._name(groups[0]), lower=low) as index:
            self._loops(groups[1:], {**at, groups[0].last: index}, None)

    def _windows(self, windows: Windows, at: dict[int, SSAValue]) -> None:
        """A row of results; through memory, a few of them one by one, with lanes along the window."""
        if not self.members_if_few or windows.are_in_registers:
            windows.emit(at)
            return
        with self.code.when(self.code.compare("sgt", self.code.dim(self.lane.extent), FEW_RESULTS)) as are_many:
            windows.emit(at)
        with self.code.otherwise(are_many):
            self._rows(at, None)

    def _name(self, group: Group) -> str:
        return self.stage.axes[group.last].value.name_hint or "i"

    def _beginning_and_length(self, part: tuple[SSAValue, SSAValue] | None) -> tuple[SSAValue | None, SSAValue]:
        if part is None:
            return None, self.code.dim(self.lane.extent)
        return part[0], self.code.sub(part[1], part[0])

    def _best_of_columns(
        self, arguments: ArgColumns, at: dict[int, SSAValue], part: tuple[SSAValue, SSAValue] | None
    ) -> None:
        """In lanes; one by one if there are too many rows to be counted in these."""
        can_count = arguments.can_count
        if isinstance(can_count, SSAValue):
            with self.code.when(can_count) as branch:
                arguments.emit(at, *self._beginning_and_length(part))
            with self.code.otherwise(branch):
                self._rows(at, part, one_by_one)
        elif can_count:
            arguments.emit(at, *self._beginning_and_length(part))
        else:
            self._rows(at, part, one_by_one)

    def _rows(
        self, at: dict[int, SSAValue], part: tuple[SSAValue, SSAValue] | None, reduce: RowCode | None = None
    ) -> None:
        """Lanes along a reduced axis, or none."""
        reduce = reduce or reduce_rows
        if self.lane in self.spatial:
            low, high = (None, self.code.dim(self.lane.extent)) if part is None else part
            with self.code.loop(high, self._name(self.lane), lower=low) as index:
                reduce(self.kernel, self.stage, self.reduction, {**at, self.lane.last: index})
            return
        reduce(self.kernel, self.stage, self.reduction, at)


RowCode: TypeAlias = Callable[[Kernel, Stage, Reduction, Mapping[int, SSAValue]], None]
"""Emits one result."""


def reduce_rows(kernel: Kernel, stage: Stage, reduction: Reduction, at: Mapping[int, SSAValue]) -> None:
    """One result: all reduced axes in one sweep."""
    order = order_of(stage, reduction) if has_lanes(kernel) else None
    if order is None:
        row = find_extreme_row(kernel, stage, reduction)
        with nullcontext() if row is None else kernel.code.when(row.is_special(at)):
            sweep_row(kernel, stage, reduction, at)
        return
    short = None if masks_are_cheap(kernel, [stage]) else partial(one_by_one, kernel, stage, reduction, at)
    ArgReduction(kernel, stage, reduction, order).emit(at, short)


def one_by_one(kernel: Kernel, stage: Stage, reduction: Reduction, at: Mapping[int, SSAValue]) -> None:
    """The same in the order of elements, without lanes."""
    sweep_row(kernel, stage, replace(reduction, combine=()), at)


def sweep_row(kernel: Kernel, stage: Stage, reduction: Reduction, at: Mapping[int, SSAValue]) -> None:
    """The same, by what all kinds of reductions have in common."""
    accumulators = Sweep(kernel, [stage], stage.of_kind(IteratorKind.REDUCE), {0: reduction}, asks=True).emit(at)
    if accumulators is not None:
        accumulators.write(accumulators.finish())


LEAST_ROWS = 8 * BAND
"""Of a thread: then to combine its results takes little beside them."""

PAGE = 4096
"""Bytes, at whose ends prefetchers stop anyway."""

PAGES_FROM_MEMORY = 8
"""Beside so many the end of a part of a row hardly counts; but results of threads that have all columns do."""


def emit_shared_columns(kernel: Kernel, stage: Stage, reduction: Reduction) -> None:
    """The code of a stage with axes that stay, by rows if there are many; else threads share what is outermost."""
    code, columns = kernel.code, ColumnReduction(kernel, stage, reduction, 0, asks=True)
    by_rows = _go_by_rows(kernel, columns)
    if isinstance(by_rows, SSAValue):
        with code.when(by_rows) as branch:
            _SharedRows(kernel, columns).emit()
        with code.otherwise(branch):  # rows that are few are long, if they come from memory
            _emit_by_results(kernel, ColumnReduction(kernel, stage, reduction, 0))
    elif by_rows:
        _SharedRows(kernel, columns).emit()
    else:
        _emit_by_results(kernel, columns)


def _emit_by_results(kernel: Kernel, columns: ColumnReduction) -> None:
    lanes = columns.lanes if columns.outermost is columns.lane else 1
    with kernel.shared(columns.outermost.extent, columns.work, lanes) as part:
        columns.prepare()
        columns.emit({}, part)


def _go_by_rows(kernel: Kernel, columns: ColumnReduction) -> bool | SSAValue:
    """Whether threads had better share rows: known now, or when the kernel runs."""
    tasks, rows = kernel.tasks(columns.work), columns.reduced[0].extent.constant_value
    too_few = tasks.constant_value == 1 or (rows is not None and rows < 2 * LEAST_ROWS)
    if too_few or not columns.can_split_rows:
        return False
    wanted = _margin(kernel, columns, tasks)
    known = wanted.constant_value
    return kernel.code.compare("sge", kernel.code.dim(wanted), 0) if known is None else known >= 0


def _margin(kernel: Kernel, columns: ColumnReduction, tasks: Dim) -> Dim:
    """Not negative where several threads have rows enough each, and one of these holds: there are too few columns for
    all threads; the matrix comes from memory, and their parts of a row are some pages long at most; or it comes from
    the last-level cache, and their parts are shorter than a page.
    """
    stage, target = columns.stage, kernel.target
    data = [load for load in stage.loads if load not in columns.reduction.accumulators]
    size = max((byte_size(load.buffer_type.dtype) for load in data), default=1)
    rows, line = columns.reduced[0].extent, columns.lane.extent * size
    many = minimum(tasks - 2, rows - LEAST_ROWS * tasks, constant(MOST_ROWS - 1) - rows)
    narrow = columns.lanes * (tasks - 1) - columns.lane.extent
    from_memory = minimum(rows * line - target.l3_bytes // PART_OF_L3 - 1, PAGES_FROM_MEMORY * PAGE * tasks - line)
    from_cache = minimum(rows * line - target.l2_bytes * tasks - 1, PAGE * tasks - line)
    return minimum(many, maximum(narrow, from_memory, from_cache))


class _SharedRows:
    """Results of all columns for each range of rows, and those of all of them."""

    def __init__(self, kernel: Kernel, columns: ColumnReduction):
        self.kernel, self.code, self.columns = kernel, kernel.code, columns
        self.reduction, self.lane, self.lanes = columns.reduction, columns.lane, columns.lanes
        tasks, self.rows = kernel.tasks(columns.work), columns.reduced[0].extent
        self.height = BAND * ceildiv(self.rows, BAND * tasks)
        self.count = self.code.dim(ceildiv(self.rows, self.height))
        self.whole = self.lanes * ceildiv(self.lane.extent, constant(self.lanes))
        """Columns that fill the last vector, so that it is loaded without a mask."""

    def emit(self) -> None:
        """The loops of all threads, then that over columns."""
        code, kernel, height = self.code, self.kernel, self.code.dim(self.height)
        shape = [kernel.target.cores, self.whole]
        kinds = [BufferType(shape, load.buffer_type.dtype, align=64) for load in self.reduction.accumulators]
        self.parts = [code.value(AllocBufferOp(kind), "parts") for kind in kinds]
        with code.loop(self.count, "task", kind=LoopKind.PARALLEL) as task:
            low = code.mul(task, height)
            for load, parts in zip(self.reduction.accumulators, self.parts, strict=True):
                kernel.rows[load.buffer] = code.part(parts, task, [self.lane.extent]), 0
            self.columns.prepare()
            self.columns.emit_rows((low, code.minimum(code.dim(self.rows), code.add(low, height))))
            for load in self.reduction.accumulators:
                del kernel.rows[load.buffer]
        self._combine()

    def _combine(self) -> None:
        """Vector after vector of the columns."""
        code, lanes, length = self.code, self.lanes, self.code.dim(self.lane.extent)
        whole = code.divide(length, lanes)
        with code.loop(whole, "block") as block:
            self._vector(code.mul(block, lanes), None)
        done = code.mul(whole, lanes)
        left = code.sub(length, done)
        with code.when(code.compare("sgt", left, 0)):
            self._vector(done, left)

    def _vector(self, start: SSAValue, left: SSAValue | None) -> None:
        """All lanes of a vector, of which the first `left` are stored."""
        code, kernel, columns, reduction = self.code, self.kernel, self.columns, self.reduction
        sums = [accumulator(kernel, load.buffer_type, self.lanes) for load in reduction.accumulators]

        def loaded(number: SSAValue, index: SSAValue) -> list[SSAValue]:
            return [code.load(part, [number, index]) for part in self.parts]

        def store(index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
            body = Body(kernel, columns.stage, {self.lane.last: index}, self.lane.last)
            body.values |= {store.value: value for store, value in zip(reduction.stores, old, strict=True)}
            body.run(reduction.stores)
            return old

        first = code.index(0)
        vector_iteration(kernel, start, self.lanes, None, sums, lambda index, _: loaded(first, index))
        with code.loop(self.count, "part", lower=code.index(1)) as number:
            vector_iteration(
                kernel,
                start,
                self.lanes,
                None,
                sums,
                lambda index, old: combined(kernel, reduction, old, loaded(number, index)),
            )
        vector_iteration(kernel, start, self.lanes, left, sums, store)


def emit_shared_reduction(kernel: Kernel, stage: Stage, reduction: Reduction) -> None:
    """The code of a stage without axes that stay."""
    order = order_of_all(kernel, stage, reduction) if has_lanes(kernel) else None
    if order is not None:
        _emit_shared_search(kernel, stage, reduction, ArgReduction(kernel, stage, reduction, order))
        return
    sweep = Sweep(kernel, [stage], range(len(stage.axes)), {0: reduction}, asks=True)
    tasks = kernel.tasks(work_of(stage))
    outermost = sweep.outermost
    if tasks.constant_value == 1 or not reduction.combine or outermost is None:
        reduce_rows(kernel, stage, reduction, {})
        return
    code, parts = kernel.code, _parts(kernel, reduction)
    step = sweep.lanes * sweep.unroll
    height = step * maximum(ceildiv(outermost.extent, step * tasks), constant(1))
    # A thread without a part still has a result: the first value.
    with code.loop(code.dim(tasks), "task", kind=LoopKind.PARALLEL) as task:
        low = code.minimum(code.mul(task, code.dim(height)), code.dim(outermost.extent))
        high = code.minimum(code.add(low, code.dim(height)), code.dim(outermost.extent))
        accumulators = sweep.emit({}, (low, high))
        assert accumulators is not None
        for part, value in zip(parts, accumulators.finish()[0], strict=True):
            code.store(value, part, [task])
    _combine(kernel, stage, reduction, parts, code.dim(tasks))


def _emit_shared_search(kernel: Kernel, stage: Stage, reduction: Reduction, search: ArgReduction) -> None:
    """The best of all elements, as if they were one row: each thread has an iteration of it at least."""
    code, tasks = kernel.code, kernel.tasks(work_of(stage))
    short = None if masks_are_cheap(kernel, [stage]) else partial(one_by_one, kernel, stage, reduction, {})
    if tasks.constant_value == 1:
        search.emit({}, short)
        return
    length = search.length
    with code.when(search.is_long) as is_long:
        count = code.minimum(code.dim(tasks), code.divide(length, search.width))
        parts = _parts(kernel, reduction)
        with code.loop(count, "task", kind=LoopKind.PARALLEL) as task:
            low, high = (code.divide(code.mul(each, length), count) for each in (task, code.add(task, 1)))
            for part, value in zip(parts, search.part({}, low, code.sub(high, low)), strict=True):
                code.store(value, part, [task])
        _combine(kernel, stage, reduction, parts, count)
    with code.otherwise(is_long):
        search.emit_short({}, short)


def _parts(kernel: Kernel, reduction: Reduction) -> Sequence[SSAValue]:
    """Memory for the result of each thread."""
    types = [BufferType([kernel.target.cores], load.buffer_type.dtype, align=64) for load in reduction.accumulators]
    return [kernel.code.value(AllocBufferOp(each), "parts") for each in types]


def _combine(kernel: Kernel, stage: Stage, reduction: Reduction, parts: Sequence[SSAValue], tasks: SSAValue) -> None:
    code, zero = kernel.code, kernel.code.index(0)
    with code.loop(tasks, "part", lower=code.index(1), vectorize=False) as part:
        left = [code.load(buffer, [zero]) for buffer in parts]
        right = [code.load(buffer, [part]) for buffer in parts]
        for value, buffer in zip(combined(kernel, reduction, left, right), parts, strict=True):
            code.store(value, buffer, [zero])
    results = [code.load(buffer, [zero]) for buffer in parts]
    Accumulators(kernel, [stage], {0: reduction}, 1, {}).write({0: results})

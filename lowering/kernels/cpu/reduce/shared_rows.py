"""Reductions of columns for which threads share the rows of a tall matrix.

A thread that had some of the columns would read parts of rows, at whose ends prefetchers stop. So it has whole rows,
and results of its own for all columns; these are combined at the end, in order.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.body import Body
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.vectors import vector_iteration
from lowering.kernels.cpu.reduce.arg_columns import MOST_ROWS
from lowering.kernels.cpu.reduce.bands import BAND, PART_OF_L3
from lowering.kernels.cpu.reduce.column_reduction import ColumnReduction
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from lowering.kernels.cpu.traversal.accumulators import accumulator
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.types import BufferType, LoopKind

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
                lambda index, old: reduction.combined(kernel, old, loaded(number, index)),
            )
        vector_iteration(kernel, start, self.lanes, left, sums, store)

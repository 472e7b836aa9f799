"""Scans of adjacent columns: each lane has a scan of its own, so nothing is reassociated.

Rows are read one after the other, as they lie in memory. If results are written by non-temporal stores, or are computed
from the sums, the sums of the previous row are kept in a buffer. Otherwise they are in the result, and the loops are
left for LLVM to vectorise. Then threads partition the axes around: partial rows in the caches would be read more slowly
than whole ones. Rows that are no whole vectors are done in the same way, since few of their cache lines could be
written by non-temporal stores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.body import Body, repeat
from lowering.kernels.cpu.emit.kernel import Kernel, non_temporal_from
from lowering.kernels.cpu.emit.prefetching import NextBand
from lowering.kernels.cpu.emit.vectorization import (
    AxisGroup,
    collapse_axes,
    lane_count,
    masks_are_cheap,
    vector_iteration,
)
from lowering.kernels.cpu.scan.scan import Scan, neutral
from lowering.kernels.cpu.structure.stages import work_of
from tir_dialect.dims import minimum, product
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import AllocBufferOp, LoadOp
from tir_dialect.types import BufferType

VECTORS_AT_ONCE = 4

LEAST_BYTES, LEAST_BYTES_UNASKED = 8192, 32768
"""The bytes of a row for a thread, with and without prefetches: hardware prefetchers stop at the ends of ranges."""

LEAST_VECTORS = 8
"""For shorter rows the ends cost more than non-temporal stores gain."""

Part = tuple[SSAValue, SSAValue] | None
"""A range of an axis; `None` for all of it."""


def emit_scan_columns(kernel: Kernel, scan: Scan) -> None:
    """The loops over all scans."""
    code, columns, (store,) = kernel.code, _Columns(kernel, scan), scan.last.stores
    least, rest = non_temporal_from(kernel, scan.last, store), columns.lane.extent % columns.lanes
    if scan.result is not None:
        columns.emit()
    elif least is None or rest.constant_value:
        columns.as_written()
    else:
        large = product(store.buffer_type.shape) * byte_size(store.buffer_type.dtype) - least
        long = columns.lane.extent - LEAST_VECTORS * columns.lanes
        with code.when(code.compare("sge", code.dim(minimum(large, long, -1 * rest)), 0)) as branch:
            columns.emit()
        with code.otherwise(branch):
            columns.as_written()


class _Columns:
    """All adjacent scans, and the axes around them."""

    def __init__(self, kernel: Kernel, scan: Scan):
        self.kernel, self.scan = kernel, scan
        stages = [scan.stage] if scan.result is None else [scan.stage, scan.result]
        outer = collapse_axes(kernel, stages, range(scan.axis))
        *inner, self.lane = collapse_axes(kernel, stages, range(scan.axis + 1, len(scan.stage.axes)))
        self.around, self.lanes = [*outer, *inner], lane_count(kernel, stages, self.lane)
        data = [op for op in scan.element_ops if isinstance(op, LoadOp)]
        self.ahead = NextBand.of(kernel, scan.stage, data, scan.axis, self.lane.last)
        least = LEAST_BYTES if self.ahead is not None else LEAST_BYTES_UNASKED
        self.step = max(self.lanes, least // byte_size(scan.previous.buffer_type.dtype))

    def emit(self) -> None:
        """Partitioned among threads."""
        first, work = self.around[0].extent if self.around else None, work_of(self.scan.stage)
        with self.kernel.partition_2d(first, self.lane.extent, work, self.step) as (chunk, columns):
            self._loops(self.around, {}, chunk, columns)

    def _loops(self, around: Sequence[AxisGroup], at: Mapping[int, SSAValue], chunk: Part, columns: Part) -> None:
        """The loops around; `part` is the range of the first."""
        code = self.kernel.code
        if not around:
            _Rows(self, at, columns or (code.index(0), code.dim(self.lane.extent))).emit()
            return
        low, high = (None, code.dim(around[0].extent)) if chunk is None else chunk
        with code.loop(high, "i", lower=low) as index:
            self._loops(around[1:], {**at, around[0].last: index}, None, columns)

    def as_written(self) -> None:
        """Loops over all axes, of which the first of those around is partitioned among threads."""
        if not self.around:
            self.kernel.clone_ops([self.scan.stage.nest])
            return
        rows = AxisGroup((self.scan.axis,), self.scan.stage.axes[self.scan.axis].extent)
        with self.kernel.partition(self.around[0].extent, work_of(self.scan.stage)) as chunk:
            self._as_written([*self.around, rows, self.lane], {}, chunk)

    def _as_written(self, groups: Sequence[AxisGroup], at: Mapping[int, SSAValue], chunk: Part) -> None:
        code = self.kernel.code
        if not groups:
            Body(self.kernel, self.scan.stage, at).run(self.scan.stage.body)
            return
        low, high = (None, code.dim(groups[0].extent)) if chunk is None else chunk
        with code.loop(high, "i", lower=low) as index:
            self._as_written(groups[1:], {**at, groups[0].last: index}, None)


class _Rows:
    """The rows along the scanned axis, of a range of columns."""

    def __init__(self, columns: _Columns, at: Mapping[int, SSAValue], chunk: tuple[SSAValue, SSAValue]):
        self.kernel, self.code, self.scan = columns.kernel, columns.kernel.code, columns.scan
        self.lane, self.lanes, self.at, self.low = columns.lane, columns.lanes, at, chunk[0]
        self.length = self.code.sub(chunk[1], chunk[0])
        kind = self.scan.previous.buffer_type
        own = BufferType([columns.lane.extent], kind.dtype, align=64)
        self.before = self.code.value(AllocBufferOp(own), "before")
        self.ahead = columns.ahead

    def emit(self) -> None:
        """The sums before the first row are neutral elements."""
        code, axis, first = self.code, self.scan.stage.axes[self.scan.axis], neutral(self.scan.combine)
        assert first is not None  # as `find_scan` has found
        with code.loop(self.length, "column") as column:
            code.store(code.value(arith.ConstantOp(first)), self.before, [column])
        with code.loop(code.dim(axis.extent), "row") as row:
            self._row(_Step(self, {**self.at, self.scan.axis: row}))

    def _row(self, step: _Step) -> None:
        """Several vectors at a time, single ones, and the remainder under a mask or one by one."""
        code, kernel, lanes, done = self.code, self.kernel, self.lanes, self.code.index(0)
        for width in (VECTORS_AT_ONCE * lanes, lanes):
            count, first = code.divide(self.length, width), code.divide(done, width)
            with code.loop(count, "block", lower=first, vectorize=width > lanes) as number:
                start = code.mul(number, width)
                if self.ahead is not None and width > lanes:
                    self.ahead.prefetch(step.at, code.add(self.low, start), width)
                vector_iteration(kernel, start, width, None, [], step)
            done = code.mul(count, width)
        if self.scan.result is None:  # non-temporal stores need rows of whole vectors
            return
        if masks_are_cheap(kernel, [self.scan.stage, self.scan.last]):
            left = code.sub(self.length, done)
            with code.when(code.compare("sgt", left, 0)):
                vector_iteration(kernel, done, lanes, left, [], step)
            return
        with code.loop(self.length, "e", lower=done, vectorize=False) as element:
            vector_iteration(kernel, element, 1, None, [], step)


class _Step:
    """A row of sums, and what is computed from them."""

    def __init__(self, rows: _Rows, at: Mapping[int, SSAValue]):
        self.kernel, self.scan, self.before, self.low, self.at = rows.kernel, rows.scan, rows.before, rows.low, at
        scan, axis = self.scan, rows.lane.last
        self.sums, self.last = (Body(self.kernel, stage, at, axis) for stage in (scan.stage, scan.last))
        written = {store.buffer for stage in (scan.stage, scan.last) for store in stage.stores}
        self.sums.hoist(scan.element_ops, written)
        self.ops = scan.stage.stores if scan.result is None else scan.result.body
        self.last.fills_cache_lines = True
        self.last.hoist(self.ops, written)

    def __call__(self, index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Emits an element."""
        code, scan = self.kernel.code, self.scan
        position = code.add(self.low, index)
        accumulators, last, (store,) = self.sums.at_index(position), self.last.at_index(position), scan.stage.stores
        accumulators.run(scan.element_ops)
        known = {scan.previous.result: code.load(self.before, [index]), scan.element: accumulators.value(scan.element)}
        total = repeat(self.kernel, scan.combine, [known[operand] for operand in scan.combine.operands])
        code.store(total, self.before, [index])
        reads = [load.result for load in scan.last.loads if load.buffer is store.buffer]
        last.values |= {value: total for value in (store.value, *reads)}
        last.run(self.ops)
        return old

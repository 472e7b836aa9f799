"""Scans (cumulative sums and products): recognition; prefix sums within a vector along contiguous rows; one scan per
lane along other axes.

```
element i = combine(element i - 1, x i) if i > 0 else x i
```

Rows are read one after the other, as they lie in memory. If results are written by non-temporal stores, or are computed
from the sums, the sums of the previous row are kept in a buffer. Otherwise they are in the result, and the loops are
left for LLVM to vectorise. Then threads partition the axes around: partial rows in the caches would be read more slowly
than whole ones. Rows that are no whole vectors are done in the same way, since few of their cache lines could be
written by non-temporal stores.

A vector of L lanes takes log2 L steps, each of which combines lanes with those 1, 2, 4, ... before them, so sums are
reassociated. Only the carry from one vector to the next is a dependence chain, which ends with a block of vectors. With
AVX-512 these steps cross vectors: after them each lane has the sum of L elements, and adds the result L elements
earlier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, IntegerType, VectorType
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cost_model import (
    SCAN_BLOCK_VECTORS,
    SCAN_MIN_VECTORS,
    SCAN_PREFETCHED_TASK_BYTES,
    SCAN_TASK_BYTES,
    SCAN_VECTORS,
)
from lowering.kernels.emit.body import Body, Explicit, Lanes, repeat
from lowering.kernels.emit.guards import find_guards
from lowering.kernels.emit.kernel import Kernel, non_temporal_from
from lowering.kernels.emit.prefetching import NextBand
from lowering.kernels.emit.vectorization import (
    AxisGroup,
    collapse_axes,
    lane_count,
    masks_are_cheap,
    masks_are_registers,
    shuffle,
    vector_iteration,
)
from lowering.kernels.structure.contraction import access_of
from lowering.kernels.structure.stages import Stage, are_equivalent, work_of
from tir_dialect.dims import constant, minimum, product
from tir_dialect.dtypes import byte_size, is_dtype, lookup
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import BufferType, IteratorKind

_NEUTRAL: dict[type[Operation], float] = {arith.AddfOp: -0.0, arith.MulfOp: 1.0, arith.AddiOp: 0, arith.MuliOp: 1}


def neutral(combine: Operation) -> FloatAttr | IntegerAttr | None:
    """The neutral element of an op, which preserves even the sign of a zero; `None` if it is not known."""
    number, kind = _NEUTRAL.get(type(combine)), combine.results[0].type if combine.results else None
    if number is None:
        return None
    if isinstance(kind, AnyFloat):
        return FloatAttr(number, kind)
    found = lookup(kind).type if kind is not None and is_dtype(kind) else None
    return IntegerAttr(int(number), found) if isinstance(found, IntegerType) else None


@dataclass(frozen=True)
class Scan:
    """A stage with a scanned axis."""

    stage: Stage
    axis: int
    branch: IfOp
    combine: Operation
    """The op that combines the previous result and the element, in the branch of all elements but the first."""
    previous: LoadOp
    element: SSAValue
    result: Stage | None = None
    """The elementwise stage that is the only reader of the scan."""

    @property
    def last(self) -> Stage:
        """The stage whose result is kept."""
        return self.result or self.stage

    @property
    def is_along_rows(self) -> bool:
        """Whether scans run along contiguous rows; otherwise adjacent elements belong to different scans."""
        return self.axis == len(self.stage.axes) - 1

    @property
    def element_ops(self) -> list[Operation]:
        """The ops that compute the element, in order, in whichever branch they are."""
        skipped = (self.previous, self.combine, self.branch)
        inner = [op for op in self.branch.then_body.block.ops if not isinstance(op, YieldOp)]
        outer = [op for op in self.stage.body if not isinstance(op, StoreOp)]
        return [op for op in (*outer, *inner) if op in self.stage.needed and op not in skipped]


def find_scan(stages: Sequence[Stage]) -> Scan | None:
    """The scan that stages are; `None` if they are anything else.

    Scans along rows are of floats, and reassociated. Adjacent columns are scanned as written.
    """
    scan = _scan_of(stages[0])
    if scan is None or len(stages) == 1:
        return scan
    return replace(scan, result=stages[1]) if len(stages) == 2 and _is_elementwise_of(scan.stage, stages[1]) else None


def _is_elementwise_of(stage: Stage, result: Stage) -> bool:
    """Whether an elementwise stage without branches reads the scan only at its own index."""
    (store,) = stage.stores
    plain = not result.init and not result.of_kind(IteratorKind.REDUCE, IteratorKind.SCAN)
    if not plain or not isinstance(store.buffer.owner, AllocBufferOp) or len(result.stores) != 1:
        return False
    reads = [load for load in result.loads if load.buffer is store.buffer]
    same = all(result.accesses[load] == stage.accesses[store] for load in reads) and result.extents == stage.extents
    written = result.stores[0].buffer
    alone = not any(load.buffer is written for load in (*stage.loads, *result.loads))
    return same and alone and written is not store.buffer and not any(op.regions for op in result.needed)


def _scan_of(stage: Stage) -> Scan | None:
    scanned, guards = stage.of_kind(IteratorKind.SCAN), find_guards(stage)
    if len(scanned) != 1 or stage.of_kind(IteratorKind.REDUCE) or len(stage.stores) != 1 or len(guards) != 1:
        return None
    (axis,), store, guard = scanned, stage.stores[0], guards[0]
    if stage.init or store.value not in guard.op.outputs or len(guard.bounds) != 1 or len(guard.op.outputs) != 1:
        return None
    bound, last = guard.bounds[0], guard.op.then_body.block.last_op
    first = [step for step in range(len(stage.axes)) if bound.moves_with(step)] == [axis] and bound.step(axis) == 1
    if not first or bound.base.constant_value != -1 or not isinstance(last, YieldOp):
        return None
    found = _combined(stage, axis, guard.op, last.values[0].owner)
    return found if found is None or found.is_along_rows or _has_lanes(found) else None


def _has_lanes(scan: Scan) -> bool:
    """Whether adjacent scans are contiguous."""
    number = len(scan.stage.axes) - 1
    return scan.stage.accesses[scan.stage.stores[0]][-1].is_axis(number)


def _combined(stage: Stage, axis: int, branch: IfOp, combine: object) -> Scan | None:
    if not isinstance(combine, Operation) or neutral(combine) is None:
        return None
    if axis == len(stage.axes) - 1 and not isinstance(combine.results[0].type, AnyFloat):
        return None
    previous = [each.owner for each in combine.operands if _is_before(stage, axis, each.owner)]
    elements = [each for each in combine.operands if not _is_before(stage, axis, each.owner)]
    loads = [load for load in stage.loads if load.buffer is stage.stores[0].buffer]
    if len(previous) != 1 or len(elements) != 1 or loads != previous or not isinstance(previous[0], LoadOp):
        return None
    first = branch.else_body.block.last_op
    if not isinstance(first, YieldOp) or not are_equivalent(stage, first.values[0], stage, elements[0]):
        return None
    return Scan(stage, axis, branch, combine, previous[0], elements[0])


def _is_before(stage: Stage, axis: int, op: object) -> bool:
    """Whether an op loads the element before the one that is stored."""
    store = stage.stores[0]
    if not isinstance(op, LoadOp) or op.buffer is not store.buffer or op not in stage.accesses:
        return False
    pairs = list(zip(stage.accesses[op], stage.accesses[store], strict=True))
    moving = [pair for pair in pairs if any(index.value is not None or index.strides[axis].terms for index in pair)]
    if len(moving) != 1 or any(a != b for a, b in pairs if (a, b) not in moving):
        return False
    ((a, b),) = moving
    return b.is_axis(axis) and a.value is None and a.strides == b.strides and a.base == b.base + constant(-1)


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
        long = columns.lane.extent - SCAN_MIN_VECTORS * columns.lanes
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
        least = SCAN_PREFETCHED_TASK_BYTES if self.ahead is not None else SCAN_TASK_BYTES
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
        for width in (SCAN_VECTORS * lanes, lanes):
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


def emit_scan_rows(kernel: Kernel, scan: Scan) -> None:
    """The loops over rows, partitioned among threads, and each row."""
    stage = scan.stage
    rows = range(len(stage.axes) - 1)
    if not rows:
        _Row(kernel, scan, {}).emit()
        return
    with kernel.partition(stage.axes[0].extent, work_of(stage)) as chunk:
        _loops(kernel, scan, list(rows), {}, chunk)


def _loops(
    kernel: Kernel,
    scan: Scan,
    axes: Sequence[int],
    at: Mapping[int, SSAValue],
    chunk: tuple[SSAValue, SSAValue] | None,
) -> None:
    low, high = (None, kernel.code.dim(scan.stage.axes[axes[0]].extent)) if chunk is None else chunk
    with kernel.code.loop(high, "row", lower=low) as index:
        inner = {**at, axes[0]: index}
        if len(axes) == 1:
            _Row(kernel, scan, inner, kernel.code.sub(high, index)).emit()
        else:
            _loops(kernel, scan, axes[1:], inner, None)


class _Row:
    """Generates one row."""

    def __init__(self, kernel: Kernel, scan: Scan, at: Mapping[int, SSAValue], rows: SSAValue | None = None):
        """`rows` is how many rows are left for the loop around, including this one."""
        self.kernel, self.code, self.scan, self.at, self.rows = kernel, kernel.code, scan, at, rows
        self.axis = len(scan.stage.axes) - 1
        kind = scan.combine.results[0].type
        assert isinstance(kind, AnyFloat)  # as `find_scan` has found
        self.dtype, self.lanes = kind, kernel.target.lanes(8 * byte_size(kind))

    @cached_property
    def neutral(self) -> SSAValue:
        """A vector of the neutral element."""
        kind = VectorType(self.dtype, [self.lanes])
        number = neutral(self.scan.combine)
        assert isinstance(number, FloatAttr)  # as `find_scan` has found
        return self.code.value(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, [number.value.data])))

    def emit(self) -> None:
        """Whole vectors; the remainder is masked, or done one by one."""
        code, lanes = self.code, self.lanes
        kept = [self._neutral_vector() for _ in range(1 + (len(self._distances) if self.slides else 0))]
        length = code.dim(self.scan.stage.axes[self.axis].extent)
        count = code.divide(length, lanes)
        done = self._blocks(count, kept)
        with code.loop(count, "v", lower=done) as iteration:
            body, element = self._elements(code.mul(iteration, lanes), Lanes(self.axis, lanes))
            self._store(body, self._vector(element, kept))
        self._rest(kept, code.mul(count, lanes), length)

    def _blocks(self, count: SSAValue, kept: Sequence[SSAValue]) -> SSAValue:
        """Blocks of vectors, each of which is scanned by itself and combined with the result of those before; gives the
        number of their vectors, after which the carry is that result.
        """
        code, lanes, zero, before = self.code, self.lanes, self.code.index(0), self._neutral_vector()
        blocks, carry = code.divide(count, SCAN_BLOCK_VECTORS), kept[-1]
        with code.loop(blocks, "block") as block:
            earlier = code.load(before, [zero], lanes)
            with code.loop(code.index(SCAN_BLOCK_VECTORS), "v") as vector:
                start = code.mul(code.add(code.mul(block, SCAN_BLOCK_VECTORS), vector), lanes)
                body, element = self._elements(start, Lanes(self.axis, lanes))
                self._store(body, self._combined(earlier, self._vector(element, kept)))
            code.store(self._combined(earlier, code.load(carry, [zero], lanes)), before, [zero])
            code.store(self.neutral, carry, [zero])
        code.store(code.load(before, [zero], lanes), carry, [zero])
        return code.mul(blocks, SCAN_BLOCK_VECTORS)

    def _neutral_vector(self) -> SSAValue:
        kind = BufferType([self.lanes], self.dtype, scope="local", align=64)
        memory = self.code.value(AllocBufferOp(kind), "carry")
        self.code.store(self.neutral, memory, [self.code.index(0)])
        return memory

    def _vector(self, element: SSAValue, kept: Sequence[SSAValue]) -> SSAValue:
        """The results of a vector, given the values kept from the previous one, which are replaced."""
        code, lanes, zero = self.code, self.lanes, self.code.index(0)
        *chunks, carry = kept
        if not self.slides:
            (accumulators, total), before = self._within(element), code.load(carry, [zero], lanes)
            code.store(self._combined(before, total), carry, [zero])
            return self._combined(before, accumulators)
        for distance, chunk in zip(self._distances, chunks, strict=True):
            earlier = self._shuffled(
                code.load(chunk, [zero], lanes), element, [lanes - distance + n for n in range(lanes)]
            )
            code.store(element, chunk, [zero])
            element = self._combined(earlier, element)
        result = self._combined(code.load(carry, [zero], lanes), element)
        code.store(result, carry, [zero])
        return result

    @property
    def slides(self) -> bool:
        """Whether the steps cross vectors, until each lane has combined as many elements as a vector has. The
        total of a vector is not needed then, which saves three of twelve instructions.
        """
        return masks_are_registers(self.kernel)

    @property
    def _distances(self) -> list[int]:
        """The powers of two below the number of lanes."""
        return [1 << step for step in range(self.lanes.bit_length() - 1)]

    def _rest(self, kept: Sequence[SSAValue], done: SSAValue, length: SSAValue) -> None:
        code, lanes, zero = self.code, self.lanes, self.code.index(0)
        if masks_are_cheap(self.kernel, [self.scan.stage, self.scan.last]):
            left = code.sub(length, done)
            with code.when(code.compare("sgt", left, 0)):
                body, element = self._elements(done, Lanes(self.axis, lanes, left))
                self._store_first(body, self._vector(element, kept), left, length)
            return
        carry = kept[-1]
        with code.loop(length, "e", lower=done, vectorize=False) as index:
            body, element = self._elements(index, None)
            total = self._combined(code.load(carry, [zero]), element)
            code.store(total, carry, [zero])
            self._store(body, total)

    def _store_first(self, body: Explicit, value: SSAValue, left: SSAValue, length: SSAValue) -> None:
        """The remainder of a row; lanes beyond it write into the next rows, which overwrite them later."""
        code, rows = self.code, self.rows
        if rows is None or masks_are_registers(self.kernel) or not self._is_contiguous():
            self._store(body, value)
            return
        room = code.add(left, code.mul(code.sub(rows, 1), length))
        with code.when(code.compare("sge", room, self.lanes)) as branch:
            self._store(body, value, Lanes(self.axis, self.lanes))
        with code.otherwise(branch):
            self._store(body, value)

    def _is_contiguous(self) -> bool:
        """Whether each row of the result begins where the previous one ends."""
        stage = self.scan.last
        access = access_of(stage, stage.stores[0])
        return access.strides[self.axis - 1] is stage.axes[self.axis].extent and not access.computed

    def _elements(self, start: SSAValue, lanes: Lanes | None) -> tuple[Explicit, SSAValue]:
        """The elements to scan, as a vector or one element."""
        body = Explicit(self.kernel, self.scan.stage, {**self.at, self.axis: start}, lanes)
        body.run(self.scan.element_ops)
        return body, body.widened(body.value(self.scan.element))

    def _within(self, accumulators: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The inclusive prefix of each lane, and the total in all lanes."""
        lanes, chunk = self.lanes, self._lanes_of_a_part
        step = 1
        while step < chunk:
            order = [lane if lane % chunk < step else lanes + lane - step for lane in range(lanes)]
            accumulators = self._combined(self._shuffled(self.neutral, accumulators, order), accumulators)
            step *= 2
        ends = self._shuffled(accumulators, accumulators, [lane // chunk * chunk + chunk - 1 for lane in range(lanes)])
        if chunk == lanes:
            return accumulators, ends
        order = [lane if lane < chunk else lanes + lane - chunk for lane in range(lanes)]
        before = self._shuffled(self.neutral, ends, order)
        others = self._shuffled(ends, ends, [(lane + chunk) % lanes for lane in range(lanes)])
        return self._combined(before, accumulators), self._combined(ends, others)

    @property
    def _lanes_of_a_part(self) -> int:
        """Lanes within which steps shuffle: those of 128 bits with AVX2, where crossing halves is slow, else all."""
        halves = self.kernel.target.arch.startswith("x86") and not masks_are_registers(self.kernel)
        return min(self.lanes, 128 // (8 * byte_size(self.dtype))) if halves else self.lanes

    def _shuffled(self, left: SSAValue, right: SSAValue, order: Sequence[int]) -> SSAValue:
        return shuffle(self.code, (left, right), order)

    def _combined(self, before: SSAValue, element: SSAValue) -> SSAValue:
        op = self.scan.combine
        copy = type(op).create(operands=(before, element), result_types=[element.type], properties=dict(op.properties))
        return self.code.value(copy)

    def _store(self, body: Explicit, value: SSAValue, lanes: Lanes | None = None) -> None:
        """Writes the scan, or the elementwise stage of it; with other lanes than the body if they are given."""
        stage, (store,) = self.scan.last, self.scan.stage.stores
        last = Explicit(self.kernel, stage, body.at, lanes or body.lanes)
        last.fills_cache_lines = True
        if self.scan.result is None:
            last.values[store.value] = value
            last.run(stage.stores)
            return
        last.values |= {load.result: value for load in stage.loads if load.buffer is store.buffer}
        last.run(stage.body)

"""Pooling: sliding windows that overlap along the lanes. They are separable, so the rows of a window are combined
first, then its taps along the row.

A window of 3 x 3 takes 3 + 3 steps instead of 9.

Through memory (`BufferedPooling`): the combined row is in a buffer, padded with neutral elements, so that windows at
the edges need no condition and only the last store is masked.

In registers (`RegisterPooling`), as AVX-512 can: two vectors of the combined row are shuffled. Through memory a vector
would be loaded from parts of two recent stores, which cannot be forwarded; for short rows this stall exceeds everything
else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from lowering.kernels.emit.accumulators import (
    accumulator,
    combine_keys,
    float_of_key,
    folds_as_integers,
    key_of,
)
from lowering.kernels.emit.body import Body, combined
from lowering.kernels.emit.guards import ClippedReduction, all_iterations, find_clipping, range_of, unneeded
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.emit.vectorization import (
    AxisGroup,
    Range,
    choose_lane_axes,
    collapse_axes,
    lane_count,
    masks_are_registers,
    shuffle,
    vector_iteration,
)
from lowering.kernels.structure.reduction import Reduction
from lowering.kernels.structure.stages import Index, Stage
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import GLOBAL_SCOPE, BufferType, IteratorKind, LoopKind


@dataclass(frozen=True)
class Window:
    """A reduction whose loads along one dimension are at `stride * lane + dilation * tap`."""

    stage: Stage
    """The reduction over rows of the windows: indices are those of the input row, without taps."""
    reduction: Reduction
    clipping: ClippedReduction | None
    lane: int
    tap: int
    stride: int
    dilation: int
    results: Dim
    """Results of a row."""

    @property
    def length(self) -> Dim:
        """Elements of an input row that the windows cover."""
        return self.stride * (self.results - 1) + self.span + 1

    @property
    def span(self) -> int:
        """The distance from the first to the last element of a window."""
        return self.dilation * (self.size - 1)

    @property
    def size(self) -> int:
        """Taps of a window along the lanes."""
        return self.stage.axes[self.tap].extent.constant_value or 1


def find_window(stage: Stage, reduction: Reduction, lane: int, clipping: ClippedReduction | None) -> Window | None:
    """The window that slides along the lanes; `None` if there is none, or it is not separable."""
    reduced = stage.of_kind(IteratorKind.REDUCE)
    loads = [load for load in stage.loads if load not in reduction.accumulators]
    indices = [index for load in loads for index in stage.accesses[load] if index.strides[lane].terms]
    if len(reduction.combine) != 1 or not indices or any(load in stage.wholes for load in loads):
        return None
    taps = [axis for axis in reduced if indices[0].strides[axis].terms]
    stride = indices[0].strides[lane].constant_value
    if len(taps) != 1 or stride is None or stride < 1:
        return None
    size, dilation = (dim.constant_value for dim in (stage.axes[taps[0]].extent, indices[0].strides[taps[0]]))
    if size is None or size < 2 or dilation is None or dilation < 1 or dilation * size < stride:
        return None
    steps = {axis: step for axis, step in ((lane, stride), (taps[0], dilation))}
    if not _moves_together(stage, loads, steps) or not _is_along(clipping, lane, taps[0], steps):
        return None
    if not _only_indexes(stage, clipping, steps):
        return None
    row = _row_stage(stage, loads, lane, taps[0])
    return Window(row, reduction, clipping, lane, taps[0], stride, dilation, stage.axes[lane].extent)


def _moves_together(stage: Stage, loads: Sequence[LoadOp], steps: Mapping[int, int]) -> bool:
    """Whether every index moves with neither of the axes, or with both by their strides."""
    wanted = [constant(step) for step in steps.values()]
    for load in loads:
        for index in stage.accesses[load]:
            found = [index.strides[axis] for axis in steps]
            if index.value is not None or (found != wanted and any(each.terms for each in found)):
                return False
    return True


def _is_along(clipping: ClippedReduction | None, lane: int, tap: int, steps: Mapping[int, int]) -> bool:
    """Whether bounds of the lanes are bounds of indices in the input row, the same in all rows."""
    for bound in () if clipping is None else clipping.lane_bounds:
        sign = 1 if (bound.step(lane) or 0) > 0 else -1
        if any(bound.step(axis) != sign * steps.get(axis, 0) for axis in range(len(bound.strides))):
            return False
    return clipping is None or tap not in clipping.loop_bounds


def _only_indexes(stage: Stage, clipping: ClippedReduction | None, axes: Mapping[int, int]) -> bool:
    """Whether the axes are used only in indices, and in the test whether these are in bounds."""
    if clipping is None:
        return stage.pinned.isdisjoint(axes)
    skipped = unneeded(stage, frozenset((clipping.guard.op,)))
    rest = [op for op in stage.block.body.walk() if op in stage.needed and op not in skipped]
    values = {stage.axes[axis].value for axis in axes}
    users = [op for op in rest if not isinstance(op, LoadOp | StoreOp) and not op.regions]
    return not any(operand in values or operand.owner in skipped for op in users for operand in op.operands)


def _row_stage(stage: Stage, loads: Sequence[LoadOp], lane: int, tap: int) -> Stage:
    def moved(index: Index) -> Index:
        if not index.strides[lane].terms:
            return index
        steps = {lane: constant(1), tap: constant(0)}
        return replace(index, strides=tuple(steps.get(axis, old) for axis, old in enumerate(index.strides)))

    accesses = {op: tuple(map(moved, old)) if op in loads else old for op, old in stage.accesses.items()}
    return replace(stage, accesses=accesses)


@dataclass(frozen=True)
class ReductionLanes:
    """The lanes of a reduction."""

    group: AxisGroup
    window: Window | None
    """Windows that slide along the group, if a row of results is computed from them."""
    taps_if_few: bool
    """Whether only the taps are contiguous, which is profitable for rows of a few results."""


def reduction_lanes(
    kernel: Kernel,
    stage: Stage,
    reduction: Reduction,
    spatial: Sequence[AxisGroup],
    reduced: Sequence[AxisGroup],
    inner: bool,
) -> ReductionLanes:
    """Lanes along the best group; if that is one side of a short window, along the results.

    A window of 5 x 5 fills no vector, and a horizontal reduction for each result would take long. `inner` says whether
    there are loops around all groups.
    """
    best = choose_lane_axes(kernel, [stage], [*reduced, *spatial])
    if not spatial:
        return ReductionLanes(best, None, False)
    along = best if best in spatial else spatial[-1]
    lanes = lane_count(kernel, [stage], along)
    alone = all(stage.extents[axis].constant_value == 1 for axis in along.axes[:-1])
    if lanes == 1 or not alone or not (inner or len(spatial) > 1):
        return ReductionLanes(best, None, False)
    window = find_window(stage, reduction, along.last, find_clipping(stage, reduction, along.last))
    if window is None or (along is not best and window.size >= lanes):
        return ReductionLanes(best, None, False)
    return ReductionLanes(along, window, along is not best)


class PoolingCode:
    """Generates pooling: `prepare` before all loops, then `emit` for each row of results."""

    def __init__(self, kernel: Kernel, stage: Stage, window: Window):
        self.kernel, self.code, self.stage, self.window = kernel, kernel.code, stage, window
        self.rows = [axis for axis in stage.of_kind(IteratorKind.REDUCE) if axis != window.tap]
        lane = collapse_axes(kernel, [window.stage], [window.lane])[0]
        self.lanes = lane_count(kernel, [stage], lane)
        self.kind = type(window.reduction.combine[0])
        self.has_keys = folds_as_integers(kernel, window.reduction.combine) and window.size > 2
        dtype = i32 if self.has_keys else window.reduction.accumulators[0].buffer_type.dtype
        self.row_type = BufferType([self.lanes], dtype)
        """The type of the combined row."""
        self.following: Stage | None = None
        """An elementwise stage that is fused, as the only reader of the results."""

    def prepare(self) -> None:
        """The range of the row that has data."""
        window = self.window
        bounds = () if window.clipping is None else window.clipping.lane_bounds
        axis, steps = window.lane, (1, -1)
        along = [bound.with_step(axis, steps[(bound.step(axis) or 0) < 0]) for bound in bounds]
        self.low, self.high = range_of(self.code, along, axis, window.length, {})

    def in_row(self, value: SSAValue) -> SSAValue:
        """A value as the combined row has it: integer keys of floats, if many are compared."""
        return key_of(self.kernel, value, self.kind) if self.has_keys else value

    def combined(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """Two values of the combined row, combined."""
        if self.has_keys:
            return combine_keys(self.kernel, self.kind, left, right)
        return combined(self.kernel, self.window.reduction, [left], [right])[0]

    def first(self) -> SSAValue:
        """The neutral element."""
        body = Body(self.kernel, self.stage, {})
        body.run([op for op in self.stage.init if not isinstance(op, StoreOp)])
        return body.value(self.window.reduction.first[0])

    def new_sums(self, kind: BufferType, first: SSAValue) -> SSAValue:
        """A vector accumulator with initial values."""
        accumulators = accumulator(self.kernel, kind, self.lanes)
        with self.code.loop(self.code.index(self.lanes), "lane", kind=LoopKind.VECTORIZED) as lane:
            self.code.store(first, accumulators, [lane])
        return accumulators

    def combine_rows(
        self, at: Mapping[int, SSAValue], start: SSAValue, some: Range, accumulators: SSAValue, as_in_row: bool = False
    ) -> None:
        """Combines a vector of elements of all rows of the windows with `sums`, in some lanes; these hold
        elements, or keys if `as_in_row`.
        """
        code, kernel, window = self.code, self.kernel, self.window
        stage, reduction = window.stage, window.reduction
        ranges = all_iterations() if window.clipping is None else window.clipping.ranges(code, stage, at)
        left_out = {*reduction.accumulators, *reduction.combine, *stage.stores}

        def reduce(axes: Sequence[int], at: Mapping[int, SSAValue]) -> None:
            if axes:
                low, high = ranges.get(axes[0], (None, code.dim(stage.axes[axes[0]].extent)))
                name, few = stage.axes[axes[0]].value.name_hint or "i", as_in_row and axes[0] in ranges
                with code.loop(high, name, lower=low, vectorize=not few) as index:
                    reduce(axes[1:], {**at, axes[0]: index})
                return
            shared = Body(kernel, stage, at, window.lane)
            if window.clipping is not None:
                shared.assume(frozenset((window.clipping.guard.op,)))
            shared.hoist(stage.body, {store.buffer for store in stage.stores})

            def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
                body = shared.at_index(index)
                body.run([op for op in stage.body if op not in left_out])
                element = body.value(reduction.sources[0])
                if as_in_row:
                    return [self.combined(old[0], self.in_row(element))]
                return combined(kernel, reduction, old, [element])

            vector_iteration(kernel, start, self.lanes, some, [accumulators], step)

        reduce(self.rows, at)

    def finish(
        self, at: Mapping[int, SSAValue], start: SSAValue, left: SSAValue | None, accumulators: SSAValue
    ) -> None:
        """Stores a vector of results, or the first `left` of them."""
        kernel, window, reduction = self.kernel, self.window, self.window.reduction

        def step(index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
            (store,), value = reduction.stores, float_of_key(kernel, old[0]) if self.has_keys else old[0]
            stage = self.stage if self.following is None else self.following
            body = Body(kernel, stage, {**at, window.lane: index}, window.lane)
            body.values[store.value] = value
            body.values |= {load.result: value for load in stage.loads if load.buffer is store.buffer}
            body.run(reduction.stores if self.following is None else stage.body)
            return old

        vector_iteration(kernel, start, self.lanes, left, [accumulators], step)


class BufferedPooling(PoolingCode):
    """Pooling with the combined row in memory."""

    def prepare(self) -> None:
        """Allocates the row, full of neutral elements."""
        code, window = self.code, self.window
        size = window.length + window.stride * self.lanes
        scope = "local" if size.constant_value is not None else GLOBAL_SCOPE
        kind = BufferType([size], self.row_type.dtype, scope=scope, align=64)
        self.row = code.value(AllocBufferOp(kind), "row")
        first = self.in_row(self.first())
        with code.loop(code.dim(size), "w") as index:
            code.store(first, self.row, [index])
        super().prepare()

    def emit(self, at: Mapping[int, SSAValue]) -> None:
        """The results of a row."""
        self._vectors(self.low, self.high, lambda start, left: self._combine_rows(at, start, left))
        results = self.code.dim(self.window.results)
        self._vectors(self.code.index(0), results, lambda start, left: self._combine_taps(at, start, left))

    def _vectors(self, low: SSAValue, high: SSAValue, vector: Callable[[SSAValue, SSAValue | None], None]) -> None:
        """Whole vectors from `low` on, then the remainder."""
        code = self.code
        length = code.sub(high, low)
        count = code.divide(length, self.lanes)
        with code.loop(count, "block") as block:
            vector(code.add(low, code.mul(block, self.lanes)), None)
        done = code.mul(count, self.lanes)
        left = code.sub(length, done)
        with code.when(code.compare("sgt", left, 0)):
            vector(code.add(low, done), left)

    def _combine_rows(self, at: Mapping[int, SSAValue], start: SSAValue, left: SSAValue | None) -> None:
        """A vector of the combined row."""
        accumulators = self.new_sums(self.window.reduction.accumulators[0].buffer_type, self.first())
        self.combine_rows(at, start, left, accumulators)
        # Lanes without data have the neutral element; a masked store would delay the loads of the row.
        vector_iteration(self.kernel, start, self.lanes, None, [accumulators], self._keep)

    def _keep(self, index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
        self.code.store(self.in_row(old[0]), self.row, [index])
        return old

    def _combine_taps(self, at: Mapping[int, SSAValue], start: SSAValue, left: SSAValue | None) -> None:
        """A vector of results, of which the first `left` are stored."""
        code, window, accumulators = self.code, self.window, self.new_sums(self.row_type, self.in_row(self.first()))
        size = self.stage.axes[window.tap].extent
        with code.loop(code.dim(size), self.stage.axes[window.tap].value.name_hint or "i") as tap:
            further = code.mul(tap, window.dilation)

            def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
                element = code.load(self.row, [code.add(code.mul(index, window.stride), further)])
                return [self.combined(old[0], element)]

            vector_iteration(self.kernel, start, self.lanes, None, [accumulators], step)
        self.finish(at, start, left, accumulators)


REGISTERS = 2
"""Vectors that a shuffle takes."""


class RegisterPooling(PoolingCode):
    """Pooling with the combined row in registers."""

    def __init__(self, kernel: Kernel, stage: Stage, window: Window, one_iteration: bool = False):
        """With `one_iteration`, the code is only for rows of one iteration."""
        super().__init__(kernel, stage, window)
        self.one_iteration = one_iteration

    @property
    def count(self) -> int:
        """Results of an iteration: those whose windows are in the registers."""
        return (REGISTERS * self.lanes - 1 - self.window.span) // self.window.stride + 1

    @property
    def is_possible(self) -> bool:
        """Whether registers are shuffled and masked at will, and an iteration advances by a vector or more."""
        is_small = self.window.size <= self.lanes and byte_size(self.row_type.dtype) >= 4
        return masks_are_registers(self.kernel) and is_small and self.count * self.window.stride >= self.lanes

    @property
    def suits_long_rows(self) -> bool:
        """Whether this is faster than through memory for rows of many iterations: not if iterations overlap
        much, or if it takes more than an addition to combine elements.
        """
        shared = REGISTERS * self.lanes - self.count * self.window.stride
        return isinstance(self.window.reduction.combine[0], arith.AddfOp) and 8 * shared <= REGISTERS * self.lanes

    @property
    def is_one_iteration(self) -> SSAValue:
        """Whether one iteration has all results of a row."""
        return self.code.compare("sle", self.code.dim(self.window.results), self.count)

    def emit(self, at: Mapping[int, SSAValue]) -> None:
        """The results of a row."""
        if self.one_iteration:
            self._iteration(at, self.code.index(0))
            return
        iterations = ceildiv(self.window.results, constant(self.count))
        with self.code.loop(self.code.dim(iterations), "iteration", vectorize=False) as iteration:
            self._iteration(at, self.code.mul(iteration, self.count))

    def _iteration(self, at: Mapping[int, SSAValue], first: SSAValue) -> None:
        """The results of an iteration from `first` on."""
        code, window, results = self.code, self.window, self.code.dim(self.window.results)
        columns = self._columns(at, code.mul(first, window.stride))
        left = code.minimum(code.sub(results, first), self.count)
        self._results(at, columns, 0, first, left)
        if self.count > self.lanes:
            with code.when(code.compare("sgt", left, self.lanes)):
                second = code.add(first, self.lanes)
                self._results(at, columns, self.lanes, second, code.sub(left, self.lanes))

    def _columns(self, at: Mapping[int, SSAValue], index: SSAValue) -> Sequence[SSAValue]:
        """The vectors of the combined row from an index on; neutral elements outside of the data."""
        code, lanes = self.code, self.lanes
        columns = [self.new_sums(self.row_type, self.in_row(self.first())) for _ in range(REGISTERS)]
        for number, accumulators in enumerate(columns):
            start = code.add(index, number * lanes)
            inside = code.sub(self.low, start), code.sub(self.high, start)
            with code.when(code.compare("sgt", inside[1], 0)):
                self.combine_rows(at, start, inside, accumulators, as_in_row=True)
        return [code.load(accumulators, [code.index(0)], lanes) for accumulators in columns]

    def _results(
        self, at: Mapping[int, SSAValue], columns: Sequence[SSAValue], before: int, first: SSAValue, left: SSAValue
    ) -> None:
        """A vector of results of an iteration, from offset `before` on, of which `left` are stored."""
        code, window, lanes = self.code, self.window, self.lanes
        taps = [accumulator(self.kernel, self.row_type, lanes) for _ in range(window.size)]
        last = REGISTERS * lanes - 1
        for number, tap in enumerate(taps):
            indices = (window.stride * (before + lane) + window.dilation * number for lane in range(lanes))
            order = [min(index, last) for index in indices]  # elements beyond belong to no result of this iteration
            code.store(shuffle(code, (columns[0], columns[1]), order), tap, [code.index(0)])

        def step(index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
            total = old[0]
            for each in old[1:]:
                total = self.combined(total, each)
            return [total, *old[1:]]

        vector_iteration(self.kernel, code.index(0), lanes, None, taps, step)
        self.finish(at, first, left, taps[0])


@dataclass
class Pooling:
    """The code of pooling, in one or both forms; if there are both, a call chooses."""

    short: RegisterPooling | None
    """The form in registers, for rows of one iteration."""
    long: RegisterPooling | BufferedPooling | None

    @property
    def are_in_registers(self) -> bool:
        """Whether short rows are combined in registers."""
        return self.short is not None or isinstance(self.long, RegisterPooling)

    def prepare(self) -> None:
        """Before all loops."""
        for way in (self.long, self.short):
            if way is not None:
                way.prepare()

    def emit(self, at: Mapping[int, SSAValue]) -> None:
        """The results of a row."""
        ways = [way for way in (self.short, self.long) if way is not None]
        if self.short is None or len(ways) == 1:
            ways[0].emit(at)
            return
        code = self.short.code
        with code.when(self.short.is_one_iteration) as is_short:
            ways[0].emit(at)
        with code.otherwise(is_short):
            ways[1].emit(at)

    def follow(self, stage: Stage) -> None:
        """Fuses an elementwise stage with all results."""
        for way in (self.short, self.long):
            if way is not None:
                way.following = stage

    def take_short(self, stage: Stage) -> Pooling:
        """The code for short rows alone, with a fused elementwise stage."""
        short = self.short
        if short is None:
            assert self.long is not None  # there is one of both
            short = RegisterPooling(self.long.kernel, self.long.stage, self.long.window, one_iteration=True)
        short.following, self.short = stage, None
        return Pooling(short, None)


def choose_pooling(kernel: Kernel, stage: Stage, window: Window) -> Pooling:
    """The form, or both, that suit a window."""
    registers, memory = RegisterPooling(kernel, stage, window), BufferedPooling(kernel, stage, window)
    if not registers.is_possible:
        return Pooling(None, memory)
    if registers.suits_long_rows:
        return Pooling(None, registers)
    return Pooling(RegisterPooling(kernel, stage, window, one_iteration=True), memory)

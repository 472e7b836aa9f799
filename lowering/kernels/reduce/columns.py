"""Reductions over rows of a matrix: lanes run along a kept axis, and each lane has a result of its own.

Some vectors of results stay in registers while the reduced axes run. A matrix larger than the caches is read in bands
of a few whole rows instead: its pages are visited in order, and the results are kept in memory between two bands. Where
masks are expensive, lanes past the last column accumulate the beginning of the next row, and are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cost_model import BAND_ROWS, COLUMNS_BAND_VECTORS, COLUMNS_VECTORS, SUM_BLOCK_STEPS
from lowering.kernels.emit.accumulators import (
    BufferTotals,
    Totals,
    accumulator,
    in_blocks,
    iterations_of_block,
    with_and_without_blocks,
)
from lowering.kernels.emit.body import Body, combined
from lowering.kernels.emit.guards import ClippedReduction, Ranges, all_iterations
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.emit.prefetching import NextBand
from lowering.kernels.emit.vector_loop import constant_of
from lowering.kernels.emit.vectorization import AxisGroup, Step, masks_are_registers, vector_iteration
from lowering.kernels.structure.reduction import Reduction, rounds
from lowering.kernels.structure.stages import Stage, is_heavy
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum, product
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.memory import AllocBufferOp, StoreOp
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class Columns:
    """How a stage reduces along some axes, with `lanes` results in a vector."""

    kernel: Kernel
    stage: Stage
    reduction: Reduction
    reduced: Sequence[AxisGroup]
    lane: AxisGroup
    lanes: int
    clipping: ClippedReduction | None
    ahead: NextBand | None
    """The prefetches of a band, if several vectors of a row are accumulated at once."""

    @property
    def unroll(self) -> int:
        """How many vectors of results are accumulated at once."""
        branches = self.clipping is None or self.clipping.lane_bounds
        simple = not any(is_heavy(op) or (branches and isinstance(op, IfOp)) for op in self.stage.needed)
        return COLUMNS_VECTORS if simple and len(self.stage.stores) == 1 else 1

    def emit(
        self,
        at: Mapping[int, SSAValue],
        low: SSAValue | None,
        length: SSAValue,
        rows: tuple[SSAValue, SSAValue] | None = None,
    ) -> None:
        """The results from `low` on, for given values of the other kept axes.

        With a range of `rows`, which needs a single reduced axis and no clipping, the partial results of these rows.
        """
        code, known = self.kernel.code, constant_of(length)
        ranges = all_iterations() if self.clipping is None else self.clipping.ranges(code, self.stage, at)
        if rows is not None:
            ranges = {self.reduced[0].last: rows}
        whole = _RowRange(self, at, low, length, ranges, None)
        if len(self.reduced) > 1 or self.clipping is not None or self.unroll == 1:
            whole.emit()
        elif known is not None:
            self._bands(at, low, length, rows) if known > self.lanes * self.unroll else whole.emit()
        else:
            with code.when(code.compare("sgt", length, self.lanes * self.unroll)) as is_wide:
                self._bands(at, low, length, rows)
            with code.otherwise(is_wide):
                whole.emit()

    def _bands(
        self,
        at: Mapping[int, SSAValue],
        low: SSAValue | None,
        length: SSAValue,
        rows: tuple[SSAValue, SSAValue] | None,
    ) -> None:
        """Bands of whole rows."""
        code, axis = self.kernel.code, self.reduced[0].last
        begin, end = rows or (code.index(0), code.dim(self.reduced[0].extent))
        # Without rows there is still a band, which writes the initial values.
        bands = code.maximum(code.divide(code.add(code.sub(end, begin), BAND_ROWS - 1), BAND_ROWS), 1)

        def run(lower: SSAValue | None, upper: SSAValue) -> None:
            with code.loop(upper, "band", lower=lower) as band:
                first = code.add(begin, code.mul(band, BAND_ROWS))
                rows_of_band = {axis: (first, code.minimum(code.add(first, BAND_ROWS), end))}
                is_first = code.compare("eq", band, code.index(0) if lower is None else lower)
                _RowRange(self, at, low, length, rows_of_band, is_first).emit()

        height = self.reduced[0].extent.constant_value
        if rounds(self.reduction) and (height is None or height > SUM_BLOCK_STEPS):
            totals = partial(_RowTotals, _RowRange(self, at, low, length, {}, None))
            in_blocks(code, (None, bands), run, totals, constant(SUM_BLOCK_STEPS // BAND_ROWS))
        else:
            run(None, bands)


Iteration: TypeAlias = Callable[[Step], None]
"""Does a step for some lanes."""


def _is_harmless(op: Operation) -> bool:
    """Whether an op may have any operands: float arithmetic does not trap."""
    return not op.regions and all(isinstance(result.type, AnyFloat) for result in op.results)


class _RowRange:
    """The accumulation over some ranges of the reduced axes."""

    def __init__(
        self,
        columns: Columns,
        at: Mapping[int, SSAValue],
        low: SSAValue | None,
        length: SSAValue,
        ranges: Ranges,
        is_first: SSAValue | None,
    ):
        """`is_first` says whether there are no results yet; `None` if there never are."""
        self.columns, self.kernel, self.code, self.stage = columns, columns.kernel, columns.kernel.code, columns.stage
        self.reduction, self.lane, self.lanes = columns.reduction, columns.lane, columns.lanes
        self.at, self.low, self.length, self.ranges, self.is_first = at, low, length, ranges, is_first
        self._has_blocks = True
        """Whether loops inside the outermost one have blocked accumulation."""

    def emit(self) -> None:
        """Several vectors at once, then single ones, then the remainder."""
        code, done = self.code, self.code.index(0)
        most = self.columns.unroll if self.is_first is None else COLUMNS_BAND_VECTORS
        for unroll in (most, 1) if most > 1 else (1,):
            done = self._blocks(done, unroll)
        known = constant_of(self.length)
        if known is not None and known == constant_of(done):
            return
        left = code.sub(self.length, done)
        with code.when(code.compare("sgt", left, 0)):
            self._block(done, 1, left)

    def _blocks(self, done: SSAValue, unroll: int) -> SSAValue:
        """Full blocks of some vectors from `done` on; returns where they end."""
        code, step, known = self.code, unroll * self.lanes, constant_of(self.length)
        if known is not None and known // step * step <= (constant_of(done) or 0):
            return done
        end = code.index(known // step * step) if known is not None else code.mul(code.divide(self.length, step), step)
        first = None if constant_of(done) == 0 else code.divide(done, step)
        with code.loop(code.divide(end, step), "block", lower=first) as block:
            self._block(code.mul(block, step), unroll, None)
        return end

    def _block(self, done: SSAValue, unroll: int, left: SSAValue | None) -> None:
        """The results of some vectors; with `left`, of the first lanes of one."""
        kernel, reduction, code = self.kernel, self.reduction, self.code
        start, lanes = done if self.low is None else code.add(self.low, done), unroll * self.lanes
        accumulators = [accumulator(kernel, load.buffer_type, lanes) for load in reduction.accumulators]

        def iterate(step: Step) -> None:
            vector_iteration(kernel, start, lanes, left, accumulators, step)

        totals = partial(BufferTotals, kernel, reduction, accumulators, lanes, partial(iterate, self._first))
        if self.is_first is None:
            iterate(self._first)
        else:
            with code.when(self.is_first) as branch:
                iterate(self._first)
            with code.otherwise(branch):
                iterate(self._partial_results)
        unmasked_end = None if left is None else self._last_whole_row()
        if unmasked_end is None:
            prefetches = self.is_first is not None and unroll > 1
            prefetched = (start, lanes) if prefetches else None

            def reduce(has_blocks: bool) -> None:
                self._has_blocks = has_blocks
                self._reduce(list(self.columns.reduced), self.at, iterate, totals, prefetched)

            inner = [group.extent for group in self.columns.reduced[1:]]
            if inner and rounds(reduction):
                with_and_without_blocks(code, [constant(SUM_BLOCK_STEPS) - product(inner)], reduce)
            else:
                reduce(True)
        else:
            self._reduce_past_row_end(
                unmasked_end, iterate, partial(vector_iteration, kernel, start, lanes, None, accumulators), totals
            )
        iterate(self._store)

    def _reduce_past_row_end(
        self, unmasked_end: SSAValue, iterate: Iteration, whole: Iteration, totals: Callable[[], Totals]
    ) -> None:
        """The rows before `unmasked_end` without a mask, whose last lanes read the beginning of the next rows;
        then the others.
        """
        code, group = self.code, self.columns.reduced[0]
        low, high = self.ranges.get(group.last, (code.index(0), code.dim(group.extent)))
        for first, end, some in (
            (low, code.minimum(high, unmasked_end), whole),
            (code.maximum(low, unmasked_end), high, iterate),
        ):

            def run(lower: SSAValue | None, upper: SSAValue, some: Iteration = some) -> None:
                with code.loop(upper, "row", lower=lower) as index:
                    self._reduce([], {**self.at, group.last: index}, some, totals)

            self._in_blocks((first, code.maximum(first, end)), run, totals, [])

    def _last_whole_row(self) -> SSAValue | None:
        """The row up to which a whole vector can be loaded at any element; `None` if masks are free."""
        groups, code = self.columns.reduced, self.code
        if len(groups) != 1 or self.columns.clipping is not None or masks_are_registers(self.kernel):
            return None
        loads = [load for load in self.stage.loads if load not in self.reduction.accumulators]
        accesses = [self.kernel.access(self.stage, load) for load in loads]
        moving = [access for access in accesses if access.strides[self.lane.last].terms]
        steps = {access.strides[groups[0].last] for access in moving}
        known = all(access.strides[self.lane.last].constant_value == 1 and not access.computed for access in moving)
        if not known or len(steps) != 1 or not all(map(_is_harmless, self.stage.body)):
            return None
        (step,) = steps
        ahead = maximum(groups[0].extent - ceildiv(self.lanes, maximum(step, 1)), 0)
        return code.dim(ahead * maximum(minimum(step, 1), 0))  # rows do not overlap

    def _first(self, index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
        body = self._body(index)
        body.run([op for op in self.stage.init if not isinstance(op, StoreOp)])
        return [body.value(first) for first in self.reduction.first]

    def _partial_results(self, index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
        return self.results(index)

    def results(self, index: SSAValue) -> list[SSAValue]:
        """Partial results from memory."""
        body = self._body(index)
        body.run(self.reduction.accumulators)
        return [body.value(load.result) for load in self.reduction.accumulators]

    def _store(self, index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
        self.put(index, old)
        return list(old)

    def put(self, index: SSAValue, values: Sequence[SSAValue]) -> None:
        """Writes results to memory."""
        body = self._body(index)
        body.values |= {store.value: value for store, value in zip(self.reduction.stores, values, strict=True)}
        body.run(self.reduction.stores)

    def _body(self, index: SSAValue) -> Body:
        return Body(self.kernel, self.stage, {**self.at, self.lane.last: index}, self.lane.last)

    def _in_blocks(
        self,
        bounds: tuple[SSAValue | None, SSAValue],
        run: Callable[[SSAValue | None, SSAValue], None],
        totals: Callable[[], Totals],
        inner: Sequence[Dim],
    ) -> None:
        """A loop with others of some extents inside; bands have their totals for a whole row instead."""
        is_outermost = len(inner) == len(self.columns.reduced) - 1
        if self.is_first is None and rounds(self.reduction) and (is_outermost or self._has_blocks):
            in_blocks(self.code, bounds, run, totals, iterations_of_block(inner))
        else:
            run(*bounds)

    def _reduce(
        self,
        groups: list[AxisGroup],
        at: Mapping[int, SSAValue],
        iterate: Iteration,
        totals: Callable[[], Totals],
        prefetched: tuple[SSAValue, int] | None = None,
    ) -> None:
        """The remaining loops and their body. `prefetched` has the first element and the number of those to
        prefetch.
        """
        if groups:
            axis = groups[0].last

            def run(low: SSAValue | None, high: SSAValue) -> None:
                with self.code.loop(high, self.stage.axes[axis].value.name_hint or "i", lower=low) as index:
                    self._reduce(groups[1:], {**at, axis: index}, iterate, totals, prefetched)

            bounds = self.ranges.get(axis, (None, self.code.dim(groups[0].extent)))
            self._in_blocks(bounds, run, totals, [group.extent for group in groups[1:]])
            return
        if prefetched is not None and self.columns.ahead is not None:
            self.columns.ahead.prefetch(at, *prefetched)
        shared, clipping = Body(self.kernel, self.stage, at, self.lane.last), self.columns.clipping
        if clipping is not None and not clipping.lane_bounds:
            shared.assume(frozenset((clipping.guard.op,)))
        shared.hoist(self.stage.body, {store.buffer for store in self.stage.stores})

        def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            body, pairs = shared.at_index(index), zip(self.reduction.accumulators, old, strict=True)
            body.values |= {load.result: value for load, value in pairs}
            body.run([op for op in self.stage.body if not isinstance(op, StoreOp)])
            return [body.value(store.value) for store in self.reduction.stores]

        iterate(step)


class _RowTotals:
    """The totals of blocked accumulation over bands: a row of them."""

    def __init__(self, chunk: _RowRange):
        self._part = chunk
        self._kernel, self._code, self._reduction = chunk.kernel, chunk.code, chunk.reduction
        kinds = (load.buffer_type.dtype for load in chunk.reduction.accumulators)
        shape = [chunk.lane.extent]
        self._totals = [self._code.value(AllocBufferOp(BufferType(shape, each, align=64)), "totals") for each in kinds]

    def put_away(self, is_first: SSAValue) -> None:
        """As in `Totals`; the next band writes initial values."""
        with self._code.when(is_first) as branch:
            self._each_vector(lambda index: self._keep(index, self._part.results(index)))
        with self._code.otherwise(branch):
            self._each_vector(lambda index: self._keep(index, self._combined(index)))

    def take_back(self) -> None:
        """As in `Totals`."""
        self._each_vector(lambda index: self._part.put(index, self._combined(index)))

    def _each_vector(self, emit: Callable[[SSAValue], None]) -> None:
        code, lanes, chunk = self._code, self._part.lanes, self._part
        start = code.index(0) if chunk.low is None else chunk.low
        whole = code.divide(chunk.length, lanes)

        def vector(first: SSAValue, left: SSAValue | None) -> None:
            def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
                emit(index)
                return []

            vector_iteration(self._kernel, code.add(start, first), lanes, left, [], step)

        with code.loop(whole, "block") as block:
            vector(code.mul(block, lanes), None)
        done = code.mul(whole, lanes)
        left = code.sub(chunk.length, done)
        with code.when(code.compare("sgt", left, 0)):
            vector(done, left)

    def _keep(self, index: SSAValue, values: Sequence[SSAValue]) -> None:
        for value, memory in zip(values, self._totals, strict=True):
            self._code.store(value, memory, [index])

    def _combined(self, index: SSAValue) -> list[SSAValue]:
        totals = [self._code.load(memory, [index]) for memory in self._totals]
        return combined(self._kernel, self._reduction, totals, self._part.results(index))

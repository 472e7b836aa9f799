"""Direct contractions, without packing: depthwise convolutions, and windows with few filters.

Vectors of results run along the last axis of the output. The accumulators of several vectors, and of several filters,
are in registers side by side. Neighbouring windows read the same elements, which are in L1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as every

from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    DIRECT_FEW_VECTORS,
    DIRECT_MAX_FILTERS,
    DIRECT_MAX_K,
    DIRECT_MAX_UNROLLED,
    DIRECT_MAX_WINDOW_STEP,
    DIRECT_ROWS_PER_UNIT,
    DIRECT_TASKS_PER_THREAD,
    DIRECT_TILES_PER_UNIT,
    DIRECT_VECTORS,
    TASK_MACS,
)
from lowering.kernels.emit.accumulators import Totals, VectorTotals, in_blocks, iterations_of_block
from lowering.kernels.emit.kernel import shared_units
from lowering.kernels.emit.vectorization import masks_are_registers
from lowering.kernels.gemm.epilogue import EpilogueEmitter
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.structure.contraction import Factor
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum
from tir_dialect.ops.memory import LoadOp


def is_direct(gemm: Gemm) -> bool:
    """Whether both factors move along the output, or columns are read in place: for short K, and for windows."""
    contraction = gemm.contraction
    if not contraction.along or contraction.columns.panels is not None:
        return False
    if not all(_is_vector(factor, contraction.along[-1]) for factor in (contraction.rows, contraction.columns)):
        return False
    short = gemm.k.constant_value is not None and gemm.k.constant_value <= DIRECT_MAX_K
    if not contraction.column or not (short or contraction.longest is None):
        return short or contraction.longest is None
    return (short and not contraction.row) or (_has_few_rows(gemm) and _has_windows(gemm))


def _is_vector(factor: Factor, axis: int) -> bool:
    return factor.is_linear and factor.stride(axis) is not None


def _has_few_rows(gemm: Gemm) -> bool:
    rows = gemm.m.constant_value
    return rows is not None and 0 < rows <= DIRECT_MAX_FILTERS


def _has_windows(gemm: Gemm) -> bool:
    """Whether windows overlap along the rows: they reach the elements of the next window."""
    contraction, extents = gemm.contraction, gemm.contraction.stage.extents
    length = extents[contraction.along[-1]].constant_value or DIRECT_MAX_WINDOW_STEP
    apart = abs(contraction.columns.stride(contraction.along[-1]) or 0)

    def overlap(axis: int) -> bool:
        step, count = contraction.columns.stride(axis) or 0, extents[axis].constant_value
        return 0 < step < min(length, DIRECT_MAX_WINDOW_STEP) and (count is None or apart <= step * (count - 1))

    return any(overlap(axis) for axis in contraction.reduced)


class DirectContraction:
    """Emits the code of one contraction, its batch axes included."""

    def __init__(self, gemm: Gemm):
        self.gemm, self.code = gemm, gemm.code
        self.epilogue = EpilogueEmitter(gemm, None, None)
        contraction, self.lanes = gemm.contraction, gemm.tiles.lanes
        self.axis = contraction.along[-1]
        self.rows = contraction.row if contraction.column and _has_few_rows(gemm) else ()
        self.mr = gemm.size(self.rows).constant_value or 1
        self.unit = tuple(
            axis
            for axis in (*contraction.batch, *contraction.row, *contraction.outer)
            if axis not in (self.axis, *self.rows)
        )
        self.outer_rows = contraction.column[:-1]
        # The vectors of wide tiles: accumulators, an element of each filter and a vector of data have
        # registers.
        registers, mr = self.gemm.kernel.target.tile_registers, self.mr
        beside = self.gemm.contraction.columns.stride(self.axis) in (0, 1)  # else to load them takes longest
        most = min(DIRECT_VECTORS if beside else DIRECT_FEW_VECTORS, max(1, (registers - 1 - mr) // mr))
        widths = [*[most] * (most > 1), *[DIRECT_FEW_VECTORS] * (most >= 2 * DIRECT_FEW_VECTORS)]
        length = self.gemm.contraction.stage.extents[self.axis].constant_value
        self.widths = [each for each in widths if length is None or length >= each * self.lanes]

    def _written(self, vectors: int) -> Sequence[int]:
        """The last reduced axes, whose steps are unrolled in a tile of some vectors."""
        reduced, products = self.gemm.contraction.reduced, vectors * self.mr
        for number in reversed(range(len(reduced))):
            products *= self.gemm.contraction.stage.extents[reduced[number]].constant_value or DIRECT_MAX_UNROLLED + 1
            if products > DIRECT_MAX_UNROLLED:
                return reduced[number + 1 :]
        return reduced

    def emit(self) -> None:
        """Emits all results: tasks have units of work, a unit the same chunk of some rows."""
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        extent, rows = contraction.stage.extents[self.axis], gemm.size(self.outer_rows)
        length = constant(max((1, *self.widths)) * self.lanes * DIRECT_TILES_PER_UNIT)
        chunks, groups = ceildiv(extent, length), ceildiv(rows, constant(DIRECT_ROWS_PER_UNIT))
        units = gemm.size(self.unit) * groups * chunks
        work = gemm.size((*self.unit, *self.rows, *self.outer_rows, self.axis, *contraction.reduced))
        threads = gemm.threads(TASK_MACS, work)
        tasks = minimum(units, maximum(DIRECT_TASKS_PER_THREAD * (threads - 1) * threads, constant(1)))
        with shared_units(code, units, tasks) as (lower, upper), code.loop(upper, "unit", lower=lower) as unit:
            number, chunk = code.divide(unit, code.dim(chunks)), code.remainder(unit, code.dim(chunks))
            number, group = code.divide(number, code.dim(groups)), code.remainder(number, code.dim(groups))
            coords = {(axis,): at for axis, at in gemm.at((), self.unit, {self.unit: number}).items()}
            begin, end = self._chunk(chunk, length, extent)
            first, last = self._chunk(group, constant(DIRECT_ROWS_PER_UNIT), rows)
            with code.loop(last, "line", lower=first) as row:
                self._row({**coords, self.outer_rows: row}, begin, end)

    def _chunk(self, number: SSAValue, length: Dim, whole: Dim) -> tuple[SSAValue, SSAValue]:
        """Where a chunk of such a length begins, and where it ends."""
        code = self.code
        begin = code.mul(number, code.dim(length))
        return begin, code.minimum(code.add(begin, code.dim(length)), code.dim(whole))

    def _row(self, coords: Coords, first: SSAValue, end: SSAValue) -> None:
        """Emits a chunk of a row: wide tiles, narrow ones, and single vectors."""
        code, begin = self.code, first
        for vectors in self.widths:
            tiles = code.divide(code.sub(end, begin), vectors * self.lanes)
            with code.loop(tiles, "tile", vectorize=False) as tile:
                self._tile(coords, code.add(begin, code.mul(tile, vectors * self.lanes)), vectors, None)
            begin = code.add(begin, code.mul(tiles, vectors * self.lanes))
        # Whether results may be made twice, which is faster than masks: what they are made of is not
        # overwritten.
        gemm, count = self.gemm, len(self.gemm.contraction.stage.axes)
        own = {gemm.contraction.store.buffer, *gemm.epilogue.unread}
        read = [(step, op) for step, op in gemm.epilogue.accesses if isinstance(op, LoadOp) and op.buffer not in own]
        apart = all(not step.access(op, count).strides[self.axis].terms for step, op in read)
        if not (apart and not masks_are_registers(gemm.kernel)):
            self._vectors(coords, begin, end, None)
            return
        with code.when(code.compare("sge", code.sub(end, first), self.lanes)) as branch:
            self._vectors(coords, begin, end, code.sub(end, self.lanes))
        with code.otherwise(branch), code.when(code.compare("sgt", end, begin)):
            self._tile(coords, begin, 1, code.sub(end, begin))

    def _vectors(self, coords: Coords, begin: SSAValue, end: SSAValue, last: SSAValue | None) -> None:
        """Emits single vectors, of which the last one begins at `last`, or else lacks the lanes beyond the end."""
        code = self.code
        count = code.divide(code.add(code.sub(end, begin), self.lanes - 1), self.lanes)
        with code.loop(count, "v", vectorize=False) as number:
            start = code.add(begin, code.mul(number, self.lanes))
            if last is not None:
                self._tile(coords, code.minimum(start, last), 1, None)
                return
            on = code.sub(end, start)
            self.gemm.masked(on, self.lanes, lambda masked: self._tile(coords, start, 1, on if masked else None))

    def _tile(self, coords: Coords, start: SSAValue, vectors: int, on: SSAValue | None) -> None:
        """Emits some vectors of the results of all filters; `on` lanes if not all."""
        code, dtype = self.code, self.gemm.contraction.element
        registers = code.alloc([self.mr, vectors * self.lanes], dtype, "sums", scope="local")
        accumulators = [
            (i, v, [code.index(i), code.index(v * self.lanes)]) for i in range(self.mr) for v in range(vectors)
        ]
        for _, _, at in accumulators:
            code.store(code.zeros(dtype, self.lanes), registers, at)
        written = self._written(vectors)
        indices = [at for _, _, at in accumulators]

        def totals() -> VectorTotals:
            return VectorTotals(code, dtype, registers, indices, self.lanes)

        def step(here: Coords) -> None:
            # One multiply-add for each accumulator: a vector of the columns is used for all filters.
            code, contraction = self.code, self.gemm.contraction
            moves = contraction.rows.stride(self.axis) != 0
            lefts = (
                []
                if moves
                else [self._value(contraction.rows, self._at(here, i, start, 0), on) for i in range(self.mr)]
            )
            for v in range(vectors):
                column = self._value(contraction.columns, self._at(here, 0, start, v), on)
                for i in range(self.mr):
                    left = self._value(contraction.rows, self._at(here, i, start, v), on) if moves else lefts[i]
                    at = [code.index(i), code.index(v * self.lanes)]
                    code.store(code.fma(left, column, code.load(registers, at, self.lanes)), registers, at)

        loops = [axis for axis in self.gemm.contraction.reduced if axis not in written]
        self._loops(loops, written, coords, totals, step)
        for i, v, at in accumulators:
            self.epilogue.store_lanes(code.load(registers, at, self.lanes), self._at(coords, i, start, v), on)

    def _loops(
        self,
        loops: Sequence[int],
        written: Sequence[int],
        coords: Coords,
        totals: Callable[[], Totals],
        step: Callable[[Coords], None],
    ) -> None:
        """The steps along some axes as loops, those along others unrolled."""
        code, extents = self.code, self.gemm.contraction.stage.extents
        if not loops:
            for steps in every(*(range(extents[axis].constant_value or 0) for axis in written)):
                step({**coords, **{(axis,): code.index(r) for axis, r in zip(written, steps, strict=True)}})
            return
        axis, *inner = loops

        def run(lower: SSAValue | None, upper: SSAValue) -> None:
            with code.loop(upper, "r", lower=lower, vectorize=False, plain=True) as r:
                self._loops(inner, written, {**coords, (axis,): r}, totals, step)

        most = iterations_of_block(extents[each] for each in (*inner, *written))
        in_blocks(code, (None, code.dim(extents[axis])), run, totals, most)

    def _at(self, coords: Coords, row: int, start: SSAValue, vector: int) -> Coords:
        code = self.code
        rows: Coords = {self.rows: code.index(row)} if self.rows else {}
        return {**coords, **rows, (self.axis,): code.add(start, vector * self.lanes)}

    def _value(self, factor: Factor, coords: Coords, on: SSAValue | None) -> SSAValue:
        return self.gemm.vector(factor, coords, (self.axis,), on)

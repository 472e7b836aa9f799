"""Products computed line by line, without packing: depthwise convolutions, and windows with few filters.

Vectors of results run along the last axis of the output. Accumulators of several vectors, and of several filters, are
in registers side by side; neighbouring windows read the same elements, which are in L1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as every

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.blocked_accumulation import Totals, VectorTotals, in_blocks, iterations_of_block
from lowering.kernels.cpu.emit.kernel import shared_units
from lowering.kernels.cpu.emit.vectorization import masks_are_registers
from lowering.kernels.cpu.gemm.finish import Finish
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.structure.contraction import Factor
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum
from tir_dialect.ops.memory import LoadOp

MOST_SHORT = 64
"""Longer sums, or sums of unknown length, are made so only if windows overlap."""
MOST_ROWS = 4
"""With more filters it pays to pack the windows."""
MOST_STEP = 64
"""Windows whose elements are further apart do not overlap."""
MOST_WRITTEN = 32
"""So many products of a tile are written out."""
MOST_VECTORS, FEW_VECTORS = 8, 3
"""Side by side: enough that no multiply-add waits for the one before; and what is left of a line in smaller steps."""
TILES_PER_UNIT, LINES_PER_UNIT, TASKS_PER_THREAD = 8, 8, 8
PRODUCTS_PER_TASK = 1 << 17


def is_line_product(product: Product) -> bool:
    """Whether both factors move along the output, or columns are read from where they are: for short sums, windows."""
    what = product.what
    if not what.along or what.columns.panels is not None:
        return False
    if not all(_is_vector(factor, what.along[-1]) for factor in (what.rows, what.columns)):
        return False
    short = product.k.constant_value is not None and product.k.constant_value <= MOST_SHORT
    if not what.column or not (short or what.longest is None):
        return short or what.longest is None
    return (short and not what.row) or (_has_few_rows(product) and _has_windows(product))


def _is_vector(factor: Factor, axis: int) -> bool:
    return factor.is_linear and factor.stride(axis) is not None


def _has_few_rows(product: Product) -> bool:
    rows = product.m.constant_value
    return rows is not None and 0 < rows <= MOST_ROWS


def _has_windows(product: Product) -> bool:
    """Whether sums along the lines read elements of their neighbours: their windows reach those of the next window."""
    what, extents = product.what, product.what.stage.extents
    length = extents[what.along[-1]].constant_value or MOST_STEP
    apart = abs(what.columns.stride(what.along[-1]) or 0)

    def overlap(axis: int) -> bool:
        step, count = what.columns.stride(axis) or 0, extents[axis].constant_value
        return 0 < step < min(length, MOST_STEP) and (count is None or apart <= step * (count - 1))

    return any(overlap(axis) for axis in what.reduced)


class LineProduct:
    """Emits the code of one contraction, its batch axes included."""

    def __init__(self, product: Product):
        self.product, self.code = product, product.code
        self.finish = Finish(product, None, None)
        what, self.lanes = product.what, product.tiles.lanes
        self.axis = what.along[-1]
        self.rows = what.row if what.column and _has_few_rows(product) else ()
        self.height = product.size(self.rows).constant_value or 1
        self.unit = tuple(axis for axis in (*what.batch, *what.row, *what.outer) if axis not in (self.axis, *self.rows))
        self.line = what.column[:-1]
        self.widths = self._widths()

    def _widths(self) -> Sequence[int]:
        """The vectors of tiles but single ones: sums, a factor of each filter and one of the line fit the registers."""
        registers, height = self.product.kernel.target.tile_registers, self.height
        beside = self.product.what.columns.stride(self.axis) in (0, 1)  # else to load them takes longest
        most = min(MOST_VECTORS if beside else FEW_VECTORS, max(1, (registers - 1 - height) // height))
        widths = [*[most] * (most > 1), *[FEW_VECTORS] * (most >= 2 * FEW_VECTORS)]
        length = self.product.what.stage.extents[self.axis].constant_value
        return [each for each in widths if length is None or length >= each * self.lanes]

    def _written(self, vectors: int) -> Sequence[int]:
        """The last axes of the sums, whose steps are written out in a tile of some vectors."""
        reduced, products = self.product.what.reduced, vectors * self.height
        for number in reversed(range(len(reduced))):
            products *= self.product.what.stage.extents[reduced[number]].constant_value or MOST_WRITTEN + 1
            if products > MOST_WRITTEN:
                return reduced[number + 1 :]
        return reduced

    def emit(self) -> None:
        """All results: tasks have units, units the same part of some lines."""
        code, product, what = self.code, self.product, self.product.what
        extent, lines = what.stage.extents[self.axis], product.size(self.line)
        length = constant(max((1, *self.widths)) * self.lanes * TILES_PER_UNIT)
        parts, groups = ceildiv(extent, length), ceildiv(lines, constant(LINES_PER_UNIT))
        units = product.size(self.unit) * groups * parts
        work = product.size((*self.unit, *self.rows, *self.line, self.axis, *what.reduced))
        threads = product.threads(PRODUCTS_PER_TASK, work)
        tasks = minimum(units, maximum(TASKS_PER_THREAD * (threads - 1) * threads, constant(1)))
        with shared_units(code, units, tasks) as (lower, upper), code.loop(upper, "unit", lower=lower) as unit:
            number, part = code.divide(unit, code.dim(parts)), code.remainder(unit, code.dim(parts))
            number, group = code.divide(number, code.dim(groups)), code.remainder(number, code.dim(groups))
            coords = {(axis,): at for axis, at in product.at((), self.unit, {self.unit: number}).items()}
            begin, end = self._share(part, length, extent)
            first, last = self._share(group, constant(LINES_PER_UNIT), lines)
            with code.loop(last, "line", lower=first) as line:
                self._line({**coords, self.line: line}, begin, end)

    def _share(self, number: SSAValue, length: Dim, whole: Dim) -> tuple[SSAValue, SSAValue]:
        """Where a part of such a length begins, and where it ends."""
        code = self.code
        begin = code.mul(number, code.dim(length))
        return begin, code.minimum(code.add(begin, code.dim(length)), code.dim(whole))

    def _line(self, coords: Coords, first: SSAValue, end: SSAValue) -> None:
        """A part of a line: wide tiles, narrow ones, and single vectors."""
        code, begin = self.code, first
        for vectors in self.widths:
            tiles = code.divide(code.sub(end, begin), vectors * self.lanes)
            with code.loop(tiles, "tile", vectorize=False) as tile:
                self._tile(coords, code.add(begin, code.mul(tile, vectors * self.lanes)), vectors, None)
            begin = code.add(begin, code.mul(tiles, vectors * self.lanes))
        if not self._may_repeat():
            self._vectors(coords, begin, end, None)
            return
        with code.when(code.compare("sge", code.sub(end, first), self.lanes)) as branch:
            self._vectors(coords, begin, end, code.sub(end, self.lanes))
        with code.otherwise(branch), code.when(code.compare("sgt", end, begin)):
            self._tile(coords, begin, 1, code.sub(end, begin))

    def _vectors(self, coords: Coords, begin: SSAValue, end: SSAValue, last: SSAValue | None) -> None:
        """Single vectors, of which the last one begins at `last`, or else lacks the lanes beyond the end."""
        code = self.code
        count = code.divide(code.add(code.sub(end, begin), self.lanes - 1), self.lanes)
        with code.loop(count, "v", vectorize=False) as number:
            start = code.add(begin, code.mul(number, self.lanes))
            if last is not None:
                self._tile(coords, code.minimum(start, last), 1, None)
                return
            on = code.sub(end, start)
            self.product.masked(on, self.lanes, lambda masked: self._tile(coords, start, 1, on if masked else None))

    def _may_repeat(self) -> bool:
        """Whether results may be made twice, which is faster than masks: what they are made of is still there."""
        product, count = self.product, len(self.product.what.stage.axes)
        own = {product.what.store.buffer, *product.epilogue.unread}
        read = [(step, op) for step, op in product.epilogue.accesses if isinstance(op, LoadOp) and op.buffer not in own]
        apart = all(not step.access(op, count).strides[self.axis].terms for step, op in read)
        return apart and not masks_are_registers(product.kernel)

    def _tile(self, coords: Coords, start: SSAValue, vectors: int, on: SSAValue | None) -> None:
        """Some vectors of the results of all filters; `on` lanes if not all."""
        code, dtype = self.code, self.product.what.element
        sums = code.alloc([self.height, vectors * self.lanes], dtype, "sums", scope="local")
        accumulators = [
            (i, v, [code.index(i), code.index(v * self.lanes)]) for i in range(self.height) for v in range(vectors)
        ]
        for _, _, at in accumulators:
            code.store(code.zeros(dtype, self.lanes), sums, at)
        written = self._written(vectors)
        places = [at for _, _, at in accumulators]

        def totals() -> VectorTotals:
            return VectorTotals(code, dtype, sums, places, self.lanes)

        def step(here: Coords) -> None:
            self._step(here, start, vectors, on, sums)

        loops = [axis for axis in self.product.what.reduced if axis not in written]
        self._sums(loops, written, coords, totals, step)
        for i, v, at in accumulators:
            self.finish.store_lanes(code.load(sums, at, self.lanes), self._at(coords, i, start, v), on)

    def _sums(
        self,
        loops: Sequence[int],
        written: Sequence[int],
        coords: Coords,
        totals: Callable[[], Totals],
        step: Callable[[Coords], None],
    ) -> None:
        """The steps along some axes by `loops`, those along others written out."""
        code, extents = self.code, self.product.what.stage.extents
        if not loops:
            for steps in every(*(range(extents[axis].constant_value or 0) for axis in written)):
                step({**coords, **{(axis,): code.index(r) for axis, r in zip(written, steps, strict=True)}})
            return
        axis, *inner = loops

        def run(lower: SSAValue | None, upper: SSAValue) -> None:
            with code.loop(upper, "r", lower=lower, vectorize=False, plain=True) as r:
                self._sums(inner, written, {**coords, (axis,): r}, totals, step)

        most = iterations_of_block(extents[each] for each in (*inner, *written))
        in_blocks(code, (None, code.dim(extents[axis])), run, totals, most)

    def _at(self, coords: Coords, row: int, start: SSAValue, vector: int) -> Coords:
        code = self.code
        rows: Coords = {self.rows: code.index(row)} if self.rows else {}
        return {**coords, **rows, (self.axis,): code.add(start, vector * self.lanes)}

    def _step(self, coords: Coords, start: SSAValue, vectors: int, on: SSAValue | None, sums: SSAValue) -> None:
        """One product for each sum: a vector of the columns is used for all filters."""
        code, what = self.code, self.product.what
        moves = what.rows.stride(self.axis) != 0
        lefts = [] if moves else [self._value(what.rows, self._at(coords, i, start, 0), on) for i in range(self.height)]
        for v in range(vectors):
            column = self._value(what.columns, self._at(coords, 0, start, v), on)
            for i in range(self.height):
                left = self._value(what.rows, self._at(coords, i, start, v), on) if moves else lefts[i]
                at = [code.index(i), code.index(v * self.lanes)]
                code.store(code.fma(left, column, code.load(sums, at, self.lanes)), sums, at)

    def _value(self, factor: Factor, coords: Coords, on: SSAValue | None) -> SSAValue:
        return self.product.vector(factor, coords, (self.axis,), on)

"""The two orders of attention, and the code for one row that both share, from its scores to its output.

Packed: for every batch, keys and values become panels as wide as a register tile. Then a block of rows goes through the
first GEMM, the chain along each row, and the second GEMM. A thread has memory for the scores of one block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from typing_extensions import override
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.attention.pattern import COLUMN, AffineForm, Attention, row_forms
from lowering.kernels.cost_model import (
    ATTENTION_GROUPS,
    ATTENTION_MAX_STRIPS,
    ATTENTION_PREFETCH_POSITIONS,
    ATTENTION_TASKS_PER_THREAD,
    COMPUTE_TASK_MACS,
    SKINNY_MAX_M,
    TASK_MACS,
)
from lowering.kernels.emit.body import Explicit, Lanes
from lowering.kernels.emit.kernel import Kernel, shared_units
from lowering.kernels.emit.loop_nest import LoopNest
from lowering.kernels.gemm.dot import DotGemm, PrefetchRow, can_dot_pages
from lowering.kernels.gemm.epilogue import EpilogueEmitter
from lowering.kernels.gemm.packing import ColumnPanel, RowPanels
from lowering.kernels.gemm.panels import PackedColumns
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.gemm.register_tile import Element, emit_tile, grid
from lowering.kernels.gemm.tiling import Tiling
from lowering.kernels.gemm.zero_products import restore_row
from lowering.kernels.structure.contraction import Epilogue
from lowering.kernels.structure.stages import Stage
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.blocks import MatchBufferOp
from tir_dialect.ops.memory import RegionAxis
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class Rows:
    """A block of rows: the scores of each are a row of `scores`, the scalars of its chain are in `numbers`."""

    scores: SSAValue
    numbers: Mapping[SSAValue, SSAValue]
    batch: SSAValue
    top: SSAValue
    count: SSAValue


class AttentionCode:
    """What the generators of attention share: addresses, and the code for one row."""

    def __init__(self, kernel: Kernel, attention: Attention, tiles: Tiling):
        self.kernel = kernel
        self.code = kernel.code
        self.attention = attention
        self.tiles = tiles
        self.scores = Gemm(kernel, attention.scores, Epilogue(), tiles)
        self.totals = Gemm(kernel, attention.totals, Epilogue(), tiles)
        self.m, self.n = self.scores.m, self.scores.n
        self.batches = self.scores.size(attention.scores.batch)
        self.pitch = ceildiv(self.n, constant(tiles.nr)) * tiles.nr + tiles.lanes
        """The row stride of the scores, which is no power of two."""

    # Memory

    def memory(self, rows: Dim) -> tuple[SSAValue, dict[SSAValue, SSAValue]]:
        """Memory for the scores of some rows, and for the scalars of their chains."""
        code, attention = self.code, self.attention
        scores = code.alloc([rows, self.pitch], attention.scores.element, "scores")
        kept = [
            each
            for each in attention.row.buffers
            if each not in {attention.buffer, attention.weights.buffer, *attention.row.unread}
        ]
        numbers = {each: code.alloc([rows], attention.scores.element, each.name_hint or "numbers") for each in kept}
        return scores, numbers

    # Columns

    def all_coords(self, batch: SSAValue, row: SSAValue | None) -> tuple[Coords, Coords]:
        """A batch, and a row if it is given, as values of the axes of both GEMMs."""
        mine, axes = self.attention.scores, self.attention.axes
        given = [(mine.batch, batch)] + ([(mine.row, row)] if row is not None else [])
        own: dict[tuple[int, ...], SSAValue] = {group: value for group, value in given if group}
        return own, {tuple(axes[axis] for axis in group): value for group, value in own.items()}

    def digits(self, rows: Rows, row: SSAValue) -> dict[int, SSAValue]:
        """The value of each axis of the first GEMM that chooses a row."""
        mine = self.attention.scores
        return self.scores.at(
            (), (*mine.batch, *mine.row), self.all_coords(rows.batch, self.code.add(rows.top, row))[0]
        )

    def value(self, form: AffineForm, digits: Mapping[int, SSAValue]) -> SSAValue:
        """The value of an affine form."""
        return self.code.linear(form.base, [(digits[axis], step) for axis, step in form.terms])

    def leading(self, digits: Mapping[int, SSAValue]) -> dict[int, SSAValue]:
        """The values of the dimensions that choose a row."""
        return {number: self.value(form, digits) for number, form in enumerate(row_forms(self.attention.scores))}

    def vectors(self, tile: SSAValue, row: SSAValue, count: int) -> list[SSAValue]:
        """The vectors of a row of a tile."""
        lanes = self.tiles.lanes
        return [self.code.load(tile, [row, self.code.index(v * lanes)], lanes) for v in range(count)]

    # One row

    def put_scores(
        self, rows: Rows, row: SSAValue, vectors: Sequence[SSAValue], left: SSAValue, on: SSAValue | None = None
    ) -> None:
        """Applies the elementwise stages to vectors of the first GEMM, from column `left` on, and stores them as
        scores.

        Only the first `on` lanes are stored, or all.
        """
        code, lanes = self.code, self.tiles.lanes
        digits = self.leading(self.digits(rows, row)) if self.attention.elementwise else {}
        for number, vector in enumerate(vectors):
            column = code.add(left, number * lanes)
            value = self._mapped(vector, {**digits, len(digits): column})
            code.store(value, rows.scores, [row, column], None if on is None else code.leading(on, lanes))

    def _mapped(self, vector: SSAValue, at: Mapping[int, SSAValue]) -> SSAValue:
        """A vector of the first GEMM after the elementwise stages."""
        produced, last = {self.attention.scores.store.buffer: vector}, len(at) - 1
        on = None if not self.attention.elementwise else self.code.sub(self.code.dim(self.n), at[last])
        for stage in self.attention.elementwise:
            produced |= self._computed(stage, at, Lanes(last, self.tiles.lanes, on), produced)
        return produced[self.attention.buffer]

    def _computed(
        self, stage: Stage, at: Mapping[int, SSAValue], lanes: Lanes, produced: Mapping[SSAValue, SSAValue]
    ) -> dict[SSAValue, SSAValue]:
        """The values that an elementwise stage stores, by buffers; inputs among `produced` are in registers."""
        body = Explicit(self.kernel, stage, at, lanes)
        body.values |= {load.result: produced[load.buffer] for load in stage.loads if load.buffer in produced}
        body.run(stage.body)
        return {store.buffer: body.widened(body.value(store.value)) for store in stage.stores}

    def chain(self, rows: Rows, row: SSAValue, end: SSAValue | None = None) -> None:
        """The chain along the scores of a row, up to a column or over all."""
        attention, kernel, chain = self.attention, self.kernel, self.attention.row
        at = self.leading(self.digits(rows, row))
        scores = self.code.part(rows.scores, row, [self.n])
        for buffer in (attention.buffer, attention.weights.buffer):
            kernel.rows[buffer] = scores, chain.depth
        for buffer in chain.unread:
            kernel.rows[buffer] = scores, chain.depth  # these are not read from memory
        for buffer, memory in rows.numbers.items():
            one = RegionAxis(row, self.code.add(row, 1))
            kind = SSAValue.get(memory, type=BufferType).type
            view = MatchBufferOp(memory, [one], BufferType([1], kind.dtype, scope=kind.scope))
            kernel.rows[buffer] = self.code.value(view), chain.depth
        outer, kernel.unread = kernel.unread, chain.unread
        for items in chain.passes:
            found = {i: attention.reductions[stage] for i, stage in enumerate(items) if stage in attention.reductions}
            nest = LoopNest(kernel, items, range(chain.depth, len(items[0].axes)), found)
            chunk = None if end is None or nest.outermost is not nest.lane else (self.code.index(0), end)
            accumulators = nest.emit(at, chunk)
            if accumulators is not None:
                accumulators.write(accumulators.finish())
        kernel.unread = outer

    def leave_out_zeros(
        self,
        rows: Rows,
        row_of_tile: tuple[SSAValue, SSAValue],
        row: SSAValue,
        length: SSAValue,
        vector: Callable[[SSAValue, int], SSAValue],
    ) -> None:
        """Makes a row of the second GEMM, at some row of a tile, once more if it is NaN by products with 0.

        `vector(r, v)` gives a vector of values.
        """
        if self.attention.totals.tested is not None:
            tile, i = row_of_tile
            restore_row(grid(self.totals), tile, i, length, lambda r: self.code.load(rows.scores, [row, r]), vector)

    def put_totals(self, rows: Rows, row: SSAValue, vectors: Sequence[SSAValue], left: SSAValue) -> None:
        """Applies the epilogue to vectors of the second GEMM, from column `left` on, and stores them."""
        code, lanes = self.code, self.tiles.lanes
        digits = self.digits(rows, row)
        numbers = {buffer: code.load(memory, [row]) for buffer, memory in rows.numbers.items()}
        for number, vector in enumerate(vectors):
            column = code.add(left, number * lanes)
            on = code.sub(code.dim(self.totals.n), column)
            self._put_total(vector, {**digits, COLUMN: column}, on, numbers)

    def _put_total(
        self,
        vector: SSAValue,
        digits: Mapping[int, SSAValue],
        on: SSAValue,
        numbers: Mapping[SSAValue, SSAValue],
    ) -> None:
        attention, lanes = self.attention, self.tiles.lanes
        produced = {**numbers, attention.totals.store.buffer: vector}
        if attention.totals.store.buffer not in attention.unread:
            at = {theirs: digits[mine] for mine, theirs in attention.axes.items()} | {
                attention.totals.column[0]: digits[COLUMN]
            }
            terms = [(value, attention.totals.output.strides[axis]) for axis, value in at.items()]
            index = self.code.linear(attention.totals.output.base, terms)
            self.code.store(vector, self.totals.accumulators, [index], self.code.leading(on, lanes))
        for step in attention.following:
            at = {axis: self.value(form, digits) for axis, form in enumerate(step.axes)}
            axis = next(axis for axis, form in enumerate(step.axes) if any(each == COLUMN for each, _ in form.terms))
            produced |= self._computed(step.stage, at, Lanes(axis, lanes, on), produced)


class PackedAttention(AttentionCode):
    """Generates attention with packed keys and values."""

    def emit(self) -> None:
        """All batches and blocks of rows; threads have ranges of them."""
        code, rows = self.code, self.tiles.mr
        strips = self.strips()
        blocks = ceildiv(self.m, strips * rows)
        units = self.batches * blocks
        work = self.batches * self.m * self.n * (self.scores.k + self.totals.n)
        threads = self.scores.threads(COMPUTE_TASK_MACS, work)
        tasks = minimum(units, maximum(ATTENTION_TASKS_PER_THREAD * (threads - 1) * threads, constant(1)))
        with shared_units(code, units, tasks) as (lower, upper):
            scores, numbers = self.memory(strips * rows)
            panels = self.panels()
            with code.loop(upper, "unit", lower=lower) as unit:
                number = code.dim(blocks)
                batch, block = code.divide(unit, number), code.remainder(unit, number)
                is_first = arith.OrIOp(code.compare("eq", block, 0), code.compare("eq", unit, lower))
                with code.when(code.value(is_first)):
                    panels.pack(batch)
                top = code.mul(block, code.dim(strips * rows))
                count = code.minimum(code.sub(code.dim(self.m), top), code.dim(strips * rows))
                self._block(Rows(scores, numbers, batch, top, count), panels)
            self.finish()

    def panels(self) -> Panels:
        """Memory for the factors of a thread."""
        return _PackedPanels(self)

    def finish(self) -> None:
        """What a thread does at last."""

    def strips(self) -> Dim:
        """Strips of MR rows in a block: as many as fit in half of L2."""
        row_bytes = byte_size(self.attention.scores.element) * self.tiles.mr
        room = self.kernel.target.l2_bytes // 2 // row_bytes
        most = min(ATTENTION_MAX_STRIPS, self.tiles.mc // self.tiles.mr)
        fitting = floordiv(constant(room), maximum(self.n, constant(1)))
        return maximum(minimum(minimum(fitting, ceildiv(self.m, constant(self.tiles.mr))), constant(most)), constant(1))

    def _block(self, rows: Rows, panels: Panels) -> None:
        end = self._end(rows)

        def chain() -> None:
            with self.code.loop(rows.count, "row") as row:
                self.chain(rows, row, end)

        panels.multiply_rows(rows, end, chain)

    def _end(self, rows: Rows) -> SSAValue | None:
        """The number of columns that some row of a block needs; `None` if all."""
        code, bound, axes = self.code, self.attention.causal_bound, self.attention.scores.row
        moving = [] if bound is None else [axis for axis, stride in enumerate(bound.strides) if stride.terms]
        if bound is None or len(moving) != 1 or bound.strides[moving[0]].constant_value != 1 or not axes:
            return None
        form = row_forms(self.attention.scores)[moving[0]]
        if form.base.terms or form.terms != ((axes[-1], constant(1)),):
            return None
        # A row axis that is collapsed with others begins again after its last row.
        length = code.dim(self.attention.scores.stage.extents[axes[-1]])
        first = code.remainder(rows.top, length) if len(axes) > 1 else rows.top
        last = code.minimum(code.add(first, rows.count), length)
        end = code.add(last, code.dim(bound.base))
        return code.maximum(code.minimum(end, code.dim(self.n)), 0)


class Panels(ABC):
    """The factors of attention, as a thread multiplies them."""

    @abstractmethod
    def pack(self, batch: SSAValue) -> None:
        """Packs all keys and values of a batch."""

    @abstractmethod
    def multiply_rows(self, rows: Rows, end: SSAValue | None, chain: Callable[[], None]) -> None:
        """The first GEMM for a block of rows, up to a column or for all, the chain, and the second GEMM."""


class _PackedPanels(Panels):
    """Panels of keys and values in the order in which vectors are loaded."""

    def __init__(self, attention: PackedAttention):
        self.attention, self.code, self.tiles = attention, attention.code, attention.tiles
        self.scores, self.totals = attention.scores, attention.totals
        self.keys = self._columns(attention.scores)
        self.values = self._columns(attention.totals)
        step = self.tiles.lanes * ceildiv(self.scores.k, constant(self.tiles.lanes))
        self.queries = RowPanels(self.scores, ATTENTION_MAX_STRIPS * (step.constant_value or 1), step)

    def _columns(self, gemm: Gemm) -> PackedColumns:
        return PackedColumns(gemm, ceildiv(gemm.n, constant(gemm.tiles.nr)), gemm.k)

    @override
    def pack(self, batch: SSAValue) -> None:
        mine, theirs = self.attention.all_coords(batch, None)
        self._pack(self.scores, mine, self.keys)
        self._pack(self.totals, theirs, self.values)

    def _pack(self, gemm: Gemm, coords: Coords, panels: PackedColumns) -> None:
        code, width = gemm.code, gemm.tiles.nr
        with code.loop(code.dim(ceildiv(gemm.n, constant(width))), "panel") as number:
            panels.panel(number).pack(coords, code.mul(number, width), code.index(0), code.dim(gemm.k))

    @override
    def multiply_rows(self, rows: Rows, end: SSAValue | None, chain: Callable[[], None]) -> None:
        code, mr, queries = self.code, self.tiles.mr, self.queries
        strips = code.divide(code.add(rows.count, mr - 1), mr)
        zero, features = code.index(0), code.dim(self.scores.k)
        coords = self.attention.all_coords(rows.batch, None)[0]
        if not queries.direct:
            with code.loop(strips, "strip") as strip:
                queries.pack(coords, strip, code.add(rows.top, code.mul(strip, mr)), zero, features)

        def query(strip: SSAValue) -> Element:
            return queries.reader(coords, strip, code.add(rows.top, code.mul(strip, mr)), zero)

        def weight(strip: SSAValue) -> Element:
            return lambda i, r: code.load(rows.scores, [code.add(code.mul(strip, mr), i), r])

        last = code.dim(self.attention.n) if end is None else end
        self._multiply(self.scores, rows, self.keys, query, features, last)
        chain()
        self._clear(rows, code.mul(strips, mr))
        self._multiply(self.totals, rows, self.values, weight, last, code.dim(self.totals.n))

    def _clear(self, rows: Rows, end: SSAValue) -> None:
        """Clears the rows of the last strip that do not exist: they might hold subnormal numbers or NaN, which
        are slow.
        """
        code, lanes = self.code, self.tiles.lanes
        zeros = code.zeros(self.scores.contraction.element, lanes)
        vectors = ceildiv(self.attention.n, constant(lanes))
        with code.loop(end, "row", lower=rows.count) as row, code.loop(code.dim(vectors), "v") as v:
            code.store(zeros, rows.scores, [row, code.mul(v, lanes)])

    def _multiply(
        self,
        gemm: Gemm,
        rows: Rows,
        panels: PackedColumns,
        reader: Callable[[SSAValue], Element],
        length: SSAValue,
        columns: SSAValue,
    ) -> None:
        """One of the GEMMs for a block of rows, panel by panel."""
        code, tiles = self.code, self.tiles
        strips = code.divide(code.add(rows.count, tiles.mr - 1), tiles.mr)
        put = self.attention.put_scores if gemm is self.scores else self.attention.put_totals
        with (
            code.loop(code.divide(code.add(columns, tiles.nr - 1), tiles.nr), "panel") as number,
            code.loop(strips, "strip") as strip,
        ):
            panel = panels.panel(number)
            done = code.mul(strip, tiles.mr)
            left = code.sub(rows.count, done)
            tile = self._tile(gemm, reader(strip), panel, left, length)
            with code.loop(code.minimum(left, tiles.mr), "i") as i:
                if gemm is self.totals:
                    self.attention.leave_out_zeros(rows, (tile, i), code.add(done, i), length, panel.vector)
                put(rows, code.add(done, i), self.attention.vectors(tile, i, tiles.vectors), code.mul(number, tiles.nr))

    def _tile(self, gemm: Gemm, element: Element, panel: ColumnPanel, left: SSAValue, length: SSAValue) -> SSAValue:
        """A register tile, by the smallest micro-kernel with at least `left` rows."""
        code, tiles = self.code, self.tiles
        tile = code.alloc([tiles.mr, tiles.nr], gemm.contraction.element, "tile")
        bounds, is_long = (code.index(0), length), gemm is self.totals

        def emit(mr_choices: Sequence[int]) -> None:
            mr, *smaller = mr_choices
            if not smaller:
                emit_tile(grid(gemm), bounds, mr, element, panel.vector, tile, steps=tiles.steps, is_long=is_long)
                return
            with code.when(code.compare("sgt", left, smaller[0])) as branch:
                emit_tile(grid(gemm), bounds, mr, element, panel.vector, tile, steps=tiles.steps, is_long=is_long)
            with code.otherwise(branch):
                emit(smaller)

        emit(gemm.mr_sizes[:2])
        return tile


class StreamedAttention(AttentionCode):
    """Generates attention of at most `MAX_ROWS` rows for each batch."""

    def __init__(self, kernel: Kernel, attention: Attention, tiles: Tiling):
        super().__init__(kernel, attention, tiles)
        self.wide = replace(tiles, vectors=self._vectors())
        self.totals = Gemm(kernel, attention.totals, Epilogue(), self.wide)
        self.is_possible = can_dot_pages(self.scores) and self.totals.has_vectors(
            attention.totals.columns, attention.totals.column
        )
        """Whether M may be small, and each key and each value is contiguous."""

    def _vectors(self) -> int:
        """Vectors in a row of the tile: all features if registers suffice, so that values are read once."""
        features, tiles = self.totals.n.constant_value, self.tiles
        most = (self.kernel.target.tile_registers - 2) // (ATTENTION_GROUPS[0] + 1)
        return tiles.vectors if features is None else max(1, min(most, -(-features // tiles.lanes)))

    def emit(self) -> None:
        """All batches; threads have ranges of them."""
        code = self.code
        work = self.batches * self.m * self.n * (self.scores.k + self.totals.n)
        tasks = minimum(self.batches, self.scores.threads(TASK_MACS, work))
        with shared_units(code, self.batches, tasks) as (lower, upper):
            scores, numbers = self.memory(constant(min(self.m.constant_value or SKINNY_MAX_M, SKINNY_MAX_M)))
            with code.loop(upper, "batch", lower=lower) as batch:
                rows = Rows(scores, numbers, batch, code.index(0), code.dim(self.m))
                mine, theirs = self.all_coords(batch, None)
                dots = _Dots(self.scores)
                dots.epilogue = _IntoScores(self, rows)
                dots.emit(mine)
                with code.loop(rows.count, "row") as row:
                    self.chain(rows, row)
                self._totals(rows, theirs)

    def _totals(self, rows: Rows, coords: Coords) -> None:
        """The second GEMM, in groups of rows that share loads of values."""
        code = self.code
        with code.loop(code.dim(ceildiv(self.totals.n, constant(self.wide.nr))), "panel") as panel:
            done = constant(0)
            for mr in ATTENTION_GROUPS:
                count = floordiv(self.m - done, constant(mr))
                if count.constant_value != 0:
                    self._groups(rows, coords, code.mul(panel, self.wide.nr), mr, (done, count))
                done = done + count * mr

    def _groups(self, rows: Rows, coords: Coords, left: SSAValue, mr: int, which: tuple[Dim, Dim]) -> None:
        """Groups of `mr` rows: from which row on, and how many."""
        code, tiles, attention, gemm = self.code, self.wide, self.attention.totals, self.totals
        tile = code.alloc([mr, tiles.nr], attention.element, "tile")
        starts = [code.add(left, v * tiles.lanes) for v in range(tiles.vectors)]
        counts = [code.sub(code.dim(gemm.n), column) for column in starts]
        ends = code.index(0), code.dim(self.n)
        done, count = which
        with code.loop(code.dim(count), "group") as group:
            top = code.add(code.dim(done), code.mul(group, mr))
            rows_of_tile = [code.add(top, i) for i in range(mr)]

            def element(i: int, r: SSAValue) -> SSAValue:
                return code.load(rows.scores, [rows_of_tile[i], r])

            def numbers(r: SSAValue, v: int, masked: bool = True) -> SSAValue:
                here = {**coords, attention.reduced: r, attention.column: starts[v]}
                return gemm.vector(attention.columns, here, attention.column, counts[v] if masked else None)

            def emit(masked: bool) -> None:
                def vector(r: SSAValue, v: int) -> SSAValue:
                    if not attention.columns.is_linear:
                        later = code.minimum(code.add(r, ATTENTION_PREFETCH_POSITIONS), code.sub(code.dim(self.n), 1))
                        there = {**coords, attention.reduced: later, attention.column: starts[v]}
                        gemm.prefetch(attention.columns, there, 2)
                    return numbers(r, v, masked)

                emit_tile(grid(gemm), ends, mr, element, vector, tile, is_long=True)

            gemm.masked(counts[0], tiles.nr, emit)
            for i, row in enumerate(rows_of_tile):
                self.leave_out_zeros(rows, (tile, code.index(i)), row, ends[1], numbers)
                self.put_totals(rows, row, self.vectors(tile, code.index(i), tiles.vectors), left)


class _Dots(DotGemm):
    """Dot products with keys, which are prefetched where their addresses are looked up."""

    @override
    def prefetcher(self, coords: Coords, start: SSAValue) -> PrefetchRow | None:
        gemm, contraction, code = self.gemm, self.gemm.contraction, self.code
        if contraction.columns.is_linear:
            return super().prefetcher(coords, start)
        last = code.sub(code.dim(gemm.n), 1)

        def prefetch(number: SSAValue, r: SSAValue) -> None:
            later = code.minimum(code.add(code.add(start, number), ATTENTION_PREFETCH_POSITIONS), last)
            gemm.prefetch(contraction.columns, {**coords, contraction.column: later, contraction.reduced: r}, 2)

        return prefetch


class _IntoScores(EpilogueEmitter):
    """Stores dot products as scores of their row."""

    def __init__(self, attention: AttentionCode, rows: Rows):
        super().__init__(attention.scores, None, None)
        self.attention, self.rows = attention, rows

    @override
    def store(self, accumulators: SSAValue, coords: Coords, count: SSAValue) -> None:
        """A vector of which `count` lanes are set."""
        self.store_some(accumulators, coords, count)

    @override
    def store_some(self, accumulators: SSAValue, coords: Coords, count: SSAValue) -> None:
        """Stores a vector, whether some lanes are missing or not."""
        attention = self.attention.attention.scores
        row = coords[attention.row] if attention.row else self.code.index(0)
        self.attention.put_scores(self.rows, row, [accumulators], coords[attention.column], count)

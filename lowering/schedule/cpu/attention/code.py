"""Code for attention: a block of rows at a time, whose scores stay in the cache of a core.

For every batch, keys and values are packed once, into panels as wide as a tile; then a block of rows goes through the
first product, the chain along each row, and the second product. A thread has memory for the scores of one block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.schedule.cpu.attention.rows import COLUMN, Attention, Form, row_forms
from lowering.schedule.cpu.emit.explicit import Explicit, Lanes
from lowering.schedule.cpu.emit.kernel import Kernel
from lowering.schedule.cpu.emit.tasks import shared_units
from lowering.schedule.cpu.memory.sweep import Sweep
from lowering.schedule.cpu.products.column_panels import ColumnPanel
from lowering.schedule.cpu.products.packed_columns import PackedColumns
from lowering.schedule.cpu.products.product import Product, Spot
from lowering.schedule.cpu.products.row_panels import RowPanels
from lowering.schedule.cpu.products.tile import Element, emit_tile, grid
from lowering.schedule.cpu.products.tiling import Tiling
from lowering.schedule.cpu.structure.epilogue import Epilogue
from lowering.schedule.cpu.structure.stages import Stage
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.accesses import RegionAxis
from tir_dialect.ops.regions import MatchBufferOp
from tir_dialect.types import BufferType

PRODUCTS_PER_TASK = 1 << 19
"""So few take some five microseconds; to wake a thread for less does not pay."""
TASKS_PER_THREAD = 4
"""More tasks than threads, so that a thread that is late leaves work to the others."""
MOST_STRIPS = 8
"""Strips of rows in a block: packed keys that come from the second-level cache are used so often."""


@dataclass(frozen=True)
class Rows:
    """A block of rows: the scores of each lie in a row of `scores`, and the numbers of its chain in `numbers`."""

    scores: SSAValue
    numbers: Mapping[SSAValue, SSAValue]
    batch: SSAValue
    top: SSAValue
    count: SSAValue


class AttentionCode:
    """What the ways to compute attention share: places, and the code for one row."""

    def __init__(self, kernel: Kernel, what: Attention, tiles: Tiling):
        self.kernel = kernel
        self.code = kernel.code
        self.what = what
        self.tiles = tiles
        self.scores = Product(kernel, what.scores, Epilogue(), tiles)
        self.totals = Product(kernel, what.totals, Epilogue(), tiles)
        self.m, self.n = self.scores.m, self.scores.n
        self.batches = self.scores.size(what.scores.batch)
        self.pitch = ceildiv(self.n, constant(tiles.width)) * tiles.width + tiles.lanes
        """Of the scores: rows are not a power of two apart."""

    # Memory

    def memory(self, rows: Dim) -> tuple[SSAValue, dict[SSAValue, SSAValue]]:
        """Memory for the scores of some rows, and for the numbers that their chains keep."""
        code, what = self.code, self.what
        scores = code.alloc([rows, self.pitch], what.scores.element, "scores")
        kept = [each for each in what.row.buffers if each not in {what.buffer, what.weights.buffer, *what.row.unread}]
        numbers = {each: code.alloc([rows], what.scores.element, each.name_hint or "numbers") for each in kept}
        return scores, numbers

    # Places

    def spots(self, batch: SSAValue, row: SSAValue | None) -> tuple[Spot, Spot]:
        """A batch, and a row if it is given, as values of the axes of both products."""
        mine, axes = self.what.scores, self.what.axes
        given = [(mine.batch, batch)] + ([(mine.row, row)] if row is not None else [])
        own: dict[tuple[int, ...], SSAValue] = {group: value for group, value in given if group}
        return own, {tuple(axes[axis] for axis in group): value for group, value in own.items()}

    def digits(self, rows: Rows, row: SSAValue) -> dict[int, SSAValue]:
        """The value of each axis of the first product that chooses a row."""
        mine = self.what.scores
        return self.scores.at((), (*mine.batch, *mine.row), self.spots(rows.batch, self.code.add(rows.top, row))[0])

    def value(self, form: Form, digits: Mapping[int, SSAValue]) -> SSAValue:
        """The value of a form."""
        return self.code.linear(form.base, [(digits[axis], step) for axis, step in form.terms])

    def leading(self, digits: Mapping[int, SSAValue]) -> dict[int, SSAValue]:
        """The values of the dimensions that choose a row."""
        return {number: self.value(form, digits) for number, form in enumerate(row_forms(self.what.scores))}

    def vectors(self, tile: SSAValue, row: SSAValue, count: int) -> list[SSAValue]:
        """A row of a tile that has so many vectors."""
        lanes = self.tiles.lanes
        return [self.code.load(tile, [row, self.code.index(v * lanes)], lanes) for v in range(count)]

    # One row

    def put_scores(
        self, rows: Rows, row: SSAValue, vectors: Sequence[SSAValue], left: SSAValue, on: SSAValue | None = None
    ) -> None:
        """Puts vectors of products, from the column `left` on, through the maps and into the scores of a row.

        Only the first `on` lanes, or all: there is room.
        """
        code, lanes = self.code, self.tiles.lanes
        digits = self.leading(self.digits(rows, row)) if self.what.maps else {}
        for number, vector in enumerate(vectors):
            place = code.add(left, number * lanes)
            value = self._mapped(vector, {**digits, len(digits): place})
            code.store(value, rows.scores, [row, place], None if on is None else code.leading(on, lanes))

    def _mapped(self, vector: SSAValue, at: Mapping[int, SSAValue]) -> SSAValue:
        """A vector of products after the maps."""
        produced, last = {self.what.scores.store.buffer: vector}, len(at) - 1
        on = None if not self.what.maps else self.code.sub(self.code.dim(self.n), at[last])
        for stage in self.what.maps:
            produced |= self._computed(stage, at, Lanes(last, self.tiles.lanes, on), produced)
        return produced[self.what.buffer]

    def _computed(
        self, stage: Stage, at: Mapping[int, SSAValue], lanes: Lanes, produced: Mapping[SSAValue, SSAValue]
    ) -> dict[SSAValue, SSAValue]:
        """What a map stores, by buffers; what it reads of `produced` is at hand."""
        body = Explicit(self.kernel, stage, at, lanes)
        body.values |= {load.result: produced[load.buffer] for load in stage.loads if load.buffer in produced}
        body.run(stage.body)
        return {store.buffer: body.widened(body.value(store.value)) for store in stage.stores}

    def chain(self, rows: Rows, row: SSAValue, end: SSAValue | None = None) -> None:
        """What happens along the scores of a row, up to a column or all."""
        what, kernel, chain = self.what, self.kernel, self.what.row
        at = self.leading(self.digits(rows, row))
        scores = self.code.part(rows.scores, row, [self.n])
        for buffer in (what.buffer, what.weights.buffer):
            kernel.rows[buffer] = scores, chain.depth
        for buffer in chain.unread:
            kernel.rows[buffer] = scores, chain.depth  # nobody reads it from memory
        for buffer, memory in rows.numbers.items():
            one = RegionAxis(row, self.code.add(row, 1))
            kind = SSAValue.get(memory, type=BufferType).type
            view = MatchBufferOp(memory, [one], BufferType([1], kind.dtype, scope=kind.scope))
            kernel.rows[buffer] = self.code.value(view), chain.depth
        outer, kernel.unread = kernel.unread, chain.unread
        for items in chain.sweeps:
            found = {i: what.reductions[stage] for i, stage in enumerate(items) if stage in what.reductions}
            sweep = Sweep(kernel, items, range(chain.depth, len(items[0].axes)), found)
            part = None if end is None or sweep.outermost is not sweep.lane else (self.code.index(0), end)
            accumulators = sweep.emit(at, part)
            if accumulators is not None:
                accumulators.write(accumulators.finish())
        kernel.unread = outer

    def put_totals(self, rows: Rows, row: SSAValue, vectors: Sequence[SSAValue], left: SSAValue) -> None:
        """Puts vectors of totals, from the column `left` on, through what follows and into memory."""
        code, lanes = self.code, self.tiles.lanes
        digits = self.digits(rows, row)
        numbers = {buffer: code.load(memory, [row]) for buffer, memory in rows.numbers.items()}
        for number, vector in enumerate(vectors):
            place = code.add(left, number * lanes)
            on = code.sub(code.dim(self.totals.n), place)
            self._put_total(vector, {**digits, COLUMN: place}, on, numbers)

    def _put_total(
        self,
        vector: SSAValue,
        digits: Mapping[int, SSAValue],
        on: SSAValue,
        numbers: Mapping[SSAValue, SSAValue],
    ) -> None:
        what, lanes = self.what, self.tiles.lanes
        produced = {**numbers, what.totals.store.buffer: vector}
        if what.totals.store.buffer not in what.unread:
            at = {theirs: digits[mine] for mine, theirs in what.axes.items()} | {what.totals.column[0]: digits[COLUMN]}
            terms = [(value, what.totals.output.strides[axis]) for axis, value in at.items()]
            index = self.code.linear(what.totals.output.base, terms)
            self.code.store(vector, self.totals.sums, [index], self.code.leading(on, lanes))
        for step in what.following:
            at = {axis: self.value(form, digits) for axis, form in enumerate(step.axes)}
            axis = next(axis for axis, form in enumerate(step.axes) if any(each == COLUMN for each, _ in form.terms))
            produced |= self._computed(step.stage, at, Lanes(axis, lanes, on), produced)


class PackedAttention(AttentionCode):
    """Emits attention with packed keys and values."""

    def emit(self) -> None:
        """All batches and blocks of rows; threads take ranges of them."""
        code, rows = self.code, self.tiles.rows
        strips = self._strips()
        blocks = ceildiv(self.m, strips * rows)
        units = self.batches * blocks
        work = self.batches * self.m * self.n * (self.scores.k + self.totals.n)
        threads = self.scores.threads(PRODUCTS_PER_TASK, work)
        tasks = minimum(units, maximum(TASKS_PER_THREAD * (threads - 1) * threads, constant(1)))
        with shared_units(code, units, tasks) as (lower, upper):
            scores, numbers = self.memory(strips * rows)
            panels = _Panels(self)
            step = self.tiles.lanes * ceildiv(self.scores.k, constant(self.tiles.lanes))
            queries = RowPanels(self.scores, MOST_STRIPS * (step.constant_value or 1), step)
            with code.loop(upper, "unit", lower=lower) as unit:
                number = code.dim(blocks)
                batch, block = code.divide(unit, number), code.remainder(unit, number)
                is_first = arith.OrIOp(code.compare("eq", block, 0), code.compare("eq", unit, lower))
                with code.when(code.value(is_first)):
                    panels.pack(batch)
                top = code.mul(block, code.dim(strips * rows))
                count = code.minimum(code.sub(code.dim(self.m), top), code.dim(strips * rows))
                self._block(Rows(scores, numbers, batch, top, count), panels, queries)

    def _strips(self) -> Dim:
        """Strips of rows in a block: as many as have room in half of the second-level cache."""
        row_bytes = byte_size(self.what.scores.element) * self.tiles.rows
        room = self.kernel.target.l2_bytes // 2 // row_bytes
        most = min(MOST_STRIPS, self.tiles.height // self.tiles.rows)
        fitting = floordiv(constant(room), maximum(self.n, constant(1)))
        return maximum(
            minimum(minimum(fitting, ceildiv(self.m, constant(self.tiles.rows))), constant(most)), constant(1)
        )

    def _block(self, rows: Rows, panels: _Panels, queries: RowPanels) -> None:
        code, height = self.code, self.tiles.rows
        strips = code.divide(code.add(rows.count, height - 1), height)
        zero, features = code.index(0), code.dim(self.scores.k)
        spot = self.spots(rows.batch, None)[0]
        if not queries.direct:
            with code.loop(strips, "strip") as strip:
                queries.pack(spot, strip, code.add(rows.top, code.mul(strip, height)), zero, features)

        def query(strip: SSAValue) -> Element:
            return queries.reader(spot, strip, code.add(rows.top, code.mul(strip, height)), zero)

        def weight(strip: SSAValue) -> Element:
            return lambda i, r: code.load(rows.scores, [code.add(code.mul(strip, height), i), r])

        end = self._end(rows)
        last = code.dim(self.n) if end is None else end
        self._product(self.scores, rows, panels.keys, query, features, last)
        with code.loop(rows.count, "row") as row:
            self.chain(rows, row, end)
        self._clear(rows, code.mul(strips, height))
        self._product(self.totals, rows, panels.values, weight, last, code.dim(self.totals.n))

    def _end(self, rows: Rows) -> SSAValue | None:
        """The number of columns that count for some row of a block; `None` if all may."""
        code, bound, axes = self.code, self.what.bound, self.what.scores.row
        moving = [] if bound is None else [axis for axis, stride in enumerate(bound.strides) if stride.terms]
        if bound is None or len(moving) != 1 or bound.strides[moving[0]].constant_value != 1 or not axes:
            return None
        form = row_forms(self.what.scores)[moving[0]]
        if form.base.terms or form.terms != frozenset(((axes[-1], constant(1)),)):
            return None
        # Rows that count as one with others begin anew after the last one.
        length = code.dim(self.what.scores.stage.extents[axes[-1]])
        first = code.remainder(rows.top, length) if len(axes) > 1 else rows.top
        last = code.minimum(code.add(first, rows.count), length)
        end = code.add(last, code.dim(bound.base))
        return code.maximum(code.minimum(end, code.dim(self.n)), 0)

    def _clear(self, rows: Rows, end: SSAValue) -> None:
        """Zeros in the rows up to the end of the last strip: what lies there might be numbers that take long."""
        code, lanes = self.code, self.tiles.lanes
        zeros = code.zeros(self.what.scores.element, lanes)
        vectors = ceildiv(self.n, constant(lanes))
        with code.loop(end, "row", lower=rows.count) as row, code.loop(code.dim(vectors), "v") as v:
            code.store(zeros, rows.scores, [row, code.mul(v, lanes)])

    def _product(
        self,
        product: Product,
        rows: Rows,
        panels: PackedColumns,
        reader: Callable[[SSAValue], Element],
        length: SSAValue,
        columns: SSAValue,
    ) -> None:
        """One of the products for a block of rows, panel by panel."""
        code, tiles = self.code, self.tiles
        strips = code.divide(code.add(rows.count, tiles.rows - 1), tiles.rows)
        put = self.put_scores if product is self.scores else self.put_totals
        with (
            code.loop(code.divide(code.add(columns, tiles.width - 1), tiles.width), "panel") as number,
            code.loop(strips, "strip") as strip,
        ):
            panel = panels.panel(number)
            done = code.mul(strip, tiles.rows)
            left = code.sub(rows.count, done)
            tile = self._tile(product, reader(strip), panel, left, length)
            with code.loop(code.minimum(left, tiles.rows), "i") as i:
                put(rows, code.add(done, i), self.vectors(tile, i, tiles.vectors), code.mul(number, tiles.width))

    def _tile(
        self, product: Product, element: Element, panel: ColumnPanel, left: SSAValue, length: SSAValue
    ) -> SSAValue:
        """A tile of sums, by the smallest micro-kernel that has `left` rows."""
        code, tiles = self.code, self.tiles
        tile = code.alloc([tiles.rows, tiles.width], product.what.element, "tile")
        bounds = code.index(0), length
        tall, low, *_ = tiles.heights
        with code.when(code.compare("sgt", left, low)) as branch:
            emit_tile(grid(product), bounds, tall, element, panel.vector, tile)
        with code.otherwise(branch):
            emit_tile(grid(product), bounds, low, element, panel.vector, tile)
        return tile


class _Panels:
    """The packed keys and values of a batch."""

    def __init__(self, attention: PackedAttention):
        self.attention = attention
        self.keys = self._columns(attention.scores)
        self.values = self._columns(attention.totals)

    def _columns(self, product: Product) -> PackedColumns:
        return PackedColumns(product, ceildiv(product.n, constant(product.tiles.width)), product.k)

    def pack(self, batch: SSAValue) -> None:
        """Packs all panels of a batch."""
        mine, theirs = self.attention.spots(batch, None)
        self._pack(self.attention.scores, mine, self.keys)
        self._pack(self.attention.totals, theirs, self.values)

    def _pack(self, product: Product, spot: Spot, panels: PackedColumns) -> None:
        code, width = product.code, product.tiles.width
        with code.loop(code.dim(ceildiv(product.n, constant(width))), "panel") as number:
            panels.panel(number).pack(spot, code.mul(number, width), code.index(0), code.dim(product.k))

"""Products in words: blocks of rows and panels of columns are packed, and multiplied by a micro-kernel.

Numbers are small, so a panel with the whole reduction stays in L2, and the reduction is not split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.tasks import shared_units
from lowering.schedule.cpu.low_precision.code import WORD_BYTES
from lowering.schedule.cpu.low_precision.columns import WordColumns
from lowering.schedule.cpu.low_precision.contraction import WordContraction
from lowering.schedule.cpu.low_precision.rows import WordRows
from lowering.schedule.cpu.low_precision.tile import WordTile
from lowering.schedule.cpu.products.finish import Finish
from lowering.schedule.cpu.products.one_row.vector import VectorProduct, can_read_columns
from lowering.schedule.cpu.products.product import Coords, Product
from lowering.schedule.cpu.products.tile import store_tile
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.ops.loops import LoopKind

PRODUCTS_PER_TASK = 1 << 21
"""So few take some five microseconds; to wake a thread for less does not pay."""
TASKS_PER_THREAD = 4
STRIPS_PER_THREAD = 16
FEW_ROWS = 2
"""So many rows of `bf16` are multiplied one by one before the columns would be packed."""
LOW = 1
"""The least height of a tile."""


@dataclass(frozen=True)
class WordProduct:
    """A product in words whose code is being emitted."""

    product: Product
    words: WordContraction

    def emit(self) -> None:
        """The code, batch axes included."""
        product, code = self.product, self.product.code
        with product.batches() as coords:
            if not self._may_have_few_rows:
                _Emitter(product, self.words).emit(coords)
                return
            with code.when(code.compare("sle", code.dim(product.m, "m"), FEW_ROWS)) as branch:
                self._emit_rows(coords)
            with code.otherwise(branch):
                _Emitter(product, self.words).emit(coords)

    @property
    def _may_have_few_rows(self) -> bool:
        """Whether columns may be read once for each row: packing them as words takes longer."""
        rows = self.product.m.constant_value
        return self.words.is_float and can_read_columns(self.product) and (rows is None or rows <= FEW_ROWS)

    def _emit_rows(self, coords: Coords) -> None:
        """The rows one by one, in `f32`."""
        product = self.product
        code, way = product.code, VectorProduct(product)
        with code.loop(code.dim(product.m), "row") as row:
            way.emit_row(coords, row)


class _Emitter:
    """Emits the product at given values of its batch axes."""

    def __init__(self, product: Product, words: WordContraction):
        self.product, self.words, self.code = product, words, product.code
        self.tiles = product.tiles
        self.m = product.m
        self.threads = product.threads(PRODUCTS_PER_TASK)
        strips = ceildiv(self.m, constant(self.tiles.rows))
        room = constant(product.kernel.target.l2_bytes // 2 // (WORD_BYTES * self.tiles.rows))
        most = maximum(floordiv(room, maximum(words.depth, constant(1))), constant(1))
        self.blocks = ceildiv(strips, most)
        self.strips = ceildiv(strips, maximum(self.blocks, constant(1)))
        self.columns = WordColumns(product, words)
        self.rows = WordRows(product, words, self.strips * self.tiles.rows)

    @property
    def _kind(self) -> LoopKind:
        return LoopKind.SERIAL if self.threads.constant_value == 1 else LoopKind.PARALLEL

    def emit(self, coords: Coords) -> None:
        """All rows, block by block."""
        code = self.code
        if not self.columns.are_given:
            with code.loop(code.dim(self.columns.count), "panel", kind=self._kind) as panel:
                self.columns.pack(coords, panel)
        with code.loop(code.dim(self.blocks), "block") as block:
            height = code.dim(self.strips * self.tiles.rows)
            top = code.mul(block, height)
            count = code.minimum(code.sub(code.dim(self.m), top), height)
            with code.loop(count, "i", kind=self._kind, grain=STRIPS_PER_THREAD * self.tiles.rows) as i:
                self.rows.pack(coords, code.add(top, i), i)
            self._tasks(coords, top, count)

    def _tasks(self, coords: Coords, top: SSAValue, count: SSAValue) -> None:
        """Units are panels of columns, each with a part of the strips."""
        code, threads, panels = self.code, self.threads, self.columns.count
        wanted = ceildiv(TASKS_PER_THREAD * (threads - 1), maximum(panels, constant(1)))
        parts = maximum(minimum(wanted, floordiv(self.strips, constant(4))), constant(1))
        tasks = minimum(panels * parts, maximum(TASKS_PER_THREAD * (threads - 1) * threads, constant(1)))
        strips = code.divide(code.add(count, self.tiles.rows - 1), self.tiles.rows)
        with shared_units(code, panels * parts, tasks) as (lower, upper), code.loop(upper, "unit", lower=lower) as unit:
            panel, share = code.divide(unit, code.dim(parts)), code.remainder(unit, code.dim(parts))
            tile = WordTile(self.product, self.words, self.columns, panel)
            first, end = self._share(strips, share, parts)
            with code.loop(end, "strip", lower=first) as strip:
                self._strip(tile, coords, code.mul(strip, self.tiles.rows), (top, count))

    def _share(self, strips: SSAValue, share: SSAValue, parts: Dim) -> tuple[SSAValue, SSAValue]:
        code = self.code
        first, end = (code.divide(code.mul(each, strips), code.dim(parts)) for each in (share, code.add(share, 1)))
        return first, end

    def _strip(self, tile: WordTile, coords: Coords, done: SSAValue, block: tuple[SSAValue, SSAValue]) -> None:
        """A tile of the rows from `done` on in the block, by the smallest micro-kernel that has all its rows."""
        code, (top, count) = self.code, block
        sums = code.alloc([self.tiles.rows, self.tiles.width], self.words.total, "tile")

        def word(i: int, r: SSAValue) -> SSAValue:
            return self.rows.word(code.add(done, i), r)

        def emit(left: SSAValue, heights: Sequence[int]) -> None:
            height, *smaller = heights
            if not smaller:
                tile.emit(height, word, sums)
                return
            with code.when(code.compare("sgt", left, smaller[0])) as branch:
                tile.emit(height, word, sums)
            with code.otherwise(branch):
                emit(left, smaller)

        emit(code.sub(count, done), self._heights)
        left = code.mul(tile.panel, self.tiles.width)
        store_tile(self.product, Finish(self.product, None, None), sums, coords, (code.add(top, done), left))

    @property
    def _heights(self) -> tuple[int, ...]:
        """Rows of the tiles: if their number is known, the last tile has as many as are left."""
        rows, known = self.tiles.rows, self.m.constant_value
        if known is None:
            return (*self.tiles.heights, LOW)
        rest = known % rows
        return (rest,) if 0 < known < rows else (rows, rest) if rest else (rows,)

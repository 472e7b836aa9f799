"""Products in words: blocks of rows and panels of columns are packed, and multiplied by a micro-kernel.

Numbers are small, so a panel with the whole reduction stays in L2, and the reduction is not split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.gemm.dot_groups.code import WORD_BYTES
from lowering.kernels.cpu.gemm.dot_groups.columns import WordColumns
from lowering.kernels.cpu.gemm.dot_groups.contraction import WordContraction
from lowering.kernels.cpu.gemm.dot_groups.rows import WordRows
from lowering.kernels.cpu.gemm.dot_groups.shares import MANY, Range, Share, Shares
from lowering.kernels.cpu.gemm.dot_groups.tile import WordTile
from lowering.kernels.cpu.gemm.finish import Finish
from lowering.kernels.cpu.gemm.gemv.vector import VectorProduct, can_read_columns
from lowering.kernels.cpu.gemm.packed.packed import PACKED_BYTES
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.gemm.tile import Corner, store_tile
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.ops.loops import LoopKind

PRODUCTS_PER_TASK = 1 << 21
"""So few take some five microseconds; to wake a thread for less does not pay."""
NEAR = 4
"""Packed columns that one block of rows needs take so large a part of the second-level cache."""
FEW_ROWS = 2
"""So many rows of `bf16` are multiplied one by one before the columns would be packed."""
LOW = 1
"""The least height of a tile."""


@dataclass(frozen=True)
class Block:
    """Strips of rows that a task packs at once, numbered from its first ones."""

    task: SSAValue
    share: Share
    number: SSAValue
    strips: Range


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
        threads = ceildiv(product.threads(PRODUCTS_PER_TASK), maximum(product.size(product.what.batch), constant(1)))
        panels = ceildiv(product.n, constant(self.tiles.width))
        self.shares = Shares(self.code, ceildiv(self.m, constant(self.tiles.rows)), panels, threads)
        room = constant(product.kernel.target.l2_bytes // 2 // (WORD_BYTES * self.tiles.rows))
        most = maximum(floordiv(room, maximum(words.depth, constant(1))), constant(1))
        self.blocks = ceildiv(self.shares.strips, most)
        self.strips = ceildiv(self.shares.strips, self.blocks)
        self.columns = WordColumns(product, words, threads, self._kept)
        self.rows = WordRows(product, words, threads, self.strips * self.tiles.rows)

    @property
    def _kept(self) -> Dim:
        """How many panels a task keeps."""
        target, panel = (
            self.product.kernel.target,
            WORD_BYTES * self.tiles.width * maximum(self.words.depth, constant(1)),
        )
        near = floordiv(constant(target.l2_bytes // NEAR), panel)
        most = floordiv(constant(min(PACKED_BYTES, target.l3_bytes // 2)), panel * self.shares.tasks)
        room = minimum(most, maximum(near, MANY * (self.blocks - 1)))
        return maximum(minimum(self.shares.panels, room), constant(1))

    def emit(self, coords: Coords) -> None:
        """All tasks."""
        code, kind = self.code, LoopKind.SERIAL if self.shares.is_alone else LoopKind.PARALLEL
        with code.loop(code.dim(self.shares.tasks), "task", kind=kind) as task:
            share = self.shares.of(task)
            self.rows.take(task)
            first, end = share.strips
            height = code.dim(self.strips)
            count = code.divide(code.add(code.sub(end, first), code.sub(height, 1)), height)
            with code.loop(count, "block") as number:
                lower = code.add(first, code.mul(number, height))
                block = Block(task, share, number, (lower, code.minimum(code.add(lower, height), end)))
                self._block(coords, block)

    def _block(self, coords: Coords, block: Block) -> None:
        """Packs the rows of a block, and multiplies them with the panels."""
        code, (first, end), panels = self.code, block.strips, block.share.panels
        top, bottom = (code.mul(each, self.tiles.rows) for each in (first, end))
        with code.loop(code.sub(code.minimum(bottom, code.dim(self.m)), top), "i") as i:
            self.rows.pack(coords, code.add(top, i), i)
        with code.loop(panels[1], "panel", lower=panels[0]) as panel:
            columns = self.columns.take(coords, panel, block.task, panels, block.number)
            tile = WordTile(self.product, self.words, columns)
            some = self.shares.strips_of(block.share, panel)
            lower, upper = code.maximum(some[0], first), code.minimum(some[1], end)
            with code.loop(upper, "strip", lower=lower) as strip:
                is_last = code.compare("sge", code.add(strip, 1), upper)
                row = code.mul(code.select(is_last, lower, code.add(strip, 1)), self.tiles.rows)
                column = code.mul(code.select(is_last, code.add(panel, 1), panel), self.tiles.width)
                self._strip(tile, coords, (strip, panel), top, (row, column))

    def _strip(
        self, tile: WordTile, coords: Coords, at: tuple[SSAValue, SSAValue], top: SSAValue, later: Corner
    ) -> None:
        """A tile of a strip and a panel, by the smallest micro-kernel that has all its rows."""
        code, (strip, panel) = self.code, at
        row = code.mul(strip, self.tiles.rows)
        sums = code.alloc([self.tiles.rows, self.tiles.width], self.words.total, "tile")

        def word(i: int, r: SSAValue) -> SSAValue:
            return self.rows.word(code.add(code.sub(row, top), i), r)

        def emit(left: SSAValue, heights: Sequence[int]) -> None:
            height, *smaller = heights
            if not smaller:
                tile.emit(height, word, sums)
                return
            with code.when(code.compare("sgt", left, smaller[0])) as branch:
                tile.emit(height, word, sums)
            with code.otherwise(branch):
                emit(left, smaller)

        emit(code.sub(code.dim(self.m), row), self._heights)
        left = code.mul(panel, self.tiles.width)
        store_tile(self.product, Finish(self.product, None, None), sums, coords, (row, left), later)

    @property
    def _heights(self) -> tuple[int, ...]:
        """Rows of the tiles: if their number is known, the last tile has as many as are left."""
        rows, known = self.tiles.rows, self.m.constant_value
        if known is None:
            return (*self.tiles.heights, LOW)
        rest = known % rows
        return (rest,) if 0 < known < rows else (rows, rest) if rest else (rows,)

"""Attention with small M, as in decoding: keys and values are read once, in place."""

from __future__ import annotations

from dataclasses import replace

from typing_extensions import override
from xdsl.ir import SSAValue

from lowering.kernels.cpu.attention.packed import PackedAttention
from lowering.kernels.cpu.attention.pattern import Attention
from lowering.kernels.cpu.attention.row_code import AttentionCode, Rows
from lowering.kernels.cpu.emit.kernel import Kernel, shared_units
from lowering.kernels.cpu.gemm.cost_model import SKINNY_MAX_M, TASK_MACS
from lowering.kernels.cpu.gemm.dot import DotGemm, can_dot_pages
from lowering.kernels.cpu.gemm.epilogue import EpilogueEmitter
from lowering.kernels.cpu.gemm.problem import Coords, Gemm
from lowering.kernels.cpu.gemm.register_tile import emit_tile, grid
from lowering.kernels.cpu.gemm.tiling import Tiling, tiling
from lowering.kernels.cpu.structure.epilogue import Epilogue
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, minimum
from tir_dialect.dtypes import byte_size

GROUPS = (4, 1)
"""Rows that share a vector of values in registers; four of them keep the multipliers busy."""


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
        most = (self.kernel.target.tile_registers - 2) // (GROUPS[0] + 1)
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
                product = DotGemm(self.scores)
                product.epilogue = _IntoScores(self, rows)
                product.emit(mine)
                with code.loop(rows.count, "row") as row:
                    self.chain(rows, row)
                self._totals(rows, theirs)

    def _totals(self, rows: Rows, coords: Coords) -> None:
        """The second GEMM, in groups of rows that share loads of values."""
        code = self.code
        with code.loop(code.dim(ceildiv(self.totals.n, constant(self.wide.nr))), "panel") as panel:
            done = constant(0)
            for mr in GROUPS:
                first, end = floordiv(done, constant(mr)), floordiv(self.m, constant(mr))
                if (end - first).constant_value != 0:
                    self._group(rows, coords, code.mul(panel, self.wide.nr), mr, (first, end))
                done = end * mr

    def _group(self, rows: Rows, coords: Coords, left: SSAValue, mr: int, bounds: tuple[Dim, Dim]) -> None:
        code, tiles, attention, product = self.code, self.wide, self.attention.totals, self.totals
        tile = code.alloc([mr, tiles.nr], attention.element, "tile")
        starts = [code.add(left, v * tiles.lanes) for v in range(tiles.vectors)]
        counts = [code.sub(code.dim(product.n), column) for column in starts]
        ends = code.index(0), code.dim(self.n)
        with code.loop(code.dim(bounds[1]), "group", lower=code.dim(bounds[0])) as group:
            top = code.mul(group, mr)
            rows_of_tile = [code.add(top, i) for i in range(mr)]

            def element(i: int, r: SSAValue) -> SSAValue:
                return code.load(rows.scores, [rows_of_tile[i], r])

            def emit(masked: bool) -> None:
                def vector(r: SSAValue, v: int) -> SSAValue:
                    here = {**coords, attention.reduced: r, attention.column: starts[v]}
                    return product.vector(attention.columns, here, attention.column, counts[v] if masked else None)

                emit_tile(grid(product), ends, mr, element, vector, tile, is_long=True)

            product.masked(counts[0], tiles.nr, emit)
            for i, row in enumerate(rows_of_tile):
                self.put_totals(rows, row, self.vectors(tile, code.index(i), tiles.vectors), left)


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


def emit_attention(kernel: Kernel, attention: Attention) -> None:
    """Generates attention by the form that suits the number of rows."""
    tiles = tiling(kernel.target, byte_size(attention.scores.element))
    few, many = StreamedAttention(kernel, attention, tiles), PackedAttention(kernel, attention, tiles)
    code = kernel.code
    if not few.is_possible or few.m.constant_value is not None:
        (few if few.is_possible else many).emit()
        return
    with code.when(code.compare("sle", code.dim(few.m, "m"), SKINNY_MAX_M)) as branch:
        few.emit()
    with code.otherwise(branch):
        many.emit()

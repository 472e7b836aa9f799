"""The micro-kernel: a register tile of accumulators, and its way to the output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.blocked_accumulation import MOST, VectorTotals, in_blocks
from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.gemm.cache_lines import ends_of_lines
from lowering.kernels.cpu.gemm.finish import Finish
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.gemm.results import Results
from tir_dialect.dims import constant

Element = Callable[[int, SSAValue], SSAValue]
"""Gives an element of the rows, by its row in the tile and its step of the reduction."""


Step = Callable[[SSAValue], None]

CHAINS, MOST_PARTS = 16, 4
"""So many sums are under way where that is easily done: eight keep the multipliers busy, more hide where one waits."""


def parts_of(height: int, vectors: int, registers: int) -> int:
    """In how many parts of the sums low tiles are made: all sums, a row of columns and an element have registers."""
    wanted, room = -(-CHAINS // (height * vectors)), (registers - vectors - 1) // (height * vectors)
    return max(1, min(MOST_PARTS, wanted, room))


@dataclass(frozen=True)
class Grid:
    """The columns of a tile: so many vectors of so many lanes, and the block that its code goes to."""

    code: Code
    dtype: AnyFloat
    lanes: int
    vectors: int

    @property
    def line_ends(self) -> range:
        """The last column in each line of the cache."""
        return ends_of_lines(self.lanes * self.vectors, self.dtype)


def grid(product: Product) -> Grid:
    """That of the tiles of a product."""
    return Grid(product.code, product.what.element, product.tiles.lanes, product.tiles.vectors)


def emit_tile(
    grid: Grid,
    bounds: tuple[SSAValue, SSAValue],
    height: int,
    element: Element,
    vector: Callable[[SSAValue, int], SSAValue],
    tile: SSAValue | Results,
    prefetch: Step | None = None,
    steps: int = 1,
    is_long: bool = False,
) -> None:
    """Sums of `height` rows into the buffer `tile`, or to the output.

    `element(i, r)` gives an element of row `i`, `vector(r, v)` the columns that it is multiplied with. The sums are in
    a buffer that LLVM keeps in registers: every access to it has constant indices. `prefetch(r)` prefetches what
    comes next; an iteration of the loop has so many `steps`. Sums that may be long go in blocks, if they are no block
    of a longer one.
    """
    sums = _Sums(grid, height, 1)
    sums.prefetch(tile)

    def run(lower: SSAValue | None, upper: SSAValue) -> None:
        with grid.code.loop(upper, "r", lower=lower, unroll=steps) as r:
            if prefetch is not None:
                prefetch(r)
            sums.add(0, r, element, vector)

    if is_long:
        in_blocks(grid.code, bounds, run, sums.totals, constant(MOST))
    else:
        run(*bounds)
    sums.store(tile)


def emit_panel_tile(
    grid: Grid,
    length: SSAValue,
    height: int,
    element: Element,
    vector: Callable[[SSAValue, int], SSAValue],
    tile: SSAValue | Results,
    prefetch: Step,
    parts: int,
) -> None:
    """The same from 0 to `length` in parts of the sums, side by side, for columns that come from far.

    So there are more sums of low tiles under way, and memory is read in several streams, which is faster.
    """
    code = grid.code
    sums = _Sums(grid, height, parts)
    sums.prefetch(tile)
    steps = code.divide(length, parts)
    with code.loop(steps, "step") as step:
        for part in range(parts):
            r = code.add(code.mul(steps, part), step) if part else step
            prefetch(r)
            sums.add(part, r, element, vector)
    with code.loop(length, "r", lower=code.mul(steps, parts)) as r:
        prefetch(r)
        sums.add(0, r, element, vector)
    sums.store(tile)


class _Sums:
    """The accumulators of a tile, in registers."""

    def __init__(self, grid: Grid, height: int, parts: int):
        self._grid = grid
        code, dtype, lanes, width = grid.code, grid.dtype, grid.lanes, grid.lanes * grid.vectors
        self._buffer = code.alloc([parts * height, width], dtype, "sums", scope="local")
        columns = range(0, width, lanes)
        self._accumulators = [
            [[[code.index(part * height + i), code.index(j)] for j in columns] for i in range(height)]
            for part in range(parts)
        ]
        zeros = code.zeros(dtype, lanes)
        for accumulator in (accumulator for part in self._accumulators for line in part for accumulator in line):
            code.store(zeros, self._buffer, accumulator)

    def totals(self) -> VectorTotals:
        """Room for what sums are between two blocks."""
        places = [each for part in self._accumulators for line in part for each in line]
        return VectorTotals(self._grid.code, self._grid.dtype, self._buffer, places, self._grid.lanes)

    def add(self, part: int, r: SSAValue, element: Element, vector: Callable[[SSAValue, int], SSAValue]) -> None:
        """The products of one step along the reduction."""
        code, lanes = self._grid.code, self._grid.lanes
        columns = [vector(r, v) for v in range(self._grid.vectors)]
        for i, line in enumerate(self._accumulators[part]):
            factor = code.splat(element(i, r), lanes)
            for accumulator, column in zip(line, columns, strict=True):
                code.store(
                    code.fma(factor, column, code.load(self._buffer, accumulator, lanes)), self._buffer, accumulator
                )

    def prefetch(self, tile: SSAValue | Results) -> None:
        """Asks for the rows of the output, which takes less time than the sums."""
        if not isinstance(tile, Results) or not tile.is_prefetched:
            return
        for i in range(len(self._accumulators[0])):
            for end in self._grid.line_ends:
                self._grid.code.prefetch(tile.buffer, tile.index(self._grid.code, i, end), 1)

    def store(self, tile: SSAValue | Results) -> None:
        """The sums of all parts, into memory, or to what is in the output but in the first block of the reduction."""
        if not isinstance(tile, Results):
            self._store(lambda value, i, v: self._grid.code.store(value, tile, self._accumulators[0][i][v]))
            return
        if tile.count is None or not tile.masks_if_needed:
            self._to_output(tile, tile.count)
            return
        code, width = self._grid.code, self._grid.lanes * self._grid.vectors
        with code.when(code.compare("sge", tile.count, width)) as branch:
            self._to_output(tile, None)
        with code.otherwise(branch):
            self._to_output(tile, tile.count)

    def _to_output(self, tile: Results, count: SSAValue | None) -> None:
        """So many columns of the sums, or all, to rows of the output."""
        code, lanes = self._grid.code, self._grid.lanes

        def put(value: SSAValue, i: int, v: int, adds: bool) -> None:
            mask = None if count is None else code.leading(code.sub(count, v * lanes), lanes)
            index = tile.index(code, i, v * lanes)
            if adds:
                value = code.add_floats(code.load(tile.buffer, index, lanes, mask), value)
            code.store(value, tile.buffer, index, mask)

        if tile.k_block is None:
            self._store(partial(put, adds=False))
            return
        with code.when(code.compare("eq", tile.k_block, 0)) as branch:
            self._store(partial(put, adds=False))
        with code.otherwise(branch):
            self._store(partial(put, adds=True))

    def _store(self, put: Callable[[SSAValue, int, int], None]) -> None:
        """Gives each vector of sums, with its row and its number in the row, to a function."""
        code, lanes = self._grid.code, self._grid.lanes
        for i, line in enumerate(self._accumulators[0]):
            for v in range(len(line)):
                values = [code.load(self._buffer, part[i][v], lanes) for part in self._accumulators]
                put(reduce(code.add_floats, values), i, v)


Corner = tuple[SSAValue, SSAValue]
"""The first row and the first column of a tile."""


def store_tile(
    product: Product, finish: Finish, tile: SSAValue, coords: Coords, corner: Corner, later: Corner | None = None
) -> None:
    """The rows and columns of a tile that there are; asks for the output of the tile that is made `later`."""
    code, tiles = product.code, product.tiles
    top, left = corner
    rows = code.minimum(code.sub(code.dim(product.m), top), tiles.rows)
    store_rows(product, finish, tile, coords, (top, rows), left, later)


def store_rows(
    product: Product,
    finish: Finish,
    tile: SSAValue,
    coords: Coords,
    rows: tuple[SSAValue, SSAValue],
    left: SSAValue,
    later: Corner | None = None,
) -> None:
    """So many rows of a tile: `rows` are the first one and their number; asks for as many from `later` on."""
    code, tiles, what = product.code, product.tiles, product.what
    n, (top, count) = code.dim(product.n), rows
    with code.loop(count, "i") as i:
        here = {**coords, what.row: code.add(top, i)}
        for v in range(tiles.vectors):
            column = code.add(left, v * tiles.lanes)
            sums = code.load(tile, [i, code.index(v * tiles.lanes)], tiles.lanes)
            finish.store(sums, {**here, what.column: column}, code.sub(n, column))
        if later is not None:
            there = {**coords, what.row: code.add(later[0], i)}
            for end in grid(product).line_ends:
                finish.prefetch({**there, what.column: code.add(later[1], end)})

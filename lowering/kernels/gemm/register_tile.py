"""The register tile of the micro-kernel: MR x NR accumulators, their loop along K, and their way to the output.

Of the columns after the last whole panel or vector very few are multiplied separately, as small N: a panel takes at
least as long as one vector of columns, even for a single column. Where the last panel may be as narrow as a vector, a
very small number of columns after that is separate, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import product

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerType, i16
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    ACCUMULATORS_IN_FLIGHT,
    MAX_K_SPLITS,
    REMAINDER_COLUMNS,
    REMAINDER_MIN_M,
    SMALL_N,
    SMALL_N_K_PER_COLUMN,
    SMALL_N_M_PER_COLUMN,
    SUM_BLOCK_STEPS,
)
from lowering.kernels.emit.accumulators import VectorTotals, in_blocks
from lowering.kernels.emit.code import Code
from lowering.kernels.gemm.epilogue import EpilogueEmitter, OutputTile
from lowering.kernels.gemm.problem import Coords, Gemm, cache_line_ends_of
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.ops.vectors import DotOp


def has_contiguous_rows(gemm: Gemm) -> bool:
    """Whether rows are contiguous along K, and columns in no panels, so that a small N can be multiplied."""
    contraction = gemm.contraction
    plain = contraction.longest is None and not contraction.outer and contraction.columns.panels is None
    several = bool(contraction.row) and gemm.m.constant_value != 1
    return plain and several and gemm.is_contiguous(contraction.rows, contraction.reduced)


def narrow_step(gemm: Gemm) -> int:
    """The width of the last panel, if it may be narrow: a vector, if that has more lanes than columns are few."""
    lanes = gemm.tiles.lanes
    return lanes if lanes > REMAINDER_COLUMNS else gemm.tiles.nr


def has_remainder(gemm: Gemm, step: int | None = None) -> bool:
    """Whether at most `REMAINDER_COLUMNS` columns may remain after whole vectors or panels."""
    contraction, rows = gemm.contraction, gemm.m.constant_value
    if gemm.is_swapped or not has_contiguous_rows(gemm) or gemm.is_contiguous(contraction.columns, contraction.reduced):
        return False
    if not gemm.is_contiguous(contraction.columns, contraction.column) or (
        rows is not None and rows <= REMAINDER_MIN_M
    ):
        return False
    known = gemm.n.constant_value
    step = step or narrow_step(gemm)
    return known is None or (known > REMAINDER_COLUMNS and 0 < known % step <= REMAINDER_COLUMNS)


def max_small_n(gemm: Gemm) -> Dim:
    """The largest N that is small, at least one."""
    longer = floordiv(gemm.k, constant(SMALL_N_K_PER_COLUMN))
    most = minimum(constant(SMALL_N), maximum(longer, constant(1)))
    if gemm.is_contiguous(gemm.contraction.columns, gemm.contraction.reduced):
        return most
    return minimum(most, maximum(floordiv(gemm.m, constant(SMALL_N_M_PER_COLUMN)), constant(REMAINDER_COLUMNS)))


def is_small_n(gemm: Gemm) -> bool | None:
    """Whether N is small; `None` if that depends on the call."""
    columns, most = gemm.n.constant_value, max_small_n(gemm).constant_value
    if columns is None or (1 < columns <= SMALL_N and most is None):
        return None
    return columns <= (most or SMALL_N)


def max_remainder(gemm: Gemm, step: int) -> Dim:
    """The most columns that may remain after whole steps, fewer than a step has."""
    return minimum(constant(min(step - 1, REMAINDER_COLUMNS)), max_small_n(gemm))


def main_columns(gemm: Gemm, step: int) -> Dim:
    """N without the columns that remain after whole steps, where N is not small."""
    if not has_remainder(gemm, step):
        return gemm.n
    steps = floordiv(gemm.n + (constant(step - 1) - max_remainder(gemm, step)), constant(step))
    return minimum(gemm.n, maximum(steps, constant(1)) * step)


def main_panels(gemm: Gemm, step: int) -> Dim:
    """How many panels have these columns."""
    return ceildiv(main_columns(gemm, step), constant(gemm.tiles.nr)) * gemm.rounds


Element = Callable[[int, SSAValue], SSAValue]
"""Gives an element of the rows, by its row in the tile and its step of K."""


Step = Callable[[SSAValue], None]


def k_splits(mr: int, vectors: int, registers: int) -> int:
    """In how many slices of K a low tile is made: the accumulators of all, a row of B and an element of A have
    registers.
    """
    wanted, room = -(-ACCUMULATORS_IN_FLIGHT // (mr * vectors)), (registers - vectors - 1) // (mr * vectors)
    return max(1, min(MAX_K_SPLITS, wanted, room))


@dataclass(frozen=True)
class TileColumns:
    """The columns of a tile: some vectors of some lanes; and where its code goes.

    Accumulators of `i32` are of products of 16 bits, of which each factor has two in 32 bits.
    """

    code: Code
    dtype: AnyFloat | IntegerType
    lanes: int
    vectors: int

    @property
    def line_ends(self) -> range:
        """The last column in each cache line."""
        return cache_line_ends_of(self.lanes * self.vectors, self.dtype)

    def multiply_add(self, a: SSAValue, b: SSAValue, total: SSAValue) -> SSAValue:
        """A vector accumulator with the products of two vectors added."""
        if isinstance(self.dtype, IntegerType):
            return self.code.value(DotOp((i16, i16), a, b, total))
        return self.code.fma(a, b, total)

    def added(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The sum of two vector accumulators."""
        if isinstance(self.dtype, IntegerType):
            return self.code.value(arith.AddiOp(a, b))
        return self.code.add_floats(a, b)


def grid(gemm: Gemm) -> TileColumns:
    """The columns of the tiles of a GEMM."""
    return TileColumns(gemm.code, gemm.contraction.element, gemm.tiles.lanes, gemm.tiles.vectors)


def emit_tile(
    grid: TileColumns,
    bounds: tuple[SSAValue, SSAValue],
    mr: int,
    element: Element,
    vector: Callable[[SSAValue, int], SSAValue],
    tile: SSAValue | OutputTile,
    prefetch: Step | None = None,
    steps: int = 1,
    is_long: bool = False,
) -> None:
    """Emits the accumulators of `mr` rows, into the buffer `tile` or to the output.

    `element(i, r)` gives an element of row `i` of A, `vector(r, v)` a vector of B. The accumulators are in a buffer
    that LLVM keeps in registers: every access to it has constant indices. `prefetch(r)` prefetches what comes next, and
    `steps` is the unroll factor. Where K may be long and is no K block, totals are kept as `in_blocks` does.
    """
    accumulators = _Accumulators(grid, mr, 1)
    accumulators.prefetch(tile)

    def run(lower: SSAValue | None, upper: SSAValue) -> None:
        with grid.code.loop(upper, "r", lower=lower, unroll=steps) as r:
            if prefetch is not None:
                prefetch(r)
            accumulators.add(0, r, element, vector)

    if is_long:
        in_blocks(grid.code, bounds, run, accumulators.totals, constant(SUM_BLOCK_STEPS))
    else:
        run(*bounds)
    accumulators.store(tile)


def emit_split_tile(
    grid: TileColumns,
    length: SSAValue,
    mr: int,
    element: Element,
    vector: Callable[[SSAValue, int], SSAValue],
    tile: SSAValue | OutputTile,
    prefetch: Step,
    chunks: int,
) -> None:
    """Emits a tile with several accumulators of each element, one for each of some slices of K, for columns from beyond
    the L2 cache.

    So more accumulators of low tiles are in flight, and memory is read in several streams, which is faster.
    """
    code = grid.code
    accumulators = _Accumulators(grid, mr, chunks)
    accumulators.prefetch(tile)
    steps = code.divide(length, chunks)
    with code.loop(steps, "step") as step:
        for chunk in range(chunks):
            r = code.add(code.mul(steps, chunk), step) if chunk else step
            prefetch(r)
            accumulators.add(chunk, r, element, vector)
    with code.loop(length, "r", lower=code.mul(steps, chunks)) as r:
        prefetch(r)
        accumulators.add(0, r, element, vector)
    accumulators.store(tile)


class _Accumulators:
    """The accumulators of a tile, in registers."""

    def __init__(self, grid: TileColumns, mr: int, chunks: int):
        self._grid = grid
        code, dtype, lanes, width = grid.code, grid.dtype, grid.lanes, grid.lanes * grid.vectors
        self._buffer = code.alloc([chunks * mr, width], dtype, "sums", scope="local")
        columns = range(0, width, lanes)
        self._accumulators = [
            [[[code.index(chunk * mr + i), code.index(j)] for j in columns] for i in range(mr)]
            for chunk in range(chunks)
        ]
        zeros = code.zeros(dtype, lanes)
        for accumulator in (accumulator for chunk in self._accumulators for row in chunk for accumulator in row):
            code.store(zeros, self._buffer, accumulator)

    def totals(self) -> VectorTotals:
        """Memory for the totals between two blocks of steps."""
        indices = [each for chunk in self._accumulators for row in chunk for each in row]
        dtype = self._grid.dtype
        assert isinstance(dtype, AnyFloat)  # sums of integers are exact in any order, and need no totals
        return VectorTotals(self._grid.code, dtype, self._buffer, indices, self._grid.lanes)

    def add(self, chunk: int, r: SSAValue, element: Element, vector: Callable[[SSAValue, int], SSAValue]) -> None:
        """Emits the multiply-adds of one step of K."""
        code, lanes = self._grid.code, self._grid.lanes
        columns = [vector(r, v) for v in range(self._grid.vectors)]
        for i, row in enumerate(self._accumulators[chunk]):
            factor = code.splat(element(i, r), lanes)
            for accumulator, column in zip(row, columns, strict=True):
                total = code.load(self._buffer, accumulator, lanes)
                code.store(self._grid.multiply_add(factor, column, total), self._buffer, accumulator)

    def prefetch(self, tile: SSAValue | OutputTile) -> None:
        """Prefetches the rows of the output, which takes less time than the accumulators."""
        if not isinstance(tile, OutputTile) or not tile.is_prefetched:
            return
        for i in range(len(self._accumulators[0])):
            for end in self._grid.line_ends:
                self._grid.code.prefetch(tile.buffer, tile.index(self._grid.code, i, end), 1)

    def store(self, tile: SSAValue | OutputTile) -> None:
        """Stores the accumulators, those of all slices of K added up; added to what is in the output but in the first K
        block.
        """
        if not isinstance(tile, OutputTile):
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

    def _to_output(self, tile: OutputTile, count: SSAValue | None) -> None:
        """Stores so many columns of the accumulators, or all, to rows of the output."""
        code, lanes = self._grid.code, self._grid.lanes

        def put(value: SSAValue, i: int, v: int, adds: bool) -> None:
            mask = None if count is None else code.leading(code.sub(count, v * lanes), lanes)
            index = tile.index(code, i, v * lanes)
            if adds:
                value = self._grid.added(code.load(tile.buffer, index, lanes, mask), value)
            code.store(value, tile.buffer, index, mask)

        if tile.k_block is None:
            self._store(partial(put, adds=False))
            return
        with code.when(code.compare("eq", tile.k_block, 0)) as branch:
            self._store(partial(put, adds=False))
        with code.otherwise(branch):
            self._store(partial(put, adds=True))

    def _store(self, put: Callable[[SSAValue, int, int], None]) -> None:
        """Gives each vector accumulator, with its row and its number in the row, to a function."""
        code, lanes = self._grid.code, self._grid.lanes
        for i, row in enumerate(self._accumulators[0]):
            for v in range(len(row)):
                values = [code.load(self._buffer, chunk[i][v], lanes) for chunk in self._accumulators]
                put(reduce(self._grid.added, values), i, v)


Corner = tuple[SSAValue, SSAValue]
"""The first row and the first column of a tile."""


def store_tile(
    gemm: Gemm, epilogue: EpilogueEmitter, tile: SSAValue, coords: Coords, corner: Corner, later: Corner | None = None
) -> None:
    """Stores the rows and columns of a tile that there are; prefetches the output of the tile that is made `later`."""
    code, tiles = gemm.code, gemm.tiles
    top, left = corner
    rows = code.minimum(code.sub(code.dim(gemm.m), top), tiles.mr)
    store_rows(gemm, epilogue, tile, coords, (top, rows), left, later)


def store_rows(
    gemm: Gemm,
    epilogue: EpilogueEmitter,
    tile: SSAValue,
    coords: Coords,
    rows: tuple[SSAValue, SSAValue],
    left: SSAValue,
    later: Corner | None = None,
) -> None:
    """Stores some rows of a tile; `rows` are the first one and their number. Prefetches as many from `later` on."""
    code, tiles, contraction = gemm.code, gemm.tiles, gemm.contraction
    n, (top, count) = code.dim(gemm.n), rows
    has_whole_tiles = (gemm.n % tiles.nr).constant_value == 0

    def store(numbers: Sequence[SSAValue]) -> None:
        vectors: list[tuple[SSAValue, Coords]] = []
        for i, v in product(numbers, range(tiles.vectors)):
            row, column = code.add(top, i), code.add(left, v * tiles.lanes)
            value = code.load(tile, [i, code.index(v * tiles.lanes)], tiles.lanes)
            vectors.append((value, {**coords, contraction.row: row, contraction.column: column}))
        if has_whole_tiles:
            epilogue.store_vectors(vectors)
        elif (gemm.n % tiles.lanes).constant_value == 0:  # all lanes of a vector have columns, or none has
            for value, at in vectors:
                with code.when(code.compare("slt", at[contraction.column], n)):
                    epilogue.store_vectors([(value, at)])
        else:
            for value, at in vectors:
                epilogue.store(value, at, code.sub(n, at[contraction.column]))
        if later is not None:
            for i, end in product(numbers, grid(gemm).line_ends):
                row, column = code.add(later[0], i), code.add(later[1], end)
                epilogue.prefetch({**coords, contraction.row: row, contraction.column: column})

    done = None
    if has_whole_tiles and epilogue.is_long:
        pairs = code.divide(count, 2)
        with code.loop(pairs, "pair") as pair:
            first = code.mul(pair, 2)
            store([first, code.add(first, 1)])
        done = code.mul(pairs, 2)
    with code.loop(count, "i", lower=done) as i:
        store([i])

"""GEMM with block-quantised weights in tile registers, whose numbers are `bf16`.

The rows of A are split into parts, and packed before, for strips of sixteen rows. A part of a number is the number less
the parts before it, rounded to `bf16`, so that two have 16 bits of a number and three have 24. Some columns, which are
rows of the weights, are decoded into tiles of sixteen columns that stay in L2 while all rows use them. Both are
dot-product groups of two numbers.

The weights are multiplied as the integers that they are, which are exact (`IntegerTileGemm`): a group of 32 numbers is
a step along K, whose products are stored, scaled and added up as vectors, while those of the next tiles are made. Where
rows have one part only, that takes longer than the products; then weights are rounded too, and the products of all
steps stay in registers (`RoundedTileGemm`).

A row with an infinity becomes NaN, since the second part of an infinity is NaN. Parts that are subnormal count as zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from typing import ClassVar

from typing_extensions import override
from xdsl.dialects.builtin import VectorType, bf16, f32, i32
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    BLOCK_ACTIVATION_BITS,
    BLOCK_PREFETCH_BYTES,
    BLOCK_TILE_MIN_M,
    BLOCK_TILES,
    BLOCK_TILES_L2_PART,
    TASK_MACS,
)
from lowering.kernels.emit.kernel import shared_units
from lowering.kernels.emit.vectorization import row_sums, transposed
from lowering.kernels.gemm.block_registers import GROUPS, WITH_LEAST, Block, Group, Memory
from lowering.kernels.gemm.dot_group_contraction import has_tile_registers
from lowering.kernels.gemm.dot_group_micro_kernel import GROUP_BYTES, TILE_STEP, bf16_parts, view
from lowering.kernels.gemm.epilogue import SinglePassGemm
from lowering.kernels.gemm.problem import Gemm
from lowering.kernels.structure.decoding import Decoding
from tir_dialect.dims import ceildiv, constant, minimum
from tir_dialect.ops.arithmetic import ConvertOp
from tir_dialect.ops.tile_registers import (
    COLUMNS,
    LAST_COLUMNS,
    LAST_ROWS,
    ROWS,
    TILE_SIZE,
    ConfigureTilesOp,
    DotTilesOp,
    LoadTileOp,
    ReleaseTilesOp,
    StoreTileOp,
    ZeroTileOp,
)
from tir_dialect.target import LINE_BYTES

NUMBERS = 2
"""Numbers of a dot-product group."""
PAIR = (COLUMNS, LAST_COLUMNS)
"""The registers of two tiles of columns, which are multiplied with the same rows."""


def tile_parts(gemm: Gemm, decoding: Decoding) -> int | None:
    """How many parts numbers have in tile registers; `None` where there are none, or rows are to stay `f32`."""
    target, bits = gemm.kernel.target, gemm.kernel.target.schedule.activation_bits or BLOCK_ACTIVATION_BITS
    m, block_format = gemm.m.constant_value, decoding.block_format
    size = block_format.elements // GROUPS[block_format.name][0]
    fits = size in (TILE_STEP, TILE_STEP // 2) and gemm.tiles.lanes == TILE_SIZE and bits <= 24
    if not has_tile_registers(target, bf16) or not fits or (m is not None and m < BLOCK_TILE_MIN_M):
        return None
    return bits // 8


def emit_tile_gemm(gemm: Gemm, decoding: Decoding, parts: int) -> None:
    """Emits all rows times all columns; rows have so many parts."""
    (RoundedTileGemm if parts == 1 else IntegerTileGemm)(gemm, decoding, parts).emit()


class TileGemm(SinglePassGemm, ABC):
    """What both have in common: rows are packed, columns decoded, and totals stored."""

    strips_at_once: ClassVar[int]
    """Strips that are multiplied with the same tiles."""

    def __init__(self, gemm: Gemm, decoding: Decoding, parts: int, each: int, has_sums: bool):
        """A step of the rows is multiplied with `each` steps of the columns; `has_sums` of rows are wanted."""
        super().__init__(gemm)
        self._format, self._start, self._parts = decoding.block_format, decoding.start, parts
        self._memory = Memory.of(self.code, gemm.kernel.flat[decoding.packed], self.lanes)
        self._k = gemm.k.constant_value or 0  # `can_decode_in_registers`
        self._count, self._unpack = GROUPS[self._format.name]
        self._steps, self._each, self._has_sums = self._k // TILE_STEP, each, has_sums
        self._strips = ceildiv(gemm.m, constant(TILE_SIZE))
        # Tiles that are decoded before the next ones, an even number: all units have as many, and threads as many
        # units.
        target, n = self.gemm.kernel.target, self.gemm.n.constant_value
        tile = self._steps * self._each * TILE_SIZE * TILE_SIZE * GROUP_BYTES
        most = max(2, min(BLOCK_TILES, target.l2_bytes // BLOCK_TILES_L2_PART // tile) // 2 * 2)
        if n is None:
            self._tiles = most
        else:
            pairs, cores = -(-n // (2 * TILE_SIZE)), target.cores
            units = -(-pairs // (most // 2))
            units = min(pairs, -(-units // cores) * cores)
            self._tiles = 2 * -(-pairs // units)

    def emit(self) -> None:
        """Threads take strips to pack, then columns."""
        code, gemm, tiles = self.code, self.gemm, self._tiles
        self._rows = code.alloc([self._strips, self._steps, self._parts, TILE_SIZE, TILE_SIZE], i32, "row_parts")
        self._sums = code.alloc([self._strips, self._steps, TILE_SIZE], f32, "row_sums") if self._has_sums else None
        tasks = gemm.threads(TASK_MACS)
        with (
            shared_units(code, self._strips, minimum(self._strips, tasks)) as (lower, upper),
            code.loop(upper, "strip", lower=lower) as strip,
        ):
            self._pack(strip)
        width = tiles * TILE_SIZE
        units = ceildiv(gemm.n, constant(width))
        with shared_units(code, units, minimum(units, tasks)) as (lower, upper):
            code.emit(ConfigureTilesOp(code.index(0)))
            self._columns = code.alloc([self._steps * self._each, tiles, TILE_SIZE, TILE_SIZE], i32, "columns")
            self._totals = code.alloc([self.strips_at_once, tiles, TILE_SIZE, TILE_SIZE], f32, "totals")
            self._allocate()
            with code.loop(upper, "unit", lower=lower) as unit:
                left = code.mul(unit, width)
                count = code.minimum(code.index(tiles), self._ceiling(code.sub(code.dim(gemm.n), left), TILE_SIZE))
                pairs = self._ceiling(count, 2)
                with code.loop(code.mul(pairs, 2), "tile") as tile:
                    self._decode(tile, code.add(left, code.mul(tile, TILE_SIZE)))
                with code.loop(code.dim(ceildiv(self._strips, constant(self.strips_at_once))), "strip") as strip:
                    self._multiply(code.mul(strip, self.strips_at_once), pairs)
                    self._store(code.mul(strip, self.strips_at_once * TILE_SIZE), left, count)
            code.emit(ReleaseTilesOp())

    @abstractmethod
    def _allocate(self) -> None:
        """Memory of a thread, besides that of columns and totals."""

    @abstractmethod
    def _decoded(self, unpacked: Group, step: SSAValue, column: SSAValue) -> Sequence[SSAValue]:
        """The numbers of a group that are multiplied; what belongs to a step of a column is kept."""

    @abstractmethod
    def _multiply(self, strip: SSAValue, pairs: SSAValue) -> None:
        """Makes the totals of the strips from one on, and so many pairs of tiles."""

    def _ceiling(self, value: SSAValue, divisor: int) -> SSAValue:
        return self.code.divide(self.code.add(value, divisor - 1), divisor)

    # Rows

    def _pack(self, strip: SSAValue) -> None:
        """Splits sixteen rows of A, and adds up the numbers of each step as they are rounded."""
        code, contraction, lanes = self.code, self.gemm.contraction, self.lanes
        numbers = view(code, self._rows, [self._strips, self._steps, self._parts, TILE_SIZE, TILE_STEP], bf16)
        partial = code.alloc([TILE_SIZE, lanes], f32, "partial_sums")
        top = code.mul(strip, TILE_SIZE)
        count = code.minimum(code.sub(code.dim(self.gemm.m), top), TILE_SIZE)
        with code.loop(code.index(self._steps), "step") as step:
            with code.loop(count, "i") as i:
                totals: list[SSAValue] = []
                for offset in range(0, TILE_STEP, lanes):
                    coords = {
                        contraction.row: code.add(top, i),
                        contraction.reduced: code.add(code.mul(step, TILE_STEP), offset),
                    }
                    values = self.gemm.vector(contraction.rows, coords, contraction.reduced, None)
                    for part, each in enumerate(bf16_parts(code, values, self._parts)):
                        code.store(each, numbers, [strip, step, code.index(part), i, code.index(offset)])
                        totals.append(code.value(ConvertOp("extf", each, values.type)))
                if self._sums is not None:
                    code.store(reduce(code.add_floats, totals), partial, [i, code.index(0)])
            if self._sums is not None:
                rows = [code.load(partial, [code.index(i), code.index(0)], lanes) for i in range(TILE_SIZE)]
                code.store(row_sums(code, rows), self._sums, [strip, step, code.index(0)])

    # Columns

    def _decode(self, tile: SSAValue, left: SSAValue) -> None:
        """Decodes sixteen columns, a block of each at a time. Columns that are missing are the last one once more."""
        code, elements = self.code, self._format.elements
        blocks = self._k // elements
        decoded = code.alloc([TILE_SIZE, elements // NUMBERS], i32, "decoded")
        last = code.sub(code.dim(self.gemm.n), 1)
        with code.loop(code.index(blocks), "block") as number:
            with code.loop(code.index(TILE_SIZE), "column") as column:
                row = code.minimum(code.add(left, column), last)
                at = code.mul(code.add(code.mul(row, blocks), number), self._format.bytes)
                where = code.mul(number, self._count), code.add(code.mul(tile, TILE_SIZE), column)
                self._decode_block(code.add(code.dim(self._start), at), decoded, column, where)
            with code.loop(code.index(elements // TILE_STEP), "chunk") as chunk:
                step = code.mul(code.add(code.mul(number, elements // TILE_STEP), chunk), self._each)
                self._transpose(decoded, chunk, step, tile)

    def _decode_block(
        self, at: SSAValue, decoded: SSAValue, column: SSAValue, where: tuple[SSAValue, SSAValue]
    ) -> None:
        """The numbers of the block at a byte of the weights; `where` are its first group and its column."""
        code, narrow = self.code, VectorType(bf16, [self.lanes])
        numbers = view(code, decoded, [TILE_SIZE, self._format.elements], bf16)
        for line in range(0, self._format.bytes, LINE_BYTES):
            code.prefetch(self._memory.bytes, [code.add(at, BLOCK_PREFETCH_BYTES + line)], 2)
        block = Block(self._memory, at)
        for group in range(self._count):
            unpacked = self._unpack(block, group)
            step = code.add(where[0], unpacked.start * self._count // self._format.elements)
            for i, value in enumerate(self._decoded(unpacked, step, where[1])):
                short = code.value(ConvertOp("truncf", value, narrow))
                code.store(short, numbers, [column, code.index(unpacked.start + i * self.lanes)])

    def _transpose(self, decoded: SSAValue, chunk: SSAValue, step: SSAValue, tile: SSAValue) -> None:
        """Copies the groups of a step to the lanes of their columns."""
        code, first = self.code, self.code.mul(chunk, TILE_SIZE)
        rows = [code.load(decoded, [code.index(j), first], TILE_SIZE) for j in range(TILE_SIZE)]
        zeros = code.zeros(i32, TILE_SIZE)
        for i, each in enumerate(transposed(code, rows)):
            for group in range(self._each):
                value = each if i * self._each // TILE_SIZE == group else zeros
                code.store(value, self._columns, [code.add(step, group), tile, code.index(i), code.index(0)])

    # Totals

    def _store(self, top: SSAValue, left: SSAValue, count: SSAValue) -> None:
        """Gives the totals of the rows and columns that there are to the epilogue."""
        code, gemm, contraction, most = self.code, self.gemm, self.gemm.contraction, self.strips_at_once * TILE_SIZE
        rows, n = code.minimum(code.sub(code.dim(gemm.m), top), most), code.dim(gemm.n)
        with code.loop(rows, "i") as i, code.loop(count, "tile") as tile:
            column = code.add(left, code.mul(tile, TILE_SIZE))
            within = [code.divide(i, TILE_SIZE), tile, code.remainder(i, TILE_SIZE), code.index(0)]
            value = code.load(self._totals, within, TILE_SIZE)
            at = {contraction.row: code.add(top, i), contraction.column: column}
            if (gemm.n % TILE_SIZE).constant_value == 0:
                self.epilogue.store_lanes(value, at, None)
            else:
                self.epilogue.store(value, at, code.sub(n, column))


class IntegerTileGemm(TileGemm):
    """Integers of a group times parts of rows, scaled.

    Of groups of 16 numbers, two share a step of the rows; each has zeros instead of the other.
    """

    strips_at_once = 1

    def __init__(self, gemm: Gemm, decoding: Decoding, parts: int):
        block_format = decoding.block_format
        each = TILE_STEP * GROUPS[block_format.name][0] // block_format.elements
        super().__init__(gemm, decoding, parts, each, has_sums=block_format.name in WITH_LEAST)

    @override
    def _allocate(self) -> None:
        code, shape = self.code, [self._steps * self._each, self._tiles * TILE_SIZE]
        self._scales, self._leasts = (code.alloc(shape, f32, name) for name in ("scales", "leasts"))
        self._products = code.alloc([2, 2, TILE_SIZE, TILE_SIZE], f32, "products")

    @override
    def _decoded(self, unpacked: Group, step: SSAValue, column: SSAValue) -> Sequence[SSAValue]:
        code = self.code
        one = code.leading(code.index(1), self.lanes)
        code.store(unpacked.scale, self._scales, [step, column], one)
        assert (unpacked.least is not None) == self._has_sums
        if unpacked.least is not None:
            code.store(unpacked.least, self._leasts, [step, column], one)
        return unpacked.integers

    @override
    def _multiply(self, strip: SSAValue, pairs: SSAValue) -> None:
        # Each pair of tiles is scaled after the next one is begun.
        code, zero = self.code, self.code.index(0)
        with code.loop(code.mul(pairs, 2), "tile") as tile:
            for i in range(TILE_SIZE):
                code.store(code.zeros(f32, TILE_SIZE), self._totals, [zero, tile, code.index(i), zero])
        with code.loop(code.index(self._steps), "step") as rows_step:
            for group in range(self._each):
                step = code.add(code.mul(rows_step, self._each), group)
                self._dot(strip, rows_step, step, zero)
                with code.loop(pairs, "pair", lower=code.index(1)) as pair:
                    self._dot(strip, rows_step, step, pair)
                    self._add(strip, rows_step, step, code.sub(pair, 1))
                self._add(strip, rows_step, step, code.sub(pairs, 1))

    def _dot(self, strip: SSAValue, rows_step: SSAValue, step: SSAValue, pair: SSAValue) -> None:
        """The products of a step of a strip and two tiles, the smallest parts first."""
        code, zero = self.code, self.code.index(0)
        for v, register in enumerate(PAIR):
            tile = code.add(code.mul(pair, 2), v)
            code.emit(LoadTileOp(register, self._columns, [step, tile, zero, zero]))
            code.emit(ZeroTileOp(v))
        for part in reversed(range(self._parts)):
            rows = (ROWS, LAST_ROWS)[part % 2]
            code.emit(LoadTileOp(rows, self._rows, [strip, rows_step, code.index(part), zero, zero]))
            for v, register in enumerate(PAIR):
                code.emit(DotTilesOp(v, (bf16, bf16), rows, register))
        for v in range(len(PAIR)):
            code.emit(StoreTileOp(v, self._products, [code.remainder(pair, 2), code.index(v), zero, zero]))

    def _add(self, strip: SSAValue, rows_step: SSAValue, step: SSAValue, pair: SSAValue) -> None:
        """Scales the products of two tiles and adds them to their totals."""
        code, zero = self.code, self.code.index(0)
        for v in range(len(PAIR)):
            tile = code.add(code.mul(pair, 2), v)
            column = code.mul(tile, TILE_SIZE)
            scale = code.load(self._scales, [step, column], TILE_SIZE)
            least = None if self._sums is None else code.load(self._leasts, [step, column], TILE_SIZE)
            for i in range(TILE_SIZE):
                at = [zero, tile, code.index(i), zero]
                total = code.load(self._totals, at, TILE_SIZE)
                if least is not None and self._sums is not None:
                    numbers = code.splat(code.load(self._sums, [strip, rows_step, code.index(i)]), TILE_SIZE)
                    total = code.fma(least, numbers, total)
                found = code.load(
                    self._products, [code.remainder(pair, 2), code.index(v), code.index(i), zero], TILE_SIZE
                )
                code.store(code.fma(scale, found, total), self._totals, at)


class RoundedTileGemm(TileGemm):
    """Rounded weights times rounded rows: registers have the sums of two strips and two tiles over all steps."""

    strips_at_once = 2

    def __init__(self, gemm: Gemm, decoding: Decoding, parts: int):
        super().__init__(gemm, decoding, parts, 1, has_sums=False)

    @override
    def _allocate(self) -> None:
        return

    @override
    def _decoded(self, unpacked: Group, step: SSAValue, column: SSAValue) -> Sequence[SSAValue]:
        return unpacked.numbers(self.code)

    @override
    def _multiply(self, strip: SSAValue, pairs: SSAValue) -> None:
        code = self.code
        with code.loop(pairs, "pair") as pair:
            is_last = code.compare("eq", code.sub(code.dim(self._strips), strip), 1)
            with code.when(is_last) as branch:
                self._sum(strip, pair, (ROWS,))
            with code.otherwise(branch):
                self._sum(strip, pair, (ROWS, LAST_ROWS))

    def _sum(self, strip: SSAValue, pair: SSAValue, rows: Sequence[int]) -> None:
        """The totals of one or two strips and two tiles."""
        code, zero = self.code, self.code.index(0)
        tiles = [code.add(code.mul(pair, 2), v) for v in range(len(PAIR))]
        accumulators = {(i, v): i * len(PAIR) + v for i in range(len(rows)) for v in range(len(PAIR))}
        for number in accumulators.values():
            code.emit(ZeroTileOp(number))
        with code.loop(code.index(self._steps), "step") as step:
            for register, tile in zip(PAIR, tiles, strict=True):
                code.emit(LoadTileOp(register, self._columns, [step, tile, zero, zero]))
            for i, register in enumerate(rows):
                code.emit(LoadTileOp(register, self._rows, [code.add(strip, i), step, zero, zero, zero]))
            for (i, v), number in accumulators.items():
                code.emit(DotTilesOp(number, (bf16, bf16), rows[i], PAIR[v]))
        for (i, v), number in accumulators.items():
            code.emit(StoreTileOp(number, self._totals, [code.index(i), tiles[v], zero, zero]))

"""GEMM with block-quantised weights in tile registers: numbers are sums of `bf16`, their parts.

A part is the number less the parts before it, rounded to `bf16`, so that two have 16 bits of a number and three have
24. The product of two numbers is that of their greater parts: of those that follow, each pair is less than a rounding
error. The parts of all rows of A are packed before; those of some columns, which are rows of the weights, are decoded
into panels that stay in L2 while all rows use them. Both are dot-product groups of two numbers.

A row with an infinity becomes NaN, since the second part of an infinity is NaN. Parts that are subnormal count as zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType, bf16, f32, i32
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import shared_units
from lowering.kernels.cpu.emit.shuffles import transposed
from lowering.kernels.cpu.gemm.block_registers import GROUPS, Block, Memory
from lowering.kernels.cpu.gemm.cost_model import (
    BLOCK_ACTIVATION_BITS,
    BLOCK_PREFETCH_BYTES,
    BLOCK_TILE_MIN_M,
    BLOCK_TILE_PANELS,
    BLOCK_TILE_PANELS_L2_PART,
    TASK_MACS,
    TILE_REGISTERS,
    tiling,
)
from lowering.kernels.cpu.gemm.dot_groups.contraction import has_tile_registers
from lowering.kernels.cpu.gemm.dot_groups.micro_kernel import GROUP_BYTES, view
from lowering.kernels.cpu.gemm.epilogue import SinglePassGemm
from lowering.kernels.cpu.gemm.problem import Gemm
from lowering.kernels.cpu.gemm.register_tile import store_rows
from lowering.kernels.cpu.structure.decoding import Decoding
from tir_dialect.dims import Dim, ceildiv, constant, minimum
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

GROUP = 2
"""Numbers of a group."""
STEP = GROUP * TILE_SIZE
"""Numbers along K that are multiplied at once."""
PAIRS = {1: [(0, 0)], 2: [(0, 1), (0, 0), (1, 0)], 3: [(0, 2), (0, 1), (1, 1), (1, 0), (0, 0), (2, 0)]}
"""By the number of parts, those whose products are added: each pair shares a part with the one before. All
accumulators take a pair before the next one, as an instruction waits for the last one on the same accumulators.
"""


def tile_parts(gemm: Gemm, decoding: Decoding) -> int | None:
    """How many parts numbers have in tile registers; `None` where there are none, or rows are to stay `f32`."""
    target, bits = gemm.kernel.target, gemm.kernel.target.schedule.activation_bits or BLOCK_ACTIVATION_BITS
    m, fits = gemm.m.constant_value, decoding.block_format.elements % STEP == 0 and bits <= 24
    if not has_tile_registers(target, bf16) or not fits or (m is not None and m < BLOCK_TILE_MIN_M):
        return None
    return bits // 8


class BlockTileGemm(SinglePassGemm):
    """Emits all rows times all columns, in tiles of 32 x 32."""

    def __init__(self, gemm: Gemm, decoding: Decoding, parts: int):
        super().__init__(replace(gemm, tiles=tiling(gemm.kernel.target, GROUP_BYTES, tile=TILE_REGISTERS)))
        self._format, self._start, self._parts = decoding.block_format, decoding.start, parts
        self._memory = Memory.of(self.code, gemm.kernel.flat[decoding.packed], self.lanes)
        self._k = gemm.k.constant_value or 0  # `can_decode_in_registers`
        self._steps, self._tiles = self._k // STEP, self.gemm.tiles
        self._strips = ceildiv(gemm.m, constant(self._tiles.mr))

    @property
    def _panels(self) -> int:
        """Panels that are decoded before the next ones."""
        size = self._parts * self._steps * TILE_SIZE * self._tiles.nr * GROUP_BYTES
        room = self.gemm.kernel.target.l2_bytes // BLOCK_TILE_PANELS_L2_PART
        return max(1, min(BLOCK_TILE_PANELS, room // size))

    def emit(self) -> None:
        """Threads take rows to pack, then columns."""
        code, gemm, tiles = self.code, self.gemm, self._tiles
        self._rows = self._registers(self._strips * (tiles.mr // TILE_SIZE), "row_parts")
        tasks = gemm.threads(TASK_MACS)
        with (
            shared_units(code, gemm.m, minimum(gemm.m, tasks)) as (lower, upper),
            code.loop(upper, "i", lower=lower) as i,
        ):
            self._pack(i)
        width = tiles.nr * self._panels
        units = ceildiv(gemm.n, constant(width))
        with shared_units(code, units, minimum(units, tasks)) as (lower, upper):
            code.emit(ConfigureTilesOp(code.index(0)))
            self._columns = self._registers(constant(self._panels * tiles.vectors), "column_parts")
            tile = code.alloc([tiles.mr, tiles.nr], f32, "tile")
            with code.loop(upper, "unit", lower=lower) as unit:
                left = code.mul(unit, width)
                count = code.minimum(code.index(self._panels), self._panels_after(left))
                with code.loop(count, "panel") as panel:
                    self._decode(panel, code.add(left, code.mul(panel, tiles.nr)))
                with code.loop(code.dim(self._strips), "strip") as strip, code.loop(count, "panel") as panel:
                    self._tile(strip, panel, code.add(left, code.mul(panel, tiles.nr)), tile)
            code.emit(ReleaseTilesOp())

    def _registers(self, count: Dim, name: str) -> SSAValue:
        """Memory for the parts of so many rows of registers, in the order in which they are loaded."""
        return self.code.alloc([count, self._steps, self._parts, TILE_SIZE, TILE_SIZE], i32, name)

    def _panels_after(self, left: SSAValue) -> SSAValue:
        code, nr = self.code, self._tiles.nr
        return code.divide(code.add(code.sub(code.dim(self.gemm.n), left), nr - 1), nr)

    def _split(self, value: SSAValue) -> list[SSAValue]:
        """The parts of a vector."""
        code, narrow, found = self.code, VectorType(bf16, [self.lanes]), list[SSAValue]()
        for number in range(self._parts):
            found.append(code.value(ConvertOp("truncf", value, narrow)))
            if number + 1 < self._parts:
                value = code.value(arith.SubfOp(value, code.value(ConvertOp("extf", found[-1], value.type))))
        return found

    def _pack(self, row: SSAValue) -> None:
        """Splits a row of A."""
        code, contraction, lanes = self.code, self.gemm.contraction, self.lanes
        shape = [self._strips * (self._tiles.mr // TILE_SIZE), self._steps, self._parts, TILE_SIZE, STEP]
        numbers = view(code, self._rows, shape, bf16)
        register, within = code.divide(row, TILE_SIZE), code.remainder(row, TILE_SIZE)
        with code.loop(code.index(self._steps), "step") as step:
            for offset in range(0, STEP, lanes):
                at = code.add(code.mul(step, STEP), offset)
                coords = {contraction.row: row, contraction.reduced: at}
                values = self.gemm.vector(contraction.rows, coords, contraction.reduced, None)
                for part, each in enumerate(self._split(values)):
                    code.store(each, numbers, [register, step, code.index(part), within, code.index(offset)])

    def _decode(self, panel: SSAValue, left: SSAValue) -> None:
        """Decodes the columns of a panel, from `left` on: sixteen blocks of as many columns at a time.

        Columns that are missing are the last one once more.
        """
        code, block_format, width = self.code, self._format, TILE_SIZE
        blocks, groups = self._k // block_format.elements, block_format.elements // GROUP
        decoded = code.alloc([self._parts, width, groups], i32, "decoded")
        numbers = view(code, decoded, [self._parts, width, block_format.elements], bf16)
        last = code.sub(code.dim(self.gemm.n), 1)
        with (
            code.loop(code.index(self._tiles.nr // width), "side") as side,
            code.loop(code.index(blocks), "block") as number,
        ):
            first = code.mul(side, width)
            with code.loop(code.index(width), "column") as column:
                row = code.minimum(code.add(code.add(left, first), column), last)
                at = code.mul(code.add(code.mul(row, blocks), number), block_format.bytes)
                self._decode_block(code.add(code.dim(self._start), at), numbers, column)
            register = code.add(code.mul(panel, self._tiles.vectors), side)
            with code.loop(code.index(groups // width), "chunk") as chunk:
                step = code.add(code.mul(number, groups // width), chunk)
                for part in (code.index(number) for number in range(self._parts)):
                    rows = [
                        code.load(decoded, [part, code.index(j), code.mul(chunk, width)], width) for j in range(width)
                    ]
                    for i, each in enumerate(transposed(code, rows)):
                        code.store(each, self._columns, [register, step, part, code.index(i), code.index(0)])

    def _decode_block(self, at: SSAValue, numbers: SSAValue, column: SSAValue) -> None:
        """The parts of a block, which begins at a byte of the weights."""
        code, (count, unpack) = self.code, GROUPS[self._format.name]
        for line in range(0, self._format.bytes, LINE_BYTES):
            code.prefetch(self._memory.bytes, [code.add(at, BLOCK_PREFETCH_BYTES + line)], 2)
        block = Block(self._memory, at)
        for group in range(count):
            unpacked = unpack(block, group)
            for i, value in enumerate(unpacked.numbers(code)):
                for part, each in enumerate(self._split(value)):
                    code.store(each, numbers, [code.index(part), column, code.index(unpacked.start + i * self.lanes)])

    def _tile(self, strip: SSAValue, panel: SSAValue, left: SSAValue, tile: SSAValue) -> None:
        """A tile of a strip of rows and a panel: two by two registers of accumulators, or one by two."""
        code, (mr, half) = self.code, self._tiles.mr_sizes
        top = code.mul(strip, mr)
        count = code.minimum(code.sub(code.dim(self.gemm.m), top), mr)
        with code.when(code.compare("sgt", count, half)) as branch:
            self._multiply(range(mr // TILE_SIZE), strip, panel, tile)
        with code.otherwise(branch):
            self._multiply(range(half // TILE_SIZE), strip, panel, tile)
        store_rows(self.gemm, self.epilogue, tile, {}, (top, count), left)

    def _multiply(self, tops: Sequence[int], strip: SSAValue, panel: SSAValue, tile: SSAValue) -> None:
        code, sides = self.code, range(self._tiles.vectors)
        numbers = {(i, v): i * len(sides) + v for i in tops for v in sides}
        rows = [code.add(code.mul(strip, self._tiles.mr // TILE_SIZE), i) for i in tops]
        columns = [code.add(code.mul(panel, len(sides)), v) for v in sides]
        for number in numbers.values():
            code.emit(ZeroTileOp(number))
        with code.loop(code.index(self._steps), "step") as step:
            last: tuple[int | None, int | None] = (None, None)
            for pair in PAIRS[self._parts]:
                if pair[0] != last[0]:
                    self._load(self._rows, (ROWS, LAST_ROWS), rows, step, pair[0])
                if pair[1] != last[1]:
                    self._load(self._columns, (COLUMNS, LAST_COLUMNS), columns, step, pair[1])
                last = pair
                for (i, v), number in numbers.items():
                    code.emit(DotTilesOp(number, (bf16, bf16), (ROWS, LAST_ROWS)[i], (COLUMNS, LAST_COLUMNS)[v]))
        for (i, v), number in numbers.items():
            code.emit(StoreTileOp(number, tile, [code.index(i * TILE_SIZE), code.index(v * TILE_SIZE)]))

    def _load(
        self, memory: SSAValue, tiles: Sequence[int], registers: Sequence[SSAValue], step: SSAValue, part: int
    ) -> None:
        """Loads a part of a step of K of one or two registers."""
        zero = self.code.index(0)
        for tile, register in zip(tiles, registers, strict=False):
            self.code.emit(LoadTileOp(tile, memory, [register, step, self.code.index(part), zero, zero]))

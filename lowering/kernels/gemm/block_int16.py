"""GEMM with block-quantised weights by sums of two products of 16 bits, for machines that multiply pairs of these.

`BlockInt16Gemm`: small M with weights of 8 bits (q8_0), lanes along K. Rows are integers of 16 bits with a step for
each block. The bytes of a block are extended to 16 bits in the order in which they are stored and multiplied with the
row's integers; nothing is transposed, and a row of the matrix is read from its first byte to its last one, as
prefetchers like it. The sums of a block are exact, but for the rows' rounding. Integers of fewer bits take longer to
unpack so than as words (`block_weights`).

`BlockInt16PanelGemm`: many rows, packed panels and a register tile. Machines multiply twice as many numbers of 16 bits
at a time as of `f32`. Rows are integers of 16 bits with a step for each 32 numbers (`quantized_rows`). A panel of
columns, which are rows of the weights, is decoded to integers of 16 bits, a pair of each column side by side, while the
columns' scales go to memory of their own. It stays in the first-level cache, or the second-level one, while all rows
pass by. The register tile has the sums of one group of numbers that have one scale. They are exact, but for the rows'
rounding; then they are scaled and added to totals in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import VectorType, f16, f32, i16, i32
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    BLOCK_DOT_MAX_M,
    BLOCK_INT16_BITS,
    BLOCK_INT16_PANEL_ROWS,
    BLOCK_INT16_PANEL_VECTORS,
    BLOCK_INT16_PANEL_WIDE_ROWS,
    BLOCK_INT16_SIDE,
    BLOCK_PREFETCH_BYTES,
    FLOAT_BITS,
    SUM_BLOCK_STEPS,
    TASK_MACS,
)
from lowering.kernels.emit.kernel import shared_units
from lowering.kernels.emit.vectorization import bits_as, row_sums, shuffle
from lowering.kernels.gemm.block_registers import Memory
from lowering.kernels.gemm.block_words import LANE_FORMATS, Blocks
from lowering.kernels.gemm.dot_group_contraction import has_int16_products
from lowering.kernels.gemm.dot_group_micro_kernel import dot, splat, view
from lowering.kernels.gemm.epilogue import SinglePassGemm
from lowering.kernels.gemm.problem import Gemm
from lowering.kernels.gemm.quantized_rows import (
    EVEN_BYTES,
    INT16_PLANES,
    MOST,
    multiplies_int16,
    numbers_of_block,
    quantized,
)
from lowering.kernels.gemm.register_tile import store_tile
from lowering.kernels.structure.decoding import Decoding
from tir_dialect.block_formats import FORMATS
from tir_dialect.dims import ceildiv, constant, floordiv, minimum
from tir_dialect.ops.arithmetic import ConvertOp
from tir_dialect.target import LINE_BYTES

FORMAT = FORMATS["q8_0"]
"""Blocks of a scale of `f16` and 32 signed bytes."""
SCALE_BYTES = 2
EXTENDED = 16
"""Bytes that are extended to one vector of 16 bits."""
SUMS = EXTENDED // 2
"""Lanes of sums of two products."""


def suits_int16(gemm: Gemm, decoding: Decoding) -> bool:
    """Whether columns are multiplied so, up to the last that fills a vector."""
    blocks = (gemm.k.constant_value or 0) // FORMAT.elements
    return (
        multiplies_int16(gemm.kernel.target)
        and decoding.block_format is FORMAT
        and gemm.tiles.lanes == SUMS
        and 0 < blocks <= SUM_BLOCK_STEPS * _side(blocks)
    )


def _side(blocks: int) -> int:
    """Blocks of a row that have accumulators of their own: a divisor of their number."""
    return next(side for side in range(BLOCK_INT16_SIDE, 0, -1) if blocks % side == 0)


class BlockInt16Gemm(SinglePassGemm):
    """Emits the code for the columns up to the last that fills a vector; others are left out."""

    def __init__(self, gemm: Gemm, decoding: Decoding):
        super().__init__(gemm)
        code, k = self.code, gemm.k.constant_value or 0
        self._start, self._blocks = decoding.start, k // FORMAT.elements
        self._memory = Memory.of(code, gemm.kernel.flat[decoding.packed], EXTENDED)
        rows = min(gemm.m.constant_value or BLOCK_DOT_MAX_M, BLOCK_DOT_MAX_M)
        self._integers = code.alloc([rows * k], i16, "row_integers")
        self._pairs = view(code, self._integers, [rows * k // 2], i32)
        # The steps of as many blocks as there are lanes are loaded at once, also at the end.
        self._steps = code.alloc([rows * self._blocks + SUMS], f32, "row_steps")

    def emit(self) -> None:
        """All rows times these columns; threads take columns."""
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        m = code.dim(gemm.m, "m")
        with code.loop(m, "row") as row, code.loop(code.index(self._blocks), "block") as block:
            self._quantize(row, block)
        units = floordiv(gemm.n, constant(self.lanes))
        tasks = minimum(units, gemm.threads(TASK_MACS))
        with (
            shared_units(code, units, tasks) as (lower, upper),
            code.loop(upper, "unit", lower=lower) as unit,
            code.loop(m, "row") as row,
        ):
            start = code.mul(unit, self.lanes)
            first = code.add(code.dim(self._start), code.mul(start, self._blocks * FORMAT.bytes))
            sums = code.alloc([self.lanes, SUMS], f32, "sums", scope="local")
            with code.loop(code.index(self.lanes), "column") as column:
                total = self._sums_of_column(row, code.add(first, code.mul(column, self._blocks * FORMAT.bytes)))
                code.store(total, sums, [column, code.index(0)])
            totals = row_sums(code, [code.load(sums, [code.index(i), code.index(0)], SUMS) for i in range(self.lanes)])
            self.epilogue.store(totals, {contraction.row: row, contraction.column: start}, code.index(self.lanes))

    def _quantize(self, row: SSAValue, block: SSAValue) -> None:
        """Stores the integers of a block of a row, and its step."""
        code, lanes = self.code, self.lanes
        numbers = numbers_of_block(self.gemm, row, code.mul(block, FORMAT.elements), FORMAT.elements)
        step, integers = quantized(code, numbers, MOST[INT16_PLANES])
        number = code.add(code.mul(row, self._blocks), block)
        code.store(step, self._steps, [number])
        for i, each in enumerate(integers):
            half = code.value(ConvertOp("trunci", each, VectorType(i16, [lanes])))
            code.store(half, self._integers, [code.add(code.mul(number, FORMAT.elements), i * lanes)])

    def _sums_of_column(self, row: SSAValue, first: SSAValue) -> SSAValue:
        """The dot product of a row with the blocks from a byte on, a part in each lane."""
        code, side = self.code, _side(self._blocks)
        memory = code.alloc([side, SUMS], f32, "accumulators", scope="local")
        indices = [[code.index(i), code.index(0)] for i in range(side)]
        for index in indices:
            code.store(code.zeros(f32, SUMS), memory, index)
        with code.loop(code.index(self._blocks // side), "blocks") as group:
            at = code.add(first, code.mul(group, side * FORMAT.bytes))
            for line in range(0, side * FORMAT.bytes, LINE_BYTES):
                code.prefetch(self._memory.bytes, [code.add(at, BLOCK_PREFETCH_BYTES + line)], 2)
            number = code.add(code.mul(row, self._blocks), code.mul(group, side))
            starts = [code.add(at, i * FORMAT.bytes) for i in range(side)]
            scales = self._scales(starts, number)
            for i, (start, index) in enumerate(zip(starts, indices, strict=True)):
                sums = self._sums_of_block(start, code.add(number, i))
                scale = shuffle(code, (scales, scales), [i] * SUMS)
                code.store(code.fma(sums, scale, code.load(memory, index, SUMS)), memory, index)
        total, *others = (code.load(memory, index, SUMS) for index in indices)
        for other in others:
            total = code.add_floats(total, other)
        return total

    def _scales(self, starts: Sequence[SSAValue], number: SSAValue) -> SSAValue:
        """The scales of some blocks side by side, times the row's steps of blocks from that number on.

        They are converted at once: of one number alone, the conversion takes as long as the sums of a block.
        """
        code = self.code
        loaded = [code.load(self._memory.words, [code.divide(start, SCALE_BYTES)]) for start in starts]
        merged, *others = (code.splat(each, SUMS) for each in loaded)
        for i, other in enumerate(others, 1):
            merged = shuffle(code, (merged, other), [lane + SUMS * (lane >= i) for lane in range(SUMS)])
        scales = code.value(ConvertOp("extf", bits_as(code, merged, f16, SUMS), VectorType(f32, [SUMS])))
        return code.value(arith.MulfOp(scales, code.load(self._steps, [number], SUMS)))

    def _sums_of_block(self, start: SSAValue, number: SSAValue) -> SSAValue:
        """The products of the integers of a block and those of that block of the rows, added up in `f32` lanes."""
        code, first = self.code, self.code.mul(number, FORMAT.elements // 2)
        sums = splat(code, 0, i32, SUMS)
        for i in range(FORMAT.elements // EXTENDED):
            at = code.add(start, SCALE_BYTES + i * EXTENDED)
            loaded = code.load(self._memory.bytes, [at], EXTENDED)
            integers = code.value(ConvertOp("extsi", loaded, VectorType(i16, [EXTENDED])))
            pairs = code.load(self._pairs, [code.add(first, i * SUMS)], SUMS)
            sums = dot(code, (i16, i16), bits_as(code, integers, i32, SUMS), pairs, sums)
        return code.value(ConvertOp("sitofp", sums, VectorType(f32, [SUMS])))


STEP_ELEMENTS = 32
"""Numbers of a row that have one step."""
WORD_ORDER = (0, 2, 1, 3)
"""The numbers of a word in the order in which its bytes become pairs: even ones, then odd ones."""


def suits_int16_panels(gemm: Gemm, decoding: Decoding) -> bool:
    """Whether rows may be rounded to 16 bits, and the machine multiplies pairs of these."""
    target, usual = gemm.kernel.target, BLOCK_INT16_BITS if multiplies_int16(gemm.kernel.target) else FLOAT_BITS
    return (
        has_int16_products(target)
        and (target.schedule.activation_bits or usual) <= BLOCK_INT16_BITS
        and decoding.block_format.name in LANE_FORMATS
        and gemm.tiles.lanes in (8, 16)
        and (gemm.k.constant_value or 0) % STEP_ELEMENTS == 0
    )


def _mr_sizes(gemm: Gemm) -> tuple[int, ...]:
    """Rows of the tiles; if M is known, of those that there are: the last one has the rows that are left, or more."""
    wide, m = gemm.kernel.target.vector_registers > 16, gemm.m.constant_value
    sizes = BLOCK_INT16_PANEL_WIDE_ROWS if wide else BLOCK_INT16_PANEL_ROWS
    if not m:
        return sizes
    rest = m % sizes[0]
    last = next(size for size in reversed(sizes) if size >= rest)
    return (last,) if m == rest else (sizes[0], last) if rest else sizes[:1]


class BlockInt16PanelGemm(SinglePassGemm):
    """Emits all rows times all columns."""

    def __init__(self, gemm: Gemm, decoding: Decoding):
        tiles = replace(gemm.tiles, vectors=BLOCK_INT16_PANEL_VECTORS, mr_sizes=_mr_sizes(gemm))
        super().__init__(replace(gemm, tiles=tiles))
        self._tiles, self._format, self._start = tiles, decoding.block_format, decoding.start
        self._unpack = LANE_FORMATS[self._format.name]
        self._packed = gemm.kernel.flat[decoding.packed]
        self._k = gemm.k.constant_value or 0  # `suits_int16_panels`
        self._blocks = self._k // self._format.elements
        self._groups = self._blocks * self._unpack.groups
        self._pairs = self._format.elements // self._unpack.groups // 2

    def emit(self) -> None:
        """Threads take rows to round, then panels of columns."""
        code, gemm, tiles = self.code, self.gemm, self._tiles
        # The last tile reads rows that there are not.
        strips = ceildiv(gemm.m, constant(tiles.mr))
        rows = strips * tiles.mr
        self._integers = code.alloc([rows * self._k], i16, "row_integers")
        self._row_pairs = view(code, self._integers, [rows * (self._k // 2)], i32)
        self._steps = code.alloc([rows, self._k // STEP_ELEMENTS], f32, "row_steps")
        self._sums = code.alloc([rows, self._groups], f32, "row_sums") if self._unpack.has_least else None
        tasks = gemm.threads(TASK_MACS)
        with (
            shared_units(code, gemm.m, minimum(gemm.m, tasks)) as (lower, upper),
            code.loop(upper, "row", lower=lower) as row,
            code.loop(code.index(self._k // STEP_ELEMENTS), "chunk") as chunk,
        ):
            self._quantize(row, chunk)
        units = ceildiv(gemm.n, constant(tiles.nr))
        with shared_units(code, units, minimum(units, tasks)) as (lower, upper):
            self._panel = code.alloc([self._k // 2, tiles.nr], i32, "panel")
            self._scales = code.alloc([self._groups, tiles.nr], f32, "scales")
            self._leasts = None if self._sums is None else code.alloc([self._groups, tiles.nr], f32, "leasts")
            totals = code.alloc([2, tiles.mr, tiles.nr], f32, "totals")
            with code.loop(upper, "unit", lower=lower) as unit:
                # LLVM keeps totals at addresses that it knows in registers, of which none is left.
                self._totals = code.part(totals, code.remainder(unit, 2), [tiles.mr, tiles.nr])
                left = code.mul(unit, tiles.nr)
                with code.loop(code.index(tiles.vectors), "v") as v:
                    self._decode(left, code.mul(v, self.lanes))
                with code.loop(code.dim(strips), "strip") as strip:
                    top = code.mul(strip, tiles.mr)
                    self._multiply_some(top, code.sub(code.dim(gemm.m), top), tiles.mr_sizes)
                    store_tile(gemm, self.epilogue, self._totals, {}, (top, left))

    # Rows

    def _quantize(self, row: SSAValue, chunk: SSAValue) -> None:
        """Stores the integers of a chunk of a row in the order of the panels, its step, and sums of its groups."""
        code, lanes, first = self.code, self.lanes, self.code.mul(chunk, STEP_ELEMENTS)
        step, integers = quantized(code, numbers_of_block(self.gemm, row, first, STEP_ELEMENTS), MOST[INT16_PLANES])
        code.store(step, self._steps, [row, chunk])
        start = code.add(code.mul(row, self._k), first)
        order = [word + number for word in range(0, lanes, len(WORD_ORDER)) for number in WORD_ORDER]
        for i, each in enumerate(integers):
            halves = code.value(ConvertOp("trunci", each, VectorType(i16, [lanes])))
            code.store(shuffle(code, (halves, halves), order), self._integers, [code.add(start, i * lanes)])
        if self._sums is None:
            return
        count, each_group = STEP_ELEMENTS // (2 * self._pairs), 2 * self._pairs // lanes
        for group in range(count):
            total, *others = integers[group * each_group : (group + 1) * each_group]
            for other in others:
                total = code.value(arith.AddiOp(total, other))
            distance = lanes // 2
            while distance:
                moved = shuffle(code, (total, total), [lane ^ distance for lane in range(lanes)])
                total, distance = code.value(arith.AddiOp(total, moved)), distance // 2
            scaled = code.value(arith.MulfOp(self._as_float(total), code.splat(step, lanes)))
            at = code.add(code.mul(chunk, count), group)
            code.store(scaled, self._sums, [row, at], code.leading(code.index(1), lanes))

    # Columns

    def _decode(self, left: SSAValue, offset: SSAValue) -> None:
        """Decodes a vector of a panel's columns, block by block. Columns that are missing are the last once more."""
        code, size, groups = self.code, self._format.bytes, self._unpack.groups
        first, last = code.add(left, offset), code.sub(code.dim(self.gemm.n), 1)
        columns = [code.minimum(code.add(first, lane), last) for lane in range(self.lanes)]
        starts = [code.add(code.dim(self._start), code.mul(column, self._blocks * size)) for column in columns]
        with code.loop(code.index(self._blocks), "block") as number:
            at = [code.add(start, code.mul(number, size)) for start in starts]
            for start in at:
                for line in range(0, size, LINE_BYTES):
                    code.prefetch(self._packed, [code.add(start, BLOCK_PREFETCH_BYTES + line)], 2)
            blocks = Blocks(code, self.lanes, self._packed, at)
            blocks.gather_headers(self._unpack.headers)
            for group in range(groups):
                unpacked, where = self._unpack.unpack(blocks, group), code.add(code.mul(number, groups), group)
                code.store(unpacked.scale, self._scales, [where, offset])
                if unpacked.least is not None and self._leasts is not None:
                    code.store(unpacked.least, self._leasts, [where, offset])
                pairs = [pair for word in unpacked.words for pair in self._halves(word)]
                for i, pair in enumerate(pairs):
                    code.store(pair, self._panel, [code.add(code.mul(where, self._pairs), i), offset])

    def _halves(self, words: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The even and the odd bytes of words, less what is subtracted from each, as pairs of 16 bits."""
        code, lanes = self.code, self.lanes
        mask = splat(code, EVEN_BYTES, i32, lanes)
        shifted = code.value(arith.ShRUIOp(words, splat(code, 8, i32, lanes)))
        even, odd = (code.value(arith.AndIOp(each, mask)) for each in (words, shifted))
        if not self._unpack.offset:
            return even, odd
        offset, pairs = splat(code, self._unpack.offset, i16, 2 * lanes), VectorType(i16, [2 * lanes])
        even, odd = (
            code.value(
                vector.BitcastOp(
                    code.value(arith.SubiOp(code.value(vector.BitcastOp(each, pairs)), offset)),
                    VectorType(i32, [lanes]),
                )
            )
            for each in (even, odd)
        )
        return even, odd

    # Tiles

    def _multiply_some(self, top: SSAValue, count: SSAValue, heights: Sequence[int]) -> None:
        """Makes the totals of a panel and `count` rows, by the lowest tile that has as many."""
        code, (mr, *lower) = self.code, heights
        if not lower:
            self._multiply(top, mr)
            return
        with code.when(code.compare("sgt", count, lower[0])) as branch:
            self._multiply(top, mr)
        with code.otherwise(branch):
            self._multiply_some(top, count, lower)

    def _multiply(self, top: SSAValue, mr: int) -> None:
        """Makes the totals of a panel and `mr` rows."""
        code, lanes = self.code, self.lanes
        indices = [[[code.index(i), code.index(v * lanes)] for v in range(self._tiles.vectors)] for i in range(mr)]
        for row in indices:
            for index in row:
                code.store(code.zeros(f32, lanes), self._totals, index)
        starts = [code.mul(code.add(top, i), self._k // 2) for i in range(mr)]
        with code.loop(code.index(self._groups), "group") as group:
            sums = code.alloc([mr, self._tiles.nr], i32, "sums", scope="local")
            for row in indices:
                for index in row:
                    code.store(code.zeros(i32, lanes), sums, index)
            first = code.mul(group, self._pairs)
            with code.loop(code.index(self._pairs), "pair") as number:
                pair = code.add(first, number)
                columns = [code.load(self._panel, [pair, index[1]], lanes) for index in indices[0]]
                for start, row in zip(starts, indices, strict=True):
                    numbers = code.splat(code.load(self._row_pairs, [code.add(start, pair)]), lanes)
                    for column, index in zip(columns, row, strict=True):
                        total = dot(code, (i16, i16), numbers, column, code.load(sums, index, lanes))
                        code.store(total, sums, index)
            self._add(top, group, sums, indices)

    def _add(
        self, top: SSAValue, group: SSAValue, sums: SSAValue, indices: Sequence[Sequence[Sequence[SSAValue]]]
    ) -> None:
        """Scales the sums of a group and adds them to the totals."""
        code, lanes, leasts = self.code, self.lanes, self._leasts
        chunk = code.divide(group, STEP_ELEMENTS // (2 * self._pairs))
        # All before the first store: LLVM does not load again what it has, nor earlier than stores.
        columns = [[group, index[1]] for index in indices[0]]
        scales = [code.load(self._scales, column, lanes) for column in columns]
        least = None if leasts is None else [code.load(leasts, column, lanes) for column in columns]
        for i, row in enumerate(indices):
            at = code.add(top, i)
            step = code.splat(code.load(self._steps, [at, chunk]), lanes)
            row_sum = None if self._sums is None else code.splat(code.load(self._sums, [at, group]), lanes)
            for v, index in enumerate(row):
                total = code.load(self._totals, index, lanes)
                value = code.value(arith.MulfOp(self._as_float(code.load(sums, index, lanes)), step))
                total = code.fma(value, scales[v], total)
                if least is not None and row_sum is not None:
                    total = code.fma(least[v], row_sum, total)
                code.store(total, self._totals, index)

    def _as_float(self, integers: SSAValue) -> SSAValue:
        return self.code.value(ConvertOp("sitofp", integers, VectorType(f32, [self.lanes])))

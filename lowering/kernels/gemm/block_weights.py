"""GEMM with block-quantised weights, `y = x W^T` where a row of `W` is a sequence of blocks: in floats, and by integer
dot products.

For a few rows of `x`, a row of `W` is decoded in registers while it is multiplied. For more, some rows of `W` are
decoded at a time, into memory that stays in the first-level cache, and multiplied with all rows of `x`. So the packed
bytes are all that is read.

Rows are quantised (`quantized_rows`), and the weights are multiplied as the integers that they are (`block_words`). A
lane has the dot product of one block, exact but for the rows' rounding. It is scaled, and the numbers of the blocks of
a column are added up in `f32`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i8
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    BLOCK_ACTIVATION_BITS,
    BLOCK_DOT_MAX_M,
    BLOCK_DOT_ROWS,
    BLOCK_INT16_BITS,
    BLOCK_PANEL_L2,
    BLOCK_PANEL_MIN_ROWS,
    BLOCK_PANEL_WIDE_ROWS,
    BLOCK_PREFETCH_BYTES,
    BLOCK_ROWS_L2_PART,
    BLOCK_VECTORS,
    DOT_ROWS,
    DOT_STREAMS,
    FLOAT_BITS,
    SUM_BLOCK_STEPS,
    TASK_MACS,
)
from lowering.kernels.emit.accumulators import VectorTotals, in_blocks
from lowering.kernels.emit.kernel import buffer_type, shared_units
from lowering.kernels.emit.vectorization import is_power_of_two, row_sums
from lowering.kernels.gemm.block_registers import GROUPS, Block, Group, Memory, can_unpack
from lowering.kernels.gemm.block_words import LANE_FORMATS, Blocks
from lowering.kernels.gemm.dot import DotGemm
from lowering.kernels.gemm.dot_group_contraction import has_dot_products
from lowering.kernels.gemm.dot_group_micro_kernel import view
from lowering.kernels.gemm.epilogue import SinglePassGemm
from lowering.kernels.gemm.long_rows import RowVector
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.gemm.quantized_rows import Pattern, QuantizedRows, multiplies_int16
from lowering.kernels.structure.decoding import Decoding
from lowering.kernels.structure.stages import Stage
from tir_dialect.dims import ceildiv, constant, floordiv, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES


@dataclass(frozen=True)
class BlockGemm:
    """A GEMM whose columns are the rows of a matrix that a stage decodes."""

    stage: Stage
    """The stage that decodes."""
    decoding: Decoding
    gemm: Gemm


def can_decode_in_registers(gemm: Gemm, decoding: Decoding) -> bool:
    """Whether the columns are the decoded rows, one after the other, and the rows are contiguous along K too."""
    contraction, lanes = gemm.contraction, gemm.tiles.lanes
    if (
        contraction.batch
        or contraction.outer
        or contraction.columns.panels
        or len(contraction.column) != 1
        or len(contraction.reduced) != 1
    ):
        return False
    loads, accesses = contraction.columns.loads, contraction.columns.accesses
    if len(contraction.columns.ops) != 1 or len(loads) != 1 or loads[0].buffer is not decoding.numbers:
        return False
    if gemm.n is not buffer_type(decoding.numbers).shape[0] or accesses[0].base.terms or accesses[0].computed:
        return False
    plain = gemm.is_contiguous(contraction.columns, contraction.reduced) and gemm.is_contiguous(
        contraction.rows, contraction.reduced
    )
    step = contraction.columns.stride(contraction.column[0])
    is_row = plain and gemm.k.constant_value is not None and step == gemm.k.constant_value
    return is_row and is_power_of_two(lanes) and can_unpack(decoding.block_format, lanes)


class BlockDotGemm(SinglePassGemm):
    """Emits dot products of rows with blocks that are decoded in registers."""

    def __init__(self, gemm: Gemm, decoding: Decoding):
        super().__init__(gemm)
        self._format, self._start = decoding.block_format, decoding.start
        self._memory = Memory.of(self.code, gemm.kernel.flat[decoding.packed], self.lanes)

    def emit(self, *, whole: bool = True) -> None:
        """All rows times all columns, or those that do not fill a vector; threads take rows of the matrix."""
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        units = ceildiv(gemm.n, constant(self.lanes)) if whole else constant(1)
        tasks = minimum(units, gemm.threads(TASK_MACS)) if whole else constant(1)
        with (
            shared_units(code, units, tasks) as (lower, upper),
            code.loop(upper, "unit", lower=lower) as unit,
            code.loop(code.dim(gemm.m, "m"), "row") as row,
        ):
            before = code.index(0) if whole else code.dim(floordiv(gemm.n, constant(self.lanes)))
            start = code.mul(code.add(before, unit), self.lanes)
            sums = code.alloc([self.lanes, self.lanes], contraction.element, "partial_sums")
            self._accumulate({contraction.row: row}, start, sums)
            lines = [code.load(sums, [code.index(i), code.index(0)], self.lanes) for i in range(self.lanes)]
            count = code.sub(code.dim(gemm.n), start)
            self.epilogue.store(row_sums(code, lines), {contraction.row: row, contraction.column: start}, count)

    def _accumulate(self, coords: Coords, start: SSAValue, sums: SSAValue) -> None:
        """A vector accumulator for each of as many columns as a vector has lanes; missing ones repeat the last."""
        code, count = self.code, min(BLOCK_DOT_ROWS, self.lanes)
        last = code.sub(code.dim(self.gemm.n), 1)
        with code.loop(code.index(self.lanes // count), "part") as part:
            first = code.mul(part, count)
            numbers = [code.add(first, i) for i in range(count)]
            columns = [code.minimum(code.add(start, number), last) for number in numbers]
            for number, total in zip(numbers, self._dots(coords, columns), strict=True):
                code.store(total, sums, [number, code.index(0)])

    def _dots(self, coords: Coords, columns: list[SSAValue]) -> list[SSAValue]:
        """The accumulators of some columns, side by side."""
        code, element, blocks = self.code, self.gemm.contraction.element, self._blocks
        memory = code.alloc([len(columns), self.lanes], element, "sums", scope="local")
        indices = [[code.index(i), code.index(0)] for i in range(len(columns))]
        for index in indices:
            code.store(code.zeros(element, self.lanes), memory, index)
        row_bytes = blocks * self._format.bytes
        starts = [code.add(code.dim(self._start), code.mul(column, row_bytes)) for column in columns]

        def run(lower: SSAValue | None, upper: SSAValue) -> None:
            with code.loop(upper, "block", lower=lower) as number:
                offset = code.mul(number, self._format.bytes)
                self._prefetch(starts, offset)
                found = [Block(self._memory, code.add(each, offset)) for each in starts]
                totals = [code.load(memory, index, self.lanes) for index in indices]
                for index, total in zip(indices, self._add_block(coords, number, found, totals), strict=True):
                    code.store(total, memory, index)

        def totals() -> VectorTotals:
            return VectorTotals(code, element, memory, indices, self.lanes)

        in_blocks(code, (None, code.index(blocks)), run, totals, constant(SUM_BLOCK_STEPS))
        return [code.load(memory, index, self.lanes) for index in indices]

    def _prefetch(self, starts: list[SSAValue], offset: SSAValue) -> None:
        """The same bytes of rows that follow, as rows are too short for the processor to see that they do."""
        code, size = self.code, self._blocks * self._format.bytes
        ahead = len(starts) * size
        further = ceildiv(constant(BLOCK_PREFETCH_BYTES), constant(ahead)).constant_value or 1
        for start in starts:
            for line in range(0, self._format.bytes, LINE_BYTES):
                code.prefetch(self._memory.bytes, [code.add(code.add(start, offset), further * ahead + line)], 2)

    @property
    def _blocks(self) -> int:
        """The blocks of a row."""
        k = self.gemm.k.constant_value
        assert k is not None  # `can_decode_in_registers`
        return k // self._format.elements

    def _add_block(
        self, coords: Coords, number: SSAValue, blocks: list[Block], totals: list[SSAValue]
    ) -> list[SSAValue]:
        """The accumulators with the products of one block of each column added, group by group."""
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        count, unpack = GROUPS[self._format.name]
        size = self._format.elements // count
        for group in range(count):
            first = code.add(code.mul(number, self._format.elements), group * size)
            row = [
                gemm.vector(
                    contraction.rows, {**coords, contraction.reduced: code.add(first, lane)}, contraction.reduced, None
                )
                for lane in range(0, size, self.lanes)
            ]
            total_row: SSAValue | None = None
            for i, block in enumerate(blocks):
                unpacked = unpack(block, group)
                totals[i] = code.fma(unpacked.scale, self._dot(row, unpacked), totals[i])
                if unpacked.least is not None:
                    total_row = self._sum(row) if total_row is None else total_row
                    totals[i] = code.fma(unpacked.least, total_row, totals[i])
        return totals

    def _dot(self, row: list[SSAValue], unpacked: Group) -> SSAValue:
        code = self.code
        total = code.value(arith.MulfOp(row[0], unpacked.integers[0]))
        for x, integers in zip(row[1:], unpacked.integers[1:], strict=True):
            total = code.fma(x, integers, total)
        return total

    def _sum(self, vectors: list[SSAValue]) -> SSAValue:
        total = vectors[0]
        for each in vectors[1:]:
            total = self.code.add_floats(total, each)
        return total


class BlockPanelGemm(DotGemm):
    """Emits dot products with rows of the matrix that are decoded before, some at a time."""

    def __init__(self, gemm: Gemm, decoding: Decoding):
        super().__init__(gemm)
        self._format, self._packed = decoding.block_format, gemm.kernel.flat[decoding.packed]
        self._start = decoding.start
        self._k = gemm.k.constant_value or 0  # `can_decode_in_registers`

    @property
    @override
    def groups(self) -> Sequence[tuple[int, int]]:
        """Each has all columns that are decoded at a time."""
        rows = BLOCK_PANEL_WIDE_ROWS if self.gemm.kernel.target.vector_registers > 16 else DOT_ROWS
        return tuple((mr, DOT_STREAMS) for mr in rows)

    @override
    def emit(self, coords: Coords) -> None:
        """All rows times all columns; threads take columns."""
        code, gemm, width = self.code, self.gemm, DOT_STREAMS
        units = ceildiv(gemm.n, constant(width))
        tasks = minimum(units, gemm.threads(TASK_MACS))
        m, most = code.dim(gemm.m, "m"), self._rows_of_block
        blocks = code.divide(code.add(m, most - 1), most)
        with shared_units(code, units, tasks) as (lower, upper):
            self._panel = code.alloc([width * self._k], gemm.contraction.element, "decoded")
            with code.loop(blocks, "block") as block, code.loop(upper, "unit", lower=lower) as unit:
                self._left = code.mul(unit, width)
                with code.loop(code.minimum(code.sub(code.dim(gemm.n), self._left), width), "column") as column:
                    self._decode(code.add(self._left, column), code.mul(column, self._k))
                top = code.mul(block, most)
                self.multiply(coords, (self._left, width), (top, code.minimum(code.add(top, most), m)))

    @property
    def _rows_of_block(self) -> int:
        """Rows that are multiplied with decoded columns before the next ones: they stay near."""
        row = self._k * byte_size(self.gemm.contraction.element)
        return max(BLOCK_PANEL_MIN_ROWS, BLOCK_PANEL_L2 * self.gemm.kernel.target.l2_bytes // row)

    def _decode(self, row: SSAValue, start: SSAValue) -> None:
        """Decodes a row of the matrix, into the panel from an element on."""
        code, lanes, block_format = self.code, self.lanes, self._format
        packed = Memory.of(code, self._packed, lanes)
        count, unpack = GROUPS[block_format.name]
        blocks = self._k // block_format.elements
        with code.loop(code.index(blocks), "block") as number:
            at = code.mul(code.add(code.mul(row, blocks), number), block_format.bytes)
            at = code.add(code.dim(self._start), at)
            for line in range(0, block_format.bytes, LINE_BYTES):
                code.prefetch(packed.bytes, [code.add(at, BLOCK_PREFETCH_BYTES + line)], 2)
            block, first = Block(packed, at), code.add(start, code.mul(number, block_format.elements))
            for group in range(count):
                unpacked = unpack(block, group)
                for i, value in enumerate(unpacked.numbers(code)):
                    code.store(value, self._panel, [code.add(first, unpacked.start + i * lanes)])

    @override
    def column_vector(self, coords: Coords, column: SSAValue) -> RowVector:
        code, first = self.code, self.code.mul(self.code.sub(column, self._left), self._k)

        def vector(r: SSAValue, on: SSAValue | None) -> SSAValue:
            mask = None if on is None else code.leading(on, self.lanes)
            return code.load(self._panel, [code.add(first, r)], self.lanes, mask)

        return vector

    @override
    def prefetcher(self, coords: Coords, start: SSAValue) -> None:
        return None

    @override
    def head(self, coords: Coords) -> None:
        return None


def row_planes(gemm: Gemm, decoding: Decoding) -> int | None:
    """Into how many bytes the numbers of rows are split, if that suits; `None` if they stay `f32`.

    Unless the target says how many, that is where it has dot products of bytes, or sums of two products of 16 bits.
    With the latter, fewer bytes are no faster.
    """
    target, lanes, k = gemm.kernel.target, gemm.tiles.lanes, gemm.k.constant_value
    bits = target.schedule.activation_bits
    if multiplies_int16(target):
        bits = max(bits, BLOCK_INT16_BITS)
    bits = bits or (BLOCK_ACTIVATION_BITS if has_dot_products(target, i8) else FLOAT_BITS)
    if bits == FLOAT_BITS or decoding.block_format.name not in LANE_FORMATS or lanes not in (4, 8, 16):
        return None
    if k is None or (gemm.n.constant_value or 0) < lanes:
        return None
    pattern, planes = Pattern(k // decoding.block_format.elements, lanes), bits // 8
    is_near = pattern.copies * k * planes * BLOCK_ROWS_L2_PART <= target.l2_bytes
    return planes if is_near and 0 < pattern.blocks <= SUM_BLOCK_STEPS * lanes else None


class BlockIntegerGemm(SinglePassGemm):
    """Emits the code for the columns up to the last that fills a vector; others are left out."""

    def __init__(self, gemm: Gemm, decoding: Decoding, planes: int):
        super().__init__(gemm)
        self._format, self._start = decoding.block_format, decoding.start
        self._lane_format = LANE_FORMATS[self._format.name]
        k, rows = gemm.k.constant_value or 0, min(gemm.m.constant_value or BLOCK_DOT_MAX_M, BLOCK_DOT_MAX_M)
        self._pattern = Pattern(k // self._format.elements, self.lanes)
        self._packed = gemm.kernel.flat[decoding.packed]
        self._rows = QuantizedRows(gemm, self._format, self._pattern, planes, rows)

    def emit(self) -> None:
        """All rows times these columns; threads take columns."""
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        m = code.dim(gemm.m, "m")
        with code.loop(m, "row") as row:
            self._rows.quantize(row)
        units = floordiv(gemm.n, constant(self.lanes))
        tasks = minimum(units, gemm.threads(TASK_MACS))
        with shared_units(code, units, tasks) as (lower, upper), code.loop(upper, "unit", lower=lower) as unit:
            start = code.mul(unit, self.lanes)
            first = code.add(code.dim(self._start), code.mul(start, self._pattern.blocks * self._format.bytes))
            with code.loop(m, "row") as row:
                totals = self._sums_of_columns(row, first)
                self.epilogue.store(totals, {contraction.row: row, contraction.column: start}, code.index(self.lanes))

    def _sums_of_columns(self, row: SSAValue, first: SSAValue) -> SSAValue:
        """The dot products of a row with as many columns as there are lanes."""
        code, lanes, pattern = self.code, self.lanes, self._pattern
        partial = code.alloc([lanes * pattern.blocks], f32, "partial", scope="local")
        # More groups have more accumulators than there are registers.
        side = min(BLOCK_VECTORS if self._lane_format.groups == 1 else 1, lanes // pattern.copies)
        headers = [
            {
                at: code.alloc([pattern.vectors * lanes], kind, "headers", scope="local")
                for at, kind in self._lane_format.headers
            }
            for _ in range(side)
        ]
        with code.loop(code.index(lanes // pattern.copies // side), "copy") as copy:
            before = [code.mul(code.add(code.mul(copy, side), i), pattern.vectors * lanes) for i in range(side)]
            starts = [code.add(first, code.mul(each, self._format.bytes)) for each in before]
            for start, memories in zip(starts, headers, strict=True):
                self._gather(start, memories)
            with code.loop(code.index(pattern.vectors), "vector") as vector:
                block = code.mul(vector, lanes)
                found = [self._blocks(start, block, memories) for start, memories in zip(starts, headers, strict=True)]
                for each, dots in zip(before, self._dots(row, vector, found), strict=True):
                    code.store(dots, partial, [code.add(each, block)])
        sums = code.alloc([lanes, lanes], f32, "sums", scope="local")
        with code.loop(code.index(lanes), "column") as column:
            code.store(self._row_of(partial, code.mul(column, pattern.blocks)), sums, [column, code.index(0)])
        return row_sums(code, [code.load(sums, [code.index(i), code.index(0)], lanes) for i in range(lanes)])

    def _blocks(self, start: SSAValue, block: SSAValue, headers: dict[int, SSAValue]) -> Blocks:
        """A vector of blocks, the first of which has that number after the start."""
        code = self.code
        at = code.add(start, code.mul(block, self._format.bytes))
        self._prefetch(at)
        starts = [code.add(at, lane * self._format.bytes) for lane in range(self.lanes)]
        blocks = Blocks(code, self.lanes, self._packed, starts)
        for header, memory in headers.items():
            blocks.give_header(header, code.load(memory, [block], self.lanes))
        return blocks

    def _gather(self, start: SSAValue, headers: dict[int, SSAValue]) -> None:
        """Copies the headers of the blocks of all vectors of the pattern side by side; each into its memory."""
        code, lanes = self.code, self.lanes
        if not headers:
            return
        count = self._pattern.vectors * lanes
        views = {
            at: view(code, headers[at], [count * (kind.width.data // 8)], i8) for at, kind in self._lane_format.headers
        }
        with code.loop(code.index(self._pattern.vectors), "vector", vectorize=False) as vector:
            first = code.add(start, code.mul(vector, lanes * self._format.bytes))
            for lane in range(lanes):
                for at, kind in self._lane_format.headers:
                    size = kind.width.data // 8
                    value = code.load(self._packed, [code.add(first, lane * self._format.bytes + at)], size)
                    code.store(value, views[at], [code.mul(code.add(code.mul(vector, lanes), lane), size)])

    def _dots(self, row: SSAValue, vector: SSAValue, side: list[Blocks]) -> list[SSAValue]:
        """The dot product of each block of some vectors with its part of the row, of which words are loaded once."""
        code, lanes, rows = self.code, self.lanes, self._rows
        each = self._format.elements // 4 // self._lane_format.groups
        totals = [code.zeros(f32, lanes) for _ in side]
        for group in range(self._lane_format.groups):
            unpacked = [self._lane_format.unpack(blocks, group) for blocks in side]
            planes = [[rows.start(row, vector, group, plane) for plane in range(rows.planes)] for _ in side]
            for number in range(each):
                for plane in range(rows.planes):
                    word = rows.word(row, vector, group * each + number, plane)
                    for found, sums in zip(unpacked, planes, strict=True):
                        sums[plane] = rows.dot(found.words[number], word, plane, sums[plane])
            for i, (found, sums) in enumerate(zip(unpacked, planes, strict=True)):
                totals[i] = code.fma(found.scale, rows.combined(sums), totals[i])
                if found.least is not None:
                    totals[i] = code.fma(found.least, rows.sum(row, vector, group), totals[i])
        step = rows.step(row, vector)
        return [code.value(arith.MulfOp(total, step)) for total in totals]

    def _prefetch(self, at: SSAValue) -> None:
        """The cache lines of as many blocks further on."""
        for line in range(0, self.lanes * self._format.bytes, LINE_BYTES):
            self.code.prefetch(self._packed, [self.code.add(at, BLOCK_PREFETCH_BYTES + line)], 2)

    def _row_of(self, partial: SSAValue, start: SSAValue) -> SSAValue:
        """A vector whose lanes add up to the numbers of a column's blocks."""
        code, lanes, count = self.code, self.lanes, self._pattern.blocks
        total = code.alloc([lanes], f32, "total", scope="local")
        zero, whole = code.index(0), count // lanes
        code.store(code.zeros(f32, lanes), total, [zero])
        if whole:
            with code.loop(code.index(whole), "v") as v:
                value = code.load(partial, [code.add(start, code.mul(v, lanes))], lanes)
                code.store(code.add_floats(code.load(total, [zero], lanes), value), total, [zero])
        found = code.load(total, [zero], lanes)
        if rest := count % lanes:
            mask = code.leading(code.index(rest), lanes)
            found = code.add_floats(found, code.load(partial, [code.add(start, whole * lanes)], lanes, mask))
        return found


def columns_left(gemm: Gemm) -> bool:
    """Whether there are columns that do not fill a vector."""
    return (gemm.n.constant_value or 0) % gemm.tiles.lanes != 0

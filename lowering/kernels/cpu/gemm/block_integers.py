"""GEMM with small M and block-quantised weights by integer dot products.

Rows are quantised (`quantized_rows`), and the weights are multiplied as the integers that they are (`block_words`). A
lane has the dot product of one block, exact but for the rows' rounding. It is scaled, and the numbers of the blocks of
a column are added up in `f32`.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i8
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.blocked_accumulation import MOST
from lowering.kernels.cpu.emit.kernel import shared_units
from lowering.kernels.cpu.emit.shuffles import row_sums
from lowering.kernels.cpu.gemm.block_words import LANE_FORMATS, Blocks
from lowering.kernels.cpu.gemm.cost_model import (
    BLOCK_ACTIVATION_BITS,
    BLOCK_DOT_MAX_M,
    BLOCK_PREFETCH_BYTES,
    BLOCK_ROWS_L2_PART,
    BLOCK_VECTORS,
    TASK_MACS,
)
from lowering.kernels.cpu.gemm.dot_groups.contraction import has_dot_products
from lowering.kernels.cpu.gemm.dot_groups.micro_kernel import dot, view
from lowering.kernels.cpu.gemm.epilogue import SinglePassGemm
from lowering.kernels.cpu.gemm.problem import Gemm
from lowering.kernels.cpu.gemm.quantized_rows import Pattern, QuantizedRows, combined
from lowering.kernels.cpu.structure.decoding import Decoding
from tir_dialect.dims import constant, floordiv, minimum
from tir_dialect.ops.dot import ui8
from tir_dialect.target import LINE_BYTES

FLOAT_BITS = 32
"""Bits of rows that are not quantised."""


def row_planes(gemm: Gemm, decoding: Decoding) -> int | None:
    """Into how many bytes the numbers of rows are split, if that suits; `None` if they stay `f32`.

    Unless the target says how many, that is where it has dot products of bytes.
    """
    target, lanes, k = gemm.kernel.target, gemm.tiles.lanes, gemm.k.constant_value
    bits = target.schedule.activation_bits or (BLOCK_ACTIVATION_BITS if has_dot_products(target, i8) else FLOAT_BITS)
    if bits == FLOAT_BITS or decoding.block_format.name not in LANE_FORMATS or lanes not in (4, 8, 16):
        return None
    if k is None or (gemm.n.constant_value or 0) < lanes:
        return None
    pattern, planes = Pattern(k // decoding.block_format.elements, lanes), bits // 8
    is_near = pattern.copies * k * planes * BLOCK_ROWS_L2_PART <= target.l2_bytes
    return planes if is_near and 0 < pattern.blocks <= MOST * lanes else None


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
        blocks = Blocks(code, self._format, self.lanes, self._packed, at)
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
                        sums[plane] = dot(code, (ui8, i8), found.words[number], word, sums[plane])
            for i, (found, sums) in enumerate(zip(unpacked, planes, strict=True)):
                totals[i] = code.fma(found.scale, combined(code, sums, lanes), totals[i])
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

"""GEMM of small M with weights of 8 bits in blocks (q8_0) by sums of two products of 16 bits, lanes along K.

For machines that multiply pairs of 16 bits, but no bytes. Rows are integers of 16 bits with a step for each block. The
bytes of a block are extended to 16 bits in the order in which they are stored and multiplied with the row's integers;
nothing is transposed, and a row of the matrix is read from its first byte to its last one, as prefetchers like it. The
sums of a block are exact, but for the rows' rounding. Integers of fewer bits take longer to unpack so than as words
(`block_weights`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType, f16, f32, i16, i32
from xdsl.ir import SSAValue

from lowering.kernels.emit.accumulators import MOST as MOST_TERMS
from lowering.kernels.emit.kernel import shared_units
from lowering.kernels.emit.vectorization import bits_as, row_sums, shuffle
from lowering.kernels.gemm.block_registers import Memory
from lowering.kernels.gemm.cost_model import (
    BLOCK_DOT_MAX_M,
    BLOCK_INT16_SIDE,
    BLOCK_PREFETCH_BYTES,
    TASK_MACS,
)
from lowering.kernels.gemm.dot_group_micro_kernel import dot, splat, view
from lowering.kernels.gemm.epilogue import SinglePassGemm
from lowering.kernels.gemm.problem import Gemm
from lowering.kernels.gemm.quantized_rows import INT16_PLANES, MOST, multiplies_int16, numbers_of_block, quantized
from lowering.kernels.structure.decoding import Decoding
from tir_dialect.block_formats import FORMATS
from tir_dialect.dims import constant, floordiv, minimum
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
        and 0 < blocks <= MOST_TERMS * _side(blocks)
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

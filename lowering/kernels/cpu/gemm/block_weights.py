"""GEMM with block-quantised weights, `y = x W^T` where a row of `W` is a sequence of blocks.

For a few rows of `x`, a row of `W` is decoded in registers while it is multiplied, so that the packed bytes are all
that is read. For more rows the whole matrix is decoded once, into a workspace, and a usual generator follows.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.blocked_accumulation import MOST, VectorTotals, in_blocks
from lowering.kernels.cpu.emit.kernel import buffer_type, shared_units
from lowering.kernels.cpu.emit.shuffles import is_power_of_two, row_sums
from lowering.kernels.cpu.gemm.block_registers import GROUPS, Block, Group, Memory, can_unpack
from lowering.kernels.cpu.gemm.cost_model import BLOCK_DOT_MAX_M, BLOCK_DOT_ROWS, BLOCK_PREFETCH_BYTES, TASK_MACS
from lowering.kernels.cpu.gemm.epilogue import SinglePassGemm
from lowering.kernels.cpu.gemm.problem import Coords, Gemm
from lowering.kernels.cpu.structure.decoding import Decoding
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.dims import ceildiv, constant, floordiv, minimum
from tir_dialect.target import LINE_BYTES


@dataclass(frozen=True)
class BlockGemm:
    """A GEMM whose columns are the rows of a matrix that a stage decodes."""

    stage: Stage
    """The stage that decodes."""
    decoding: Decoding
    gemm: Gemm

    @property
    def is_always_few(self) -> bool:
        """Whether there are never so many rows that the matrix has to be decoded."""
        return (self.gemm.m.constant_value or BLOCK_DOT_MAX_M + 1) <= BLOCK_DOT_MAX_M


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
        self._format = decoding.block_format
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
        starts = [code.mul(column, blocks * self._format.bytes) for column in columns]

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

        in_blocks(code, (None, code.index(blocks)), run, totals, constant(MOST))
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


def emit_decoding(gemm: Gemm, decoding: Decoding) -> None:
    """Decodes the whole matrix into the memory of its numbers; threads take rows."""
    code, kernel, lanes = gemm.code, gemm.kernel, gemm.tiles.lanes
    block_format = decoding.block_format
    memory = Memory.of(code, kernel.flat[decoding.packed], lanes)
    count, unpack = GROUPS[block_format.name]
    rows, columns = buffer_type(decoding.numbers).shape
    blocks = (columns.constant_value or 0) // block_format.elements
    with kernel.partition(rows, rows * columns) as part:
        lower, upper = (None, code.dim(rows)) if part is None else part
        with (
            code.loop(upper, "row", lower=lower) as row,
            code.loop(code.index(blocks), "block") as number,
        ):
            position = code.add(code.mul(row, blocks), number)
            block, first = (
                Block(memory, code.mul(position, block_format.bytes)),
                code.mul(position, block_format.elements),
            )
            for group in range(count):
                unpacked = unpack(block, group)
                for i, integers in enumerate(unpacked.integers):
                    value = code.value(arith.MulfOp(unpacked.scale, integers))
                    if unpacked.least is not None:
                        value = code.add_floats(value, unpacked.least)
                    index = code.add(first, unpacked.start + i * lanes)
                    code.store(value, kernel.flat[decoding.numbers], [index])

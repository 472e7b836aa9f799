"""Transposed copies of a matrix, in blocks that are transposed in registers: of a transposed B, or of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.kernel import shared_units
from lowering.kernels.cpu.emit.routines import Routine, flat
from lowering.kernels.cpu.emit.shuffles import is_power_of_two, transposed
from lowering.kernels.cpu.gemm.cost_model import TASK_COPIED_ELEMENTS
from lowering.kernels.cpu.gemm.epilogue import can_store_tiles
from lowering.kernels.cpu.gemm.operands import Matrix, lies_evenly
from lowering.kernels.cpu.gemm.problem import Gemm
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum, mod
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class TransposeRoutine(Routine):
    """Element `r` of row `i` goes to position `i` of row `r`; the vectors of rows are `lower` to `upper`."""

    dtype: AnyFloat
    lanes: int
    is_exact: bool = False
    """Whether nothing else is written: else whole vectors are, and as many rows, with anything past the end."""

    @property
    @override
    def label(self) -> str:
        return f"transpose.{self.dtype}.{self.lanes}"

    @override
    def sizes(self) -> Sequence[str]:
        return ("lower", "upper", "count", "length", "first", "each", "out", "out_each")

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        return flat(self.dtype, "matrix", "output")

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        lanes, last = self.lanes, code.sub(size["count"], 1)
        blocks = code.divide(code.add(size["length"], lanes - 1), lanes)
        with (
            code.loop(size["upper"], "vector", lower=size["lower"], vectorize=False) as vector,
            code.loop(blocks, "block", vectorize=False) as block,
        ):
            top, start = code.mul(vector, lanes), code.mul(block, lanes)
            mask = code.leading(code.sub(size["length"], start), lanes)
            k_rows = [code.minimum(code.add(top, i), last) for i in range(lanes)]
            offsets = [code.add(code.add(size["first"], code.mul(k_row, size["each"])), start) for k_row in k_rows]
            rows = transposed(code, [code.load(buffer["matrix"], [offset], lanes, mask) for offset in offsets])
            begin = code.add(code.add(size["out"], code.mul(start, size["out_each"])), top)
            count, left = code.sub(size["count"], top), code.sub(size["length"], start)
            for i, row in enumerate(rows):
                inside = code.select(code.compare("sgt", left, i), count, code.index(0)) if self.is_exact else None
                on = None if inside is None else code.leading(inside, lanes)
                code.store(row, buffer["output"], [code.add(begin, code.mul(size["out_each"], i))], on)


def can_copy_transposed(gemm: Gemm) -> bool:
    """Whether B is transposed, and both operands are matrices in memory and there is no epilogue."""
    contraction = gemm.contraction
    evenly = all(
        lies_evenly(gemm, *each)
        for each in ((contraction.rows, contraction.row), (contraction.columns, contraction.column))
    )
    along = (
        gemm.is_contiguous(contraction.columns, contraction.reduced)
        and contraction.columns.panels is None
        and not contraction.outer
    )
    return evenly and along and can_store_tiles(gemm) and is_power_of_two(gemm.tiles.lanes)


def copy_transposed(gemm: Gemm, columns: Matrix, threads: Dim) -> Matrix:
    """The copy `[depth, pitch]`: as many vectors as columns need, an odd number, so that rows go to different sets."""
    code, lanes = gemm.code, gemm.tiles.lanes
    vectors = ceildiv(gemm.n, constant(lanes))
    pitch = constant(lanes) * (vectors + 1 - mod(vectors, constant(2)))
    room = pitch * constant(lanes) * ceildiv(gemm.k, constant(lanes))
    buffer = code.alloc([room], gemm.contraction.element, "copied_columns")
    pieces = maximum(minimum(floordiv(gemm.n * gemm.k, constant(TASK_COPIED_ELEMENTS)), vectors), constant(1))
    each = columns.each if isinstance(columns.each, SSAValue) else code.index(columns.each)
    with shared_units(code, vectors, minimum(threads, pieces), whole=True) as units:
        sizes = [*units, *map(code.dim, (gemm.n, gemm.k)), columns.first, each, code.index(0), code.dim(pitch)]
        routine = TransposeRoutine(gemm.contraction.element, lanes)
        gemm.kernel.routines.call(code, routine, sizes, [columns.buffer, buffer])
    return Matrix(buffer, code.index(0), 1, code.dim(pitch), lanes)

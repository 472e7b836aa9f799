"""Streamed products whose operands and accumulators are in memory, as a routine: one function for all sizes and
kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from typing_extensions import override
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.routines import Routine, flat
from lowering.kernels.cpu.gemm.micro_kernel import MicroKernel, TileOperands
from lowering.kernels.cpu.gemm.operands import Matrix
from lowering.kernels.cpu.gemm.results import Results
from lowering.kernels.cpu.gemm.skinny.narrow import in_narrow_tiles
from tir_dialect.types import BufferType

Bounds = tuple[SSAValue, SSAValue]
"""The numbers from the first value to before the second."""

_UNITS = ("lower", "upper", "panels", "height")
_SUMS = ("k_blocks", "depth", "k", "m", "n")
_OPERANDS = ("row", "row_each", "column", "column_step", "out", "out_each")
_BUFFERS = ("rows", "columns", "output")


@dataclass(frozen=True)
class StreamedRoutine(Routine):
    """The kind of the register tiles."""

    kind: MicroKernel
    """The tiles; each height is that of some. One row does little but read, which is as fast without hints."""
    heights: tuple[int, ...]
    """The rows of groups that share a vector of columns once it is loaded."""
    row_step: int | None
    """How far apart the elements of a row are; `None` if that is a size."""
    has_narrow_panels: bool
    """Whether the last panel may have fewer columns."""

    @property
    @override
    def label(self) -> str:
        """The widths of the tiles."""
        return f"streamed.{self.kind.dtype}.{self.width}"

    @property
    def width(self) -> int:
        """Columns of a panel."""
        return self.kind.vectors * self.kind.lanes

    @override
    def sizes(self) -> Sequence[str]:
        return [*_UNITS, *_SUMS, *_OPERANDS, *["row_step"] * (self.row_step is None)]

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        return flat(self.kind.dtype, *_BUFFERS)

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        """The code of the function."""
        _Body(self, code, size, buffer).emit()


@dataclass(frozen=True)
class _Body:
    routine: StreamedRoutine
    code: Code
    size: Mapping[str, SSAValue]
    buffer: Mapping[str, SSAValue]

    def emit(self) -> None:
        """By blocks of the reduction, the units of a task: each a panel for a block of rows."""
        code, size = self.code, self.size
        panels = code.maximum(size["panels"], code.index(1))
        blocks = code.divide(size["lower"], panels), code.divide(code.add(size["upper"], code.sub(panels, 1)), panels)
        with code.loop(size["k_blocks"], "k_block", plain=True) as k_block:
            start = code.mul(k_block, size["depth"])
            steps = start, code.minimum(code.add(start, size["depth"]), size["k"])
            with code.loop(blocks[1], "block", lower=blocks[0]) as block:
                top, before = code.mul(block, size["height"]), code.mul(block, panels)
                rows = top, code.minimum(code.add(top, size["height"]), size["m"])
                first = code.maximum(code.sub(size["lower"], before), code.index(0))
                end = code.minimum(code.sub(size["upper"], before), panels)
                with code.loop(end, "panel", lower=first) as panel:
                    self._block(k_block, steps, code.mul(panel, self.routine.width), rows)

    def _block(self, k_block: SSAValue, steps: Bounds, left: SSAValue, rows: Bounds) -> None:
        """Some rows of a panel, in tiles that have its columns."""

        def emit(kind: MicroKernel, first: SSAValue) -> None:
            self._groups(kind, k_block, steps, code.add(left, first), rows)

        code, kind = self.code, self.routine.kind
        if self.routine.has_narrow_panels:
            in_narrow_tiles(code, kind, code.sub(self.size["n"], left), emit)
        else:
            emit(kind, code.index(0))

    def _groups(self, kind: MicroKernel, k_block: SSAValue, steps: Bounds, left: SSAValue, rows: Bounds) -> None:
        code, (top, end) = self.code, rows
        for height in self.routine.heights:
            groups = code.divide(code.sub(end, top), height)
            with code.loop(groups, "group") as group:
                self._group(replace(kind, height=height), k_block, steps, left, code.add(top, code.mul(group, height)))
            top = code.add(top, code.mul(groups, height))

    def _group(self, kind: MicroKernel, k_block: SSAValue, steps: Bounds, left: SSAValue, top: SSAValue) -> None:
        """The rows of a tile: their sums to the output, or to what earlier blocks of the reduction left there."""
        code, size, buffer = self.code, self.size, self.buffer
        kind = replace(kind, unroll=1)
        if kind.height == 1:
            kind = replace(kind, prefetches=())
        row = code.add(size["row"], code.mul(top, size["row_each"]))
        step = size["row_step"] if self.routine.row_step is None else self.routine.row_step
        rows = Matrix(buffer["rows"], row, size["row_each"], step, kind.lanes)
        columns = Matrix(buffer["columns"], code.add(size["column"], left), 1, size["column_step"], kind.lanes)
        line = code.add(code.add(size["out"], code.mul(top, size["out_each"])), left)
        results = Results(buffer["output"], line, size["out_each"], k_block, is_prefetched=False)
        kind.emit(code, TileOperands(rows, columns, *steps, results, code.sub(size["n"], left)))

"""Few columns for many rows, as routines: packing of the columns, then strips of rows times all panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.routines import Routine, flat
from lowering.kernels.cpu.gemm.micro_kernel import MicroKernel, TileOperands
from lowering.kernels.cpu.gemm.operands import Matrix
from lowering.kernels.cpu.gemm.results import Results
from lowering.kernels.cpu.gemm.skinny.narrow import in_narrow_tiles
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class PackingRoutine(Routine):
    """Packs columns of a matrix into panels `[number, depth, width]`, padded with zeros."""

    dtype: AnyFloat
    lanes: int
    vectors: int

    @property
    @override
    def label(self) -> str:
        """The element type and the width of the panels."""
        return f"pack.{self.dtype}.{self.vectors}x{self.lanes}"

    @override
    def sizes(self) -> Sequence[str]:
        return ("lower", "upper", "k", "n", "column", "column_step")

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        return flat(self.dtype, "columns", "packed")

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        """The code of the function, for the panels from `lower` to before `upper`."""
        k, width = size["k"], self.lanes * self.vectors
        with code.loop(size["upper"], "panel", lower=size["lower"]) as panel, code.loop(k, "r") as r:
            source = code.add(size["column"], code.mul(r, size["column_step"]))
            target = code.mul(code.add(code.mul(panel, k), r), width)
            for v in range(0, width, self.lanes):
                left = code.add(code.mul(panel, width), v)
                mask = code.leading(code.sub(size["n"], left), self.lanes)
                values = code.load(buffer["columns"], [code.add(source, left)], self.lanes, mask)
                code.store(values, buffer["packed"], [code.add(target, v)])


@dataclass(frozen=True)
class TallRoutine(Routine):
    """Strips of rows times all columns, which are packed.

    The last strip starts earlier if it would be incomplete, so some rows are computed twice, and a call needs two
    strips at least.
    """

    kind: MicroKernel
    """The tile: the rows of a strip, and the columns of a panel."""
    has_masks: bool
    """Whether masks cost nothing."""

    @property
    @override
    def label(self) -> str:
        """The shape of the tile."""
        return f"tall.{self.kind.dtype}.{self.kind.height}x{self.width}"

    @property
    def width(self) -> int:
        """Columns of a panel."""
        return self.kind.vectors * self.kind.lanes

    @override
    def sizes(self) -> Sequence[str]:
        return ("lower", "upper", "panels", "k", "m", "n", "row", "row_each", "out", "out_each")

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        return flat(self.kind.dtype, "rows", "columns", "output")

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        """The code of the function, for the strips from `lower` to before `upper`."""
        body, height = _Body(self, code, size, buffer), self.kind.height
        with code.loop(size["upper"], "strip", lower=size["lower"]) as strip:
            top = code.minimum(code.mul(strip, height), code.sub(size["m"], height))
            with code.loop(size["panels"], "panel") as panel:
                body.panel(top, panel)


@dataclass(frozen=True)
class _Body:
    routine: TallRoutine
    code: Code
    size: Mapping[str, SSAValue]
    buffer: Mapping[str, SSAValue]

    def panel(self, top: SSAValue, panel: SSAValue) -> None:
        """Some rows of a panel, in tiles that have its columns."""

        def emit(kind: MicroKernel, first_column: SSAValue) -> None:
            self.tile(kind, top, panel, first_column)

        code = self.code
        left = code.mul(panel, self.routine.width)
        in_narrow_tiles(code, self.routine.kind, code.sub(self.size["n"], left), emit)

    def tile(self, kind: MicroKernel, top: SSAValue, panel: SSAValue, first: SSAValue) -> None:
        """The sums of some rows in a panel from its column `first` on, and to the output."""
        code, size, width = self.code, self.size, self.routine.width
        row = code.add(size["row"], code.mul(top, size["row_each"]))
        rows = Matrix(self.buffer["rows"], row, size["row_each"], 1, kind.lanes)
        left = code.add(code.mul(panel, width), first)
        position = code.add(code.mul(code.mul(panel, size["k"]), width), first)
        columns = Matrix(self.buffer["columns"], position, 1, width, kind.lanes)
        next_row = code.add(row, code.mul(size["row_each"], kind.height))
        soon = replace(rows, first=next_row, step=kind.height)
        line = code.add(code.add(size["out"], code.mul(top, size["out_each"])), left)
        results = Results(
            self.buffer["output"],
            line,
            size["out_each"],
            None,
            code.sub(size["n"], left),
            masks_if_needed=not self.routine.has_masks,
            is_prefetched=False,
        )
        kind.emit(code, TileOperands(rows, columns, code.index(0), size["k"], results, soon=soon))

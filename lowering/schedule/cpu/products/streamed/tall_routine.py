"""Few columns for many rows, as routines: packing of the columns, then strips of rows times all panels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.code import Code
from lowering.schedule.cpu.products.micro_kernel import MicroKernel, TileOperands
from lowering.schedule.cpu.products.operands import Matrix
from lowering.schedule.cpu.products.results import Results
from lowering.schedule.cpu.products.streamed.narrow import in_narrow_tiles
from tir_dialect.dims import symbol
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class PackingRoutine:
    """Packs columns of a matrix into panels `[number, depth, width]`, padded with zeros."""

    dtype: AnyFloat
    lanes: int
    vectors: int

    @property
    def name(self) -> str:
        """The element type and the width of the panels."""
        return f"pack.{self.dtype}.{self.vectors}x{self.lanes}"

    def signature(self) -> tuple[Sequence[str], Sequence[tuple[str, BufferType]]]:
        """The sizes and buffers in the order of a call."""
        buffers = [(name, BufferType([symbol(f"{name}_room")], self.dtype)) for name in ("columns", "packed")]
        return ["lower", "upper", "k", "n", "column", "column_step", "columns_room", "packed_room"], buffers

    def write(self, code: Code, sizes: Sequence[SSAValue], buffers: Sequence[SSAValue]) -> None:
        """The code of the function, for the panels from `lower` to before `upper`."""
        (lower, upper, k, n, column, step, *_), (columns, packed) = sizes, buffers
        width = self.lanes * self.vectors
        with code.loop(upper, "panel", lower=lower) as panel, code.loop(k, "r") as r:
            source = code.add(column, code.mul(r, step))
            target = code.mul(code.add(code.mul(panel, k), r), width)
            for v in range(0, width, self.lanes):
                left = code.add(code.mul(panel, width), v)
                mask = code.leading(code.sub(n, left), self.lanes)
                values = code.load(columns, [code.add(source, left)], self.lanes, mask)
                code.store(values, packed, [code.add(target, v)])


_SIZES = ("lower", "upper", "panels", "k", "m", "n", "row", "row_each", "out", "out_each")
_BUFFERS = ("rows", "columns", "output")


@dataclass(frozen=True)
class TallRoutine:
    """Strips of rows times all columns, which are packed.

    The last strip starts earlier if it would be incomplete, so some rows are computed twice, and a call needs two
    strips at least.
    """

    kind: MicroKernel
    """The tile: the rows of a strip, and the columns of a panel."""
    has_masks: bool
    """Whether masks cost nothing."""

    @property
    def name(self) -> str:
        """The shape of the tile, to be read by people, and a digest of everything."""
        digest = hashlib.sha256(repr(self).encode()).hexdigest()[:12]
        return f"tall.{self.kind.dtype}.{self.kind.height}x{self.width}.{digest}"

    @property
    def width(self) -> int:
        """Columns of a panel."""
        return self.kind.vectors * self.kind.lanes

    def signature(self) -> tuple[Sequence[str], Sequence[tuple[str, BufferType]]]:
        """The sizes and buffers in the order of a call."""
        buffers = [(name, BufferType([symbol(f"{name}_room")], self.kind.dtype)) for name in _BUFFERS]
        return [*_SIZES, *(f"{name}_room" for name in _BUFFERS)], buffers

    def write(self, code: Code, sizes: Sequence[SSAValue], buffers: Sequence[SSAValue]) -> None:
        """The code of the function, for the strips from `lower` to before `upper`."""
        size, height = dict(zip(self.signature()[0], sizes, strict=True)), self.kind.height
        body = _Body(self, code, size, dict(zip(_BUFFERS, buffers, strict=True)))
        with code.loop(size["upper"], "strip", lower=size["lower"]) as strip:
            top = code.minimum(code.mul(strip, height), code.sub(size["m"], height))
            with code.loop(size["panels"], "panel") as panel:
                body.panel(top, panel)


@dataclass(frozen=True)
class _Body:
    routine: TallRoutine
    code: Code
    size: dict[str, SSAValue]
    buffer: dict[str, SSAValue]

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

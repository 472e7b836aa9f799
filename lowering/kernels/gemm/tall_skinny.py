"""Tall-skinny GEMM: small N, with rows that come from memory.

All columns are packed first, so that rows are read only once. A strip of rows, while it is in L1, is multiplied with
all panels, and the next strip is prefetched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    TALL_COLUMNS_L2_PART,
    TALL_LOW_MR,
    TALL_M_PER_COLUMN,
    TALL_MAX_N,
    TALL_MIN_M,
    TALL_ROWS_L2_PART,
    TASK_COPIED_ELEMENTS,
)
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Routine, flat, shared_units
from lowering.kernels.emit.vectorization import masks_are_registers
from lowering.kernels.gemm.epilogue import OutputTile, can_store_tiles
from lowering.kernels.gemm.micro_kernel import Matrix, MicroKernel, TileOperands, emit_narrow_tiles, micro_kernel
from lowering.kernels.gemm.packing import can_copy_transposed
from lowering.kernels.gemm.problem import Gemm, cache_line_starts
from lowering.kernels.gemm.register_tile import main_columns, main_panels, narrow_step
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.blocks import FlattenOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class PackPanelsRoutine(Routine):
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
        return f"tall.{self.kind.dtype}.{self.kind.mr}x{self.width}"

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
        body, mr = _Body(self, code, size, buffer), self.kind.mr
        with code.loop(size["upper"], "strip", lower=size["lower"]) as strip:
            top = code.minimum(code.mul(strip, mr), code.sub(size["m"], mr))
            with code.loop(size["panels"], "panel") as panel:
                body.panel(top, panel)


@dataclass(frozen=True)
class _Body:
    routine: TallRoutine
    code: Code
    size: Mapping[str, SSAValue]
    buffer: Mapping[str, SSAValue]

    def panel(self, top: SSAValue, panel: SSAValue) -> None:
        """Emits some rows of a panel, in tiles that have its columns."""

        def emit(kind: MicroKernel, first_column: SSAValue) -> None:
            self.tile(kind, top, panel, first_column)

        code = self.code
        left = code.mul(panel, self.routine.width)
        emit_narrow_tiles(code, self.routine.kind, code.sub(self.size["n"], left), emit)

    def tile(self, kind: MicroKernel, top: SSAValue, panel: SSAValue, first: SSAValue) -> None:
        """Emits some rows of a panel from its column `first` on, to the output."""
        code, size, width = self.code, self.size, self.routine.width
        row = code.add(size["row"], code.mul(top, size["row_each"]))
        rows = Matrix(self.buffer["rows"], row, size["row_each"], 1, kind.lanes)
        left = code.add(code.mul(panel, width), first)
        position = code.add(code.mul(code.mul(panel, size["k"]), width), first)
        columns = Matrix(self.buffer["columns"], position, 1, width, kind.lanes)
        next_row = code.add(row, code.mul(size["row_each"], kind.mr))
        soon = replace(rows, first=next_row, step=kind.mr)
        tile_row = code.add(code.add(size["out"], code.mul(top, size["out_each"])), left)
        results = OutputTile(
            self.buffer["output"],
            tile_row,
            size["out_each"],
            None,
            code.sub(size["n"], left),
            masks_if_needed=not self.routine.has_masks,
            is_prefetched=False,
        )
        kind.emit(code, TileOperands(rows, columns, code.index(0), size["k"], results, soon=soon))


def is_tall(gemm: Gemm) -> bool | None:
    """Whether the second-level cache holds all columns, but not the rows; `None` if that depends on the call.

    All operands have to lie in memory.
    """
    contraction = gemm.contraction
    plain = all(
        isinstance(each.value.owner, LoadOp) and each.value.type == contraction.element
        for each in (contraction.rows, contraction.columns)
    )
    beside = gemm.is_contiguous(contraction.columns, contraction.column) or can_copy_transposed(gemm)
    if not plain or not beside or not gemm.is_contiguous(contraction.rows, contraction.reduced):
        return False
    if (
        contraction.batch
        or contraction.outer
        or contraction.columns.panels
        or gemm.is_swapped
        or not can_store_tiles(gemm)
    ):
        return False
    known = [(more - less).constant_value for less, more in _tests(gemm)]
    if any(each is not None and each < 0 for each in known):
        return False
    return None if None in known else True


def _tests(gemm: Gemm) -> Sequence[tuple[Dim, Dim]]:
    """All of these have to hold: the first is at most the second."""
    m, n, k, width = gemm.m, gemm.n, gemm.k, gemm.tiles.nr
    room = gemm.kernel.target.l2_bytes // byte_size(gemm.contraction.element)
    columns = ceildiv(n, constant(width)) * width * k
    rows, most = m.constant_value, TALL_MAX_N
    if rows is not None and len(cache_line_starts(gemm)) == 1 and gemm.tiles.mr <= TALL_LOW_MR:
        most = max(most, rows // TALL_M_PER_COLUMN)
    fit = (n, constant(most)), (columns, constant(room // TALL_COLUMNS_L2_PART))
    return *fit, (constant(TALL_MIN_M), m), (constant(room // TALL_ROWS_L2_PART), m * k)


def is_tall_here(gemm: Gemm) -> SSAValue:
    """The same in a call."""
    code = gemm.code
    return reduce(code.both, (code.compare("sle", code.dim(less), code.dim(more)) for less, more in _tests(gemm)))


def emit_tall(gemm: Gemm, layout: Sequence[SSAValue], buffers: Sequence[SSAValue], mr: int, threads: Dim) -> None:
    """Emits the GEMM by strips of so many rows.

    The layout is the first element of the rows, the columns and the output, each with the distance of two rows.
    """
    code, tiles = gemm.code, gemm.tiles
    (row, row_each, column, column_step, out, out_each), (rows, columns, output) = layout, buffers
    step = narrow_step(gemm)
    product_panels, strips = main_panels(gemm, step), ceildiv(gemm.m, constant(mr))
    room = product_panels * gemm.k * tiles.nr
    pieces = maximum(minimum(floordiv(room, constant(TASK_COPIED_ELEMENTS)), product_panels), constant(1))
    packed = code.value(FlattenOp(code.alloc([room], gemm.contraction.element, "packed_columns")))
    n = code.dim(main_columns(gemm, step))
    panels, k, m = (code.dim(size) for size in (product_panels, gemm.k, gemm.m))
    packing = PackPanelsRoutine(gemm.contraction.element, tiles.lanes, tiles.vectors)
    with shared_units(code, product_panels, minimum(threads, pieces), whole=True) as units:
        sizes = [*units, k, n, column, column_step]
        gemm.kernel.routines.call(code, packing, sizes, [columns, packed])
    routine, buffers = (
        TallRoutine(micro_kernel(gemm, mr), masks_are_registers(gemm.kernel)),
        [rows, packed, output],
    )
    tasks = minimum(threads, floordiv(strips, constant(2)))  # each has two strips, as the routine needs
    with shared_units(code, strips, tasks, whole=True) as units:
        sizes = [*units, panels, k, m, n, row, row_each, out, out_each]
        gemm.kernel.routines.call(code, routine, sizes, buffers)

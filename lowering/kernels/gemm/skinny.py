"""Skinny GEMM: small M or small N, with operands read in place.

A K block has some steps for all columns: memory is read row by row, and the accumulators go through L1. It is also best
for columns that stay in the second-level cache, where vectors are whole cache lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from typing_extensions import override
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    ONE_LINE_MAX_M,
    ONE_LINE_MAX_PANELS,
    SKINNY_BLOCK_ELEMENTS,
    SKINNY_BLOCK_ROWS,
    SKINNY_GROUPS,
    SKINNY_KC_PER_ROW,
    SKINNY_LONG_BLOCK_ELEMENTS,
    SKINNY_MAX_KC,
    SKINNY_MAX_KC_BY_M,
    SKINNY_MAX_M,
    SKINNY_MAX_N,
    SKINNY_MIN_KC,
    SKINNY_NEAR_L2_PART,
    SKINNY_OUTPUT_L2_PART,
    SKINNY_PANELS_PER_THREAD,
    SKINNY_SHORT_BLOCK_GROUPS,
    SKINNY_TALL_GROUPS,
    TASK_MACS,
)
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Routine, flat, shared_units
from lowering.kernels.gemm.epilogue import EpilogueEmitter, OutputTile, can_store_tiles
from lowering.kernels.gemm.micro_kernel import (
    Computed,
    Matrix,
    MicroKernel,
    Prefetch,
    TileOperands,
    emit_narrow_tiles,
    has_narrow_panel,
    lies_evenly,
    masks_of,
    micro_kernel,
    operand,
)
from lowering.kernels.gemm.packing import can_copy_transposed, copy_transposed
from lowering.kernels.gemm.problem import Coords, Gemm, cache_line_ends, cache_line_starts
from lowering.kernels.gemm.register_tile import main_columns, main_panels, narrow_step, store_rows
from lowering.kernels.gemm.tall_skinny import emit_tall, is_tall, is_tall_here
from lowering.kernels.structure.contraction import is_chain
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.types import BufferType


def row_groups(gemm: Gemm) -> tuple[int, ...]:
    """The numbers of rows of groups, which share a vector of columns once it is loaded, in falling order."""
    vectors, registers = gemm.tiles.vectors, gemm.kernel.target.vector_registers
    tall = next((mr for mr in SKINNY_TALL_GROUPS if (mr + 1) * vectors < registers), SKINNY_GROUPS[0])
    return tall, *(mr for mr in SKINNY_GROUPS if mr < tall)


def max_block_rows(gemm: Gemm, group: int) -> Dim:
    """Most rows of a block."""
    room = gemm.kernel.target.l2_bytes // SKINNY_OUTPUT_L2_PART // byte_size(gemm.contraction.element)
    return max_rows_in(room, gemm.n, group)


def max_rows_in(room: int, n: Dim, group: int) -> Dim:
    """Most rows of a block whose output has room for so many elements, and `n` columns."""
    rows = minimum(floordiv(constant(room), maximum(n, constant(1))), constant(SKINNY_BLOCK_ROWS))
    return maximum(rows, constant(SKINNY_SHORT_BLOCK_GROUPS * group))


def block_rows(m: Dim, threads: Dim, panels: Dim, group: int, most: Dim) -> Dim:
    """Rows of a block of a panel: whole groups, about as many in all blocks, and blocks for all threads."""
    one = constant(1)
    several = minimum(threads, ceildiv(SKINNY_PANELS_PER_THREAD * threads, maximum(panels, one)))
    blocks = maximum(maximum(ceildiv(m, most), several), one)
    return group * maximum(ceildiv(ceildiv(m, blocks), constant(group)), one)


Bounds = tuple[SSAValue, SSAValue]
"""The numbers from the first value to before the second."""

_UNITS = ("lower", "upper", "panels", "height")
_SUMS = ("k_blocks", "depth", "k", "m", "n")
_OPERANDS = ("row", "row_each", "column", "column_step", "out", "out_each")
_BUFFERS = ("rows", "columns", "output")


@dataclass(frozen=True)
class SkinnyRoutine(Routine):
    """A skinny GEMM whose operands and results are in memory: one function for all sizes and kernels."""

    kind: MicroKernel
    """The tiles; each number of rows is that of some. One row does little but read, which is as fast without
    prefetches."""
    mr_sizes: tuple[int, ...]
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
    routine: SkinnyRoutine
    code: Code
    size: Mapping[str, SSAValue]
    buffer: Mapping[str, SSAValue]

    def emit(self) -> None:
        """Emits the units of a task K block by K block; a unit is a panel for a block of rows."""
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
        """Emits some rows of a panel, in tiles that have its columns."""

        def emit(kind: MicroKernel, first: SSAValue) -> None:
            self._groups(kind, k_block, steps, code.add(left, first), rows)

        code, kind = self.code, self.routine.kind
        if self.routine.has_narrow_panels:
            emit_narrow_tiles(code, kind, code.sub(self.size["n"], left), emit)
        else:
            emit(kind, code.index(0))

    def _groups(self, kind: MicroKernel, k_block: SSAValue, steps: Bounds, left: SSAValue, rows: Bounds) -> None:
        code, (top, end) = self.code, rows
        for mr in self.routine.mr_sizes:
            groups = code.divide(code.sub(end, top), mr)
            with code.loop(groups, "group") as group:
                self._group(replace(kind, mr=mr), k_block, steps, left, code.add(top, code.mul(group, mr)))
            top = code.add(top, code.mul(groups, mr))

    def _group(self, kind: MicroKernel, k_block: SSAValue, steps: Bounds, left: SSAValue, top: SSAValue) -> None:
        """Emits the rows of a tile; partial sums of earlier K blocks are added."""
        code, size, buffer = self.code, self.size, self.buffer
        kind = replace(kind, unroll=1)
        if kind.mr == 1:
            kind = replace(kind, prefetches=())
        row = code.add(size["row"], code.mul(top, size["row_each"]))
        step = size["row_step"] if self.routine.row_step is None else self.routine.row_step
        rows = Matrix(buffer["rows"], row, size["row_each"], step, kind.lanes)
        columns = Matrix(buffer["columns"], code.add(size["column"], left), 1, size["column_step"], kind.lanes)
        tile_row = code.add(code.add(size["out"], code.mul(top, size["out_each"])), left)
        results = OutputTile(buffer["output"], tile_row, size["out_each"], k_block, is_prefetched=False)
        kind.emit(code, TileOperands(rows, columns, *steps, results, code.sub(size["n"], left)))


def can_be_skinny(gemm: Gemm) -> bool:
    """Whether columns are contiguous in memory, or may be copied, and M or N may be small."""
    columns = gemm.contraction.columns
    beside = gemm.is_contiguous(columns, gemm.contraction.column) and columns.panels is None
    return (beside or can_copy_transposed(gemm)) and is_skinny(gemm) is not False


def is_skinny(gemm: Gemm) -> bool | None:
    """Whether M or N is small; `None` if that depends on the call.

    Where only M is known, N may be large, and is expected to be.
    """
    rows, columns = gemm.m.constant_value, gemm.n.constant_value
    if columns is not None and (columns <= max_skinny_n(gemm) or is_tall(gemm)):
        return True
    if fits_l2(gemm):
        return True
    return None if rows is None else rows <= max_skinny_m(gemm)


def fits_l2(gemm: Gemm) -> bool | None:
    """Whether all columns fit the second-level cache, and are read there in place; `None` if that depends on the call.

    Both operands have to lie in memory, and there is no epilogue.
    """
    contraction = gemm.contraction
    evenly = all(
        lies_evenly(gemm, *each)
        for each in ((contraction.rows, contraction.row), (contraction.columns, contraction.column))
    )
    beside = any(gemm.is_contiguous(contraction.rows, axes) for axes in (contraction.reduced, contraction.row))
    if not evenly or not beside or not can_store_tiles(gemm) or contraction.outer or len(cache_line_starts(gemm)) == 1:
        return False
    spare = (_near_room(gemm) - gemm.k * gemm.n).constant_value
    return None if spare is None else spare >= 0


def _near_room(gemm: Gemm) -> Dim:
    """How many elements of columns may be there."""
    return constant(gemm.kernel.target.l2_bytes // SKINNY_NEAR_L2_PART // byte_size(gemm.contraction.element))


def max_skinny_m(gemm: Gemm) -> int:
    """The largest M that is small; none if columns would be copied for them."""
    if can_copy_transposed(gemm):
        return 0
    if rows := gemm.kernel.target.schedule.unpacked_rows:
        return rows
    return SKINNY_MAX_M if len(cache_line_starts(gemm)) > 1 else ONE_LINE_MAX_M


def max_skinny_n(gemm: Gemm) -> int:
    """The largest N that is small."""
    return SKINNY_MAX_N if len(cache_line_starts(gemm)) > 1 else ONE_LINE_MAX_PANELS * gemm.tiles.nr


def has_partial_sums(gemm: Gemm) -> bool:
    """Whether the reduction may be split into several blocks."""
    return gemm.k.constant_value is None or gemm.k.constant_value > SKINNY_MIN_KC


_Called: TypeAlias = tuple[SkinnyRoutine, Sequence[SSAValue], Sequence[SSAValue]]
"""A routine, the layout of its operands, and the buffers."""


class SkinnyGemm:
    """Emits a skinny GEMM, for one batch."""

    def __init__(self, gemm: Gemm):
        self.gemm = gemm
        self.code = gemm.code
        self.tiles = gemm.tiles
        steps = minimum(maximum(SKINNY_KC_PER_ROW * gemm.m, constant(SKINNY_MIN_KC)), constant(SKINNY_MAX_KC_BY_M))
        elements = SKINNY_LONG_BLOCK_ELEMENTS if len(cache_line_starts(gemm)) > 1 else SKINNY_BLOCK_ELEMENTS
        depth = maximum(floordiv(constant(elements), maximum(gemm.n, constant(1))), steps)
        longest = gemm.contraction.longest
        depth = minimum(depth, constant(SKINNY_MAX_KC))
        self.depth = depth if longest is None else minimum(depth, constant(longest))
        self.k_blocks = maximum(ceildiv(gemm.k, self.depth), constant(1))
        self.groups = row_groups(gemm)

    @property
    def is_best(self) -> SSAValue | None:
        """Whether M or N is small; `None` if that is known."""
        code, gemm = self.code, self.gemm
        if is_skinny(gemm) is not None:
            return None
        best = code.compare("sle", code.dim(gemm.m, "m"), max_skinny_m(gemm))
        if gemm.n.constant_value is None:
            best = code.either(best, code.compare("sle", code.dim(gemm.n, "n"), max_skinny_n(gemm)))
        if fits_l2(gemm) is None:
            room = code.dim(_near_room(gemm))
            best = code.either(best, code.compare("sle", code.dim(gemm.k * gemm.n), room))
        return best if is_tall(gemm) is False else code.either(best, is_tall_here(gemm))

    def emit(self, coords: Coords) -> None:
        """The GEMM of one batch."""
        code, routine, tall = self.code, self._routine(coords), is_tall(self.gemm)
        if routine is None or tall is False:
            self._emit(coords, routine)
        elif tall:
            self._emit_tall(routine)
        else:
            with code.when(is_tall_here(self.gemm)) as branch:
                self._emit_tall(routine)
            with code.otherwise(branch):
                self._emit(coords, routine)

    def _emit_tall(self, routine: _Called) -> None:
        _, layout, buffers = routine
        emit_tall(self.gemm, layout[:6], buffers, self.groups[0], self.gemm.threads(TASK_MACS))

    def _emit(self, coords: Coords, routine: _Called | None) -> None:
        code, gemm = self.code, self.gemm
        panels = main_panels(gemm, narrow_step(gemm))
        threads = gemm.threads(TASK_MACS)
        rows = block_rows(gemm.m, threads, panels, self.groups[0], max_block_rows(gemm, self.groups[0]))
        blocks = maximum(ceildiv(gemm.m, rows), constant(1))
        tasks = minimum(blocks * panels, threads)
        with shared_units(code, blocks * panels, tasks, whole=True) as units:
            if routine is None:
                self._units(coords, units, panels, rows)
            else:
                kind, layout, buffers = routine
                sizes = (panels, rows, self.k_blocks, self.depth, gemm.k, gemm.m, self._columns)
                values = [*units, *map(code.dim, sizes), *layout]
                gemm.kernel.routines.call(code, kind, values, buffers)

    def _routine(self, coords: Coords) -> _Called | None:
        """The routine where nothing is computed but the GEMM, with the layout of its operands and the buffers."""
        code, gemm, contraction = self.code, self.gemm, self.gemm.contraction
        accumulators = gemm.kernel.flat.get(contraction.store.buffer)
        evenly = all(
            is_chain([contraction.output], contraction.stage.extents, axes)
            for axes in (contraction.row, contraction.column)
        )
        if gemm.epilogue.steps or contraction.is_integer or contraction.outer or accumulators is None or not evenly:
            return None
        zero = code.index(0)
        rows = operand(gemm, contraction.rows, {**coords, contraction.row: zero}, contraction.row)
        columns = operand(gemm, contraction.columns, {**coords, contraction.column: zero}, contraction.column)
        strides = [
            contraction.output.strides[axes[-1]] if axes else constant(1)
            for axes in (contraction.row, contraction.column)
        ]
        if not isinstance(rows, Matrix) or not isinstance(columns, Matrix) or strides[1].constant_value != 1:
            return None
        if can_copy_transposed(gemm):
            columns = copy_transposed(gemm, columns, gemm.threads(TASK_MACS))
        out = gemm.offset(contraction.output, {**coords, contraction.row: zero, contraction.column: zero})
        layout = [rows.first, rows.each, columns.first, columns.step, out, code.dim(strides[0])]
        is_known = isinstance(rows.step, int) and not gemm.is_swapped  # whose rows may be strided, too
        step = rows.step if isinstance(rows.step, int) and is_known else None
        layout += [rows.step] * (step is None)
        values = [code.index(each) if isinstance(each, int) else each for each in layout]
        routine = SkinnyRoutine(self._kind, tuple(self._mr_sizes()), step, has_narrow_panel(gemm))
        return routine, values, [rows.buffer, columns.buffer, accumulators]

    @property
    def _columns(self) -> Dim:
        """N without the columns that are multiplied separately."""
        return main_columns(self.gemm, narrow_step(self.gemm))

    @property
    def _kind(self) -> MicroKernel:
        """The tile of one row."""
        gemm, ends = self.gemm, cache_line_ends(self.gemm)
        prefetches = tuple(Prefetch(0, self.tiles.nr + end, 1) for end in ends)  # a step of the next columns
        return replace(micro_kernel(gemm, 1), unroll=self.tiles.steps, masks=masks_of(gemm), prefetches=prefetches)

    def _units(self, coords: Coords, units: tuple[SSAValue, SSAValue], panels: Dim, rows: Dim) -> None:
        """Emits the units of a task K block by K block; a unit is a panel for a block of so many rows."""
        code, gemm, (lower, upper) = self.code, self.gemm, units
        with code.loop(code.dim(self.k_blocks), "k_block") as k_block:
            start = code.mul(k_block, code.dim(self.depth))
            end = code.minimum(code.add(start, code.dim(self.depth)), code.dim(gemm.k, "k"))
            epilogue = self._epilogue(k_block)
            with code.loop(upper, "unit", lower=lower) as unit:
                block, panel = code.divide(unit, code.dim(panels)), code.remainder(unit, code.dim(panels))
                here, left = gemm.panel_position(coords, panel)
                top = code.mul(block, code.dim(rows))
                bottom = code.minimum(code.add(top, code.dim(rows)), code.dim(gemm.m))
                self._panel(epilogue, here, left, (start, end), (top, bottom))

    def _panel(
        self,
        epilogue: EpilogueEmitter,
        coords: Coords,
        left: SSAValue,
        bounds: tuple[SSAValue, SSAValue],
        rows: tuple[SSAValue, SSAValue],
    ) -> None:
        """Emits the rows of a block, in tiles that have the columns of a panel."""
        code, gemm = self.code, self.gemm

        def emit(kind: MicroKernel, first: SSAValue) -> None:
            tiles = replace(gemm.tiles, vectors=kind.vectors, lanes=kind.lanes)
            narrow = EpilogueEmitter(replace(gemm, tiles=tiles), epilogue.first, epilogue.last)
            self._groups(kind, narrow, coords, code.add(left, first), bounds, rows)

        if has_narrow_panel(gemm):
            emit_narrow_tiles(code, self._kind, code.sub(code.dim(self._columns), left), emit)
        else:
            emit(self._kind, code.index(0))

    def _epilogue(self, k_block: SSAValue) -> EpilogueEmitter:
        code = self.code
        if not has_partial_sums(self.gemm):
            return EpilogueEmitter(self.gemm, None, None)
        last = code.compare("eq", k_block, code.sub(code.dim(self.k_blocks), 1))
        return EpilogueEmitter(self.gemm, code.compare("eq", k_block, 0), last)

    def _groups(
        self,
        kind: MicroKernel,
        epilogue: EpilogueEmitter,
        coords: Coords,
        left: SSAValue,
        bounds: tuple[SSAValue, SSAValue],
        rows: tuple[SSAValue, SSAValue],
    ) -> None:
        """Emits the rows of a block, in groups that share the columns once they are loaded."""
        code = self.code
        top, end = rows
        for mr in self._mr_sizes():
            after = code.add(top, code.mul(code.divide(code.sub(end, top), mr), mr))
            self._group(replace(kind, mr=mr), epilogue, coords, left, bounds, top, after)
            top = after

    def _mr_sizes(self) -> Sequence[int]:
        """The numbers of rows of groups that occur: where M is known, few do."""
        known, found = self.gemm.m.constant_value, list[int]()
        if known is None:
            return self.groups
        for mr in self.groups:
            if known >= mr:
                found.append(mr)
                known %= mr
        return found

    def _group(
        self,
        kind: MicroKernel,
        epilogue: EpilogueEmitter,
        coords: Coords,
        left: SSAValue,
        bounds: tuple[SSAValue, SSAValue],
        first: SSAValue,
        end: SSAValue,
    ) -> None:
        code, gemm, contraction, mr = self.code, epilogue.gemm, self.gemm.contraction, kind.mr
        tile = code.alloc([mr, gemm.tiles.nr], contraction.element, "tile")
        columns = Computed(gemm, contraction.columns, {**coords, contraction.column: left}, contraction.column)
        if mr == 1:  # one row does little but read, which is as fast without
            kind = replace(kind, prefetches=())
        count = code.sub(code.dim(self._columns), left)
        with code.loop(code.divide(code.sub(end, first), mr), "group") as group:
            top = code.add(first, code.mul(group, mr))
            rows = Computed(gemm, contraction.rows, {**coords, contraction.row: top}, contraction.row)
            kind.emit(code, TileOperands(rows, columns, *bounds, tile, count))
            store_rows(gemm, epilogue, tile, coords, (top, code.index(mr)), left)

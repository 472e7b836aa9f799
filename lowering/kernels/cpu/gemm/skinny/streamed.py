"""Products with few rows or few columns, whose operands are read in place.

A block takes some steps of the reduction for all columns: memory is read row by row, and the accumulators go through
L1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.blocked_accumulation import MOST
from lowering.kernels.cpu.emit.kernel import shared_units
from lowering.kernels.cpu.gemm.cache_lines import line_ends, line_starts
from lowering.kernels.cpu.gemm.finish import Finish
from lowering.kernels.cpu.gemm.last_columns import main_columns, narrow_step
from lowering.kernels.cpu.gemm.last_columns import panels as panels_of
from lowering.kernels.cpu.gemm.micro_kernel import MicroKernel, Prefetch, TileOperands, masks_of, micro_kernel
from lowering.kernels.cpu.gemm.operands import Computed, Matrix, lies_evenly, operand
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.gemm.results import can_store_tiles
from lowering.kernels.cpu.gemm.skinny.copied_columns import can_copy_columns, copied_columns
from lowering.kernels.cpu.gemm.skinny.narrow import has_narrow_panels, in_narrow_tiles
from lowering.kernels.cpu.gemm.skinny.routine import StreamedRoutine
from lowering.kernels.cpu.gemm.skinny.row_groups import block_rows, groups, most_rows
from lowering.kernels.cpu.gemm.skinny.tall import emit_tall, is_tall, is_tall_here
from lowering.kernels.cpu.gemm.tile import store_rows
from lowering.kernels.cpu.structure.contraction import is_chain
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size

MAX_ROWS, MAX_COLUMNS = 16, 64
"""With more rows the packed columns are used often enough, with more columns the packed rows are."""
MAX_LOW_ROWS, MAX_PANELS = 4, 2
"""The same where a row of a panel is one line of the cache, far from the next, so that it pays sooner to pack it."""
DEPTH = 32
"""Least steps in a block of the reduction: as many lines of memory are read side by side."""
STEPS_PER_ROW, MOST_STEPS = 8, 96
"""With more rows blocks are longer, up to so many steps: fewer sums go to memory and back."""
K_BLOCK, LONG_K_BLOCK = 1 << 13, 1 << 15
"""Elements of few columns in a block: they stay in the first-level cache, while the rows of a block use them. More
where vectors are whole lines, of which fewer come from afar."""
MOST_DEPTH = 2 * MOST
"""Steps in a block of the reduction: sums of more would be rounded too often."""
NEAR_PART = 4
"""Columns that take such a part of the second-level cache, in vectors of whole lines, are read there for each block of
rows as fast as they are packed for all."""
PRODUCTS_PER_TASK = 1 << 17
"""Half a megabyte of columns: about what a core reads while another is woken."""


def can_stream(product: Product) -> bool:
    """Whether columns lie side by side in memory, or may be copied, and there may be few rows or columns."""
    columns = product.what.columns
    beside = product.is_contiguous(columns, product.what.column) and columns.panels is None
    return (beside or can_copy_columns(product)) and is_small(product) is not False


def is_small(product: Product) -> bool | None:
    """Whether there are few rows or columns; `None` if that depends on the call.

    Where only the number of rows is known there may be many columns, which are then expected.
    """
    rows, columns = product.m.constant_value, product.n.constant_value
    if columns is not None and (columns <= max_columns(product) or is_tall(product)):
        return True
    if are_near(product):
        return True
    return None if rows is None else rows <= max_rows(product)


def are_near(product: Product) -> bool | None:
    """Whether the second-level cache has room for all columns beside rows, which both are read in place as they lie in
    memory, and nothing follows; `None` if that depends on the call.
    """
    what = product.what
    evenly = all(lies_evenly(product, *each) for each in ((what.rows, what.row), (what.columns, what.column)))
    beside = any(product.is_contiguous(what.rows, axes) for axes in (what.reduced, what.row))
    if not evenly or not beside or not can_store_tiles(product) or what.outer or len(line_starts(product)) == 1:
        return False
    spare = (_near_room(product) - product.k * product.n).constant_value
    return None if spare is None else spare >= 0


def _near_room(product: Product) -> Dim:
    """How many elements may be near."""
    return constant(product.kernel.target.l2_bytes // NEAR_PART // byte_size(product.what.element))


def max_rows(product: Product) -> int:
    """The most rows that are few; none if columns would be copied for them."""
    if can_copy_columns(product):
        return 0
    if rows := product.kernel.target.schedule.unpacked_rows:
        return rows
    return MAX_ROWS if len(line_starts(product)) > 1 else MAX_LOW_ROWS


def max_columns(product: Product) -> int:
    """The most columns that are few."""
    return MAX_COLUMNS if len(line_starts(product)) > 1 else MAX_PANELS * product.tiles.width


def partial_sums(product: Product) -> bool:
    """Whether the reduction may be split into several blocks."""
    return product.k.constant_value is None or product.k.constant_value > DEPTH


_Called: TypeAlias = tuple[StreamedRoutine, Sequence[SSAValue], Sequence[SSAValue]]
"""A routine, the layout of its operands, and the buffers."""


class StreamedProduct:
    """Emits the code of one contraction for one batch."""

    def __init__(self, product: Product):
        self.product = product
        self.code = product.code
        self.tiles = product.tiles
        steps = minimum(maximum(STEPS_PER_ROW * product.m, constant(DEPTH)), constant(MOST_STEPS))
        elements = LONG_K_BLOCK if len(line_starts(product)) > 1 else K_BLOCK
        depth = maximum(floordiv(constant(elements), maximum(product.n, constant(1))), steps)
        longest = product.what.longest
        depth = minimum(depth, constant(MOST_DEPTH))
        self.depth = depth if longest is None else minimum(depth, constant(longest))
        self.k_blocks = maximum(ceildiv(product.k, self.depth), constant(1))
        self.groups = groups(product)

    @property
    def is_best(self) -> SSAValue | None:
        """Whether there are few rows or columns; `None` if that is known."""
        code, product = self.code, self.product
        if is_small(product) is not None:
            return None
        best = code.compare("sle", code.dim(product.m, "m"), max_rows(product))
        if product.n.constant_value is None:
            best = code.either(best, code.compare("sle", code.dim(product.n, "n"), max_columns(product)))
        if are_near(product) is None:
            room = code.dim(_near_room(product))
            best = code.either(best, code.compare("sle", code.dim(product.k * product.n), room))
        return best if is_tall(product) is False else code.either(best, is_tall_here(product))

    def emit(self, coords: Coords) -> None:
        """The product of one batch."""
        code, routine, tall = self.code, self._routine(coords), is_tall(self.product)
        if routine is None or tall is False:
            self._emit(coords, routine)
        elif tall:
            self._emit_tall(routine)
        else:
            with code.when(is_tall_here(self.product)) as branch:
                self._emit_tall(routine)
            with code.otherwise(branch):
                self._emit(coords, routine)

    def _emit_tall(self, routine: _Called) -> None:
        _, layout, buffers = routine
        emit_tall(self.product, layout[:6], buffers, self.groups[0], self.product.threads(PRODUCTS_PER_TASK))

    def _emit(self, coords: Coords, routine: _Called | None) -> None:
        code, product = self.code, self.product
        panels = panels_of(product, narrow_step(product))
        threads = product.threads(PRODUCTS_PER_TASK)
        rows = block_rows(product.m, threads, panels, self.groups[0], most_rows(product, self.groups[0]))
        blocks = maximum(ceildiv(product.m, rows), constant(1))
        tasks = minimum(blocks * panels, threads)
        with shared_units(code, blocks * panels, tasks, whole=True) as units:
            if routine is None:
                self._units(coords, units, panels, rows)
            else:
                kind, layout, buffers = routine
                sizes = (panels, rows, self.k_blocks, self.depth, product.k, product.m, self._columns)
                values = [*units, *map(code.dim, sizes), *layout]
                product.kernel.routines.call(code, kind, values, buffers)

    def _routine(self, coords: Coords) -> _Called | None:
        """The code as a routine where nothing is computed but the product: it, the operands' layout and the buffers."""
        code, product, what = self.code, self.product, self.product.what
        sums = product.kernel.flat.get(what.store.buffer)
        evenly = all(is_chain([what.output], what.stage.extents, axes) for axes in (what.row, what.column))
        if product.epilogue.steps or what.is_integer or what.outer or sums is None or not evenly:
            return None
        zero = code.index(0)
        rows = operand(product, what.rows, {**coords, what.row: zero}, what.row)
        columns = operand(product, what.columns, {**coords, what.column: zero}, what.column)
        strides = [what.output.strides[axes[-1]] if axes else constant(1) for axes in (what.row, what.column)]
        if not isinstance(rows, Matrix) or not isinstance(columns, Matrix) or strides[1].constant_value != 1:
            return None
        if can_copy_columns(product):
            columns = copied_columns(product, columns, product.threads(PRODUCTS_PER_TASK))
        out = product.offset(what.output, {**coords, what.row: zero, what.column: zero})
        layout = [rows.first, rows.each, columns.first, columns.step, out, code.dim(strides[0])]
        is_known = isinstance(rows.step, int) and not product.is_exchanged  # whose kernels stream strided rows, too
        step = rows.step if isinstance(rows.step, int) and is_known else None
        layout += [rows.step] * (step is None)
        values = [code.index(each) if isinstance(each, int) else each for each in layout]
        routine = StreamedRoutine(self._kind, tuple(self._heights()), step, has_narrow_panels(product))
        return routine, values, [rows.buffer, columns.buffer, sums]

    @property
    def _columns(self) -> Dim:
        """How many columns there are without very few that are multiplied separately."""
        return main_columns(self.product, narrow_step(self.product))

    @property
    def _kind(self) -> MicroKernel:
        """The tile of one row."""
        product, ends = self.product, line_ends(self.product)
        prefetches = tuple(Prefetch(0, self.tiles.width + end, 1) for end in ends)  # a step of the next columns
        return replace(
            micro_kernel(product, 1), unroll=self.tiles.steps, masks=masks_of(product), prefetches=prefetches
        )

    def _units(self, coords: Coords, units: tuple[SSAValue, SSAValue], panels: Dim, rows: Dim) -> None:
        """By blocks of the reduction, the units of a task: each a panel for a block of so many rows."""
        code, product, (lower, upper) = self.code, self.product, units
        with code.loop(code.dim(self.k_blocks), "k_block") as k_block:
            start = code.mul(k_block, code.dim(self.depth))
            end = code.minimum(code.add(start, code.dim(self.depth)), code.dim(product.k, "k"))
            finish = self._finish(k_block)
            with code.loop(upper, "unit", lower=lower) as unit:
                block, panel = code.divide(unit, code.dim(panels)), code.remainder(unit, code.dim(panels))
                here, left = product.panel_position(coords, panel)
                top = code.mul(block, code.dim(rows))
                bottom = code.minimum(code.add(top, code.dim(rows)), code.dim(product.m))
                self._panel(finish, here, left, (start, end), (top, bottom))

    def _panel(
        self,
        finish: Finish,
        coords: Coords,
        left: SSAValue,
        bounds: tuple[SSAValue, SSAValue],
        rows: tuple[SSAValue, SSAValue],
    ) -> None:
        """The rows of a block, in tiles that have the columns of a panel."""
        code, product = self.code, self.product

        def emit(kind: MicroKernel, first: SSAValue) -> None:
            tiles = replace(product.tiles, vectors=kind.vectors, lanes=kind.lanes)
            narrow = Finish(replace(product, tiles=tiles), finish.first, finish.last)
            self._groups(kind, narrow, coords, code.add(left, first), bounds, rows)

        if has_narrow_panels(product):
            in_narrow_tiles(code, self._kind, code.sub(code.dim(self._columns), left), emit)
        else:
            emit(self._kind, code.index(0))

    def _finish(self, k_block: SSAValue) -> Finish:
        code = self.code
        if not partial_sums(self.product):
            return Finish(self.product, None, None)
        last = code.compare("eq", k_block, code.sub(code.dim(self.k_blocks), 1))
        return Finish(self.product, code.compare("eq", k_block, 0), last)

    def _groups(
        self,
        kind: MicroKernel,
        finish: Finish,
        coords: Coords,
        left: SSAValue,
        bounds: tuple[SSAValue, SSAValue],
        rows: tuple[SSAValue, SSAValue],
    ) -> None:
        """The rows of a block, in groups that share the columns once they are loaded."""
        code = self.code
        top, end = rows
        for height in self._heights():
            after = code.add(top, code.mul(code.divide(code.sub(end, top), height), height))
            self._group(replace(kind, height=height), finish, coords, left, bounds, top, after)
            top = after

    def _heights(self) -> Sequence[int]:
        """The groups that occur: where the number of rows is known, few do."""
        known, found = self.product.m.constant_value, list[int]()
        if known is None:
            return self.groups
        for height in self.groups:
            if known >= height:
                found.append(height)
                known %= height
        return found

    def _group(
        self,
        kind: MicroKernel,
        finish: Finish,
        coords: Coords,
        left: SSAValue,
        bounds: tuple[SSAValue, SSAValue],
        first: SSAValue,
        end: SSAValue,
    ) -> None:
        code, product, what, height = self.code, finish.product, self.product.what, kind.height
        tile = code.alloc([height, product.tiles.width], what.element, "tile")
        columns = Computed(product, what.columns, {**coords, what.column: left}, what.column)
        if height == 1:  # one row does little but read, which is as fast without
            kind = replace(kind, prefetches=())
        count = code.sub(code.dim(self._columns), left)
        with code.loop(code.divide(code.sub(end, first), height), "group") as group:
            top = code.add(first, code.mul(group, height))
            rows = Computed(product, what.rows, {**coords, what.row: top}, what.row)
            kind.emit(code, TileOperands(rows, columns, *bounds, tile, count))
            store_rows(product, finish, tile, coords, (top, code.index(height)), left)

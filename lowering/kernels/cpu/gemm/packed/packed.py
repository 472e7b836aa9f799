"""Products from packed panels, with a register tile of the output (Goto and van de Geijn, 2008).

Each task has a part of the rows and of the columns. For each block of the reduction and each section of its columns, a
task packs a block of rows into L2; then it takes panels of columns and runs the micro-kernel down the rows. The first
tile of a panel packs it, and what is used next is prefetched meanwhile. All sizes are symbolic, so one artefact serves
all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from lowering.kernels.cpu.gemm.cache_lines import line_starts
from lowering.kernels.cpu.gemm.finish import Finish
from lowering.kernels.cpu.gemm.last_columns import panels as panels_of
from lowering.kernels.cpu.gemm.operands import Matrix, Operand
from lowering.kernels.cpu.gemm.packed.columns import PackedColumns, PackedPanel, Part
from lowering.kernels.cpu.gemm.packed.given_panels import GivenPanel
from lowering.kernels.cpu.gemm.packed.row_panels import RowPanels
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.gemm.results import can_store_tiles, results
from lowering.kernels.cpu.gemm.shares import MOST, shares, threads_for
from lowering.kernels.cpu.gemm.tile import Corner, store_tile
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.loops import LoopKind

PACKED_BYTES = 1 << 24
"""Most memory for the packed columns of all tasks; less where half of the last cache is less. More would not be kept
for the next call, in which the system would fill every page with zeros first."""

Range = tuple[SSAValue, SSAValue]
"""The numbers from the first value to before the second."""


class PackedProduct:
    """Emits the code of one contraction for one batch."""

    def __init__(self, product: Product):
        self.product = product
        self.code = product.code
        self.tiles = tiles = product.tiles
        self.m, self.n, self.k = product.m, product.n, product.k
        self.given = product.what.columns.panels is not None
        self.k_blocks = maximum(ceildiv(self.k, constant(tiles.depth)), constant(1))
        # All blocks of the reduction are about as long, and start at whole vectors. Blocks of rows are about as large,
        # and so are sections.
        self.step = tiles.lanes * ceildiv(ceildiv(self.k, self.k_blocks), constant(tiles.lanes))
        self.room = tiles.depth * tiles.height // tiles.rows
        self.all_strips = ceildiv(self.m, constant(tiles.rows))
        self.all_panels = panels_of(product, tiles.width)
        square = -(-tiles.width // tiles.rows) if len(line_starts(product)) == 1 else 0
        units = self.all_strips, self.all_panels
        self.rows, self.columns = shares(threads_for(product), *units, self.given, square)
        self.tasks = self.rows * self.columns
        self.blocks, self.strips = self._split(ceildiv(self.all_strips, self.rows), constant(self.room))
        self.sections, self.panels = constant(1), ceildiv(self.all_panels, self.columns)
        if not self.given:
            room = min(PACKED_BYTES, product.kernel.target.l3_bytes // 2)
            step_bytes = tiles.width * byte_size(product.what.element)
            self.sections, self.panels = self._split(self.panels, floordiv(constant(room // step_bytes), self.tasks))

    def _split(self, count: Dim, room: Dim) -> tuple[Dim, Dim]:
        """In how many parts so many strips or panels are packed, and the size of a part; `room` steps have room."""
        fitting = maximum(floordiv(room, maximum(self.step, constant(1))), constant(1))
        parts = maximum(ceildiv(count, fitting), constant(1))
        return parts, ceildiv(count, parts)

    @property
    def needs_partial_sums(self) -> bool:
        """Whether the reduction may be split into several blocks."""
        return self.k_blocks.constant_value != 1

    def emit(self, coords: Coords) -> None:
        """The product of one batch."""
        code = self.code
        known = (self.strips * self.step).constant_value
        rows = RowPanels(self.product, self.room if known is None else known, self.step, self.tasks)
        columns = None if self.given else PackedColumns(self.product, self.tasks * self._kept, self.step)
        kind = LoopKind.SERIAL if self.tasks.constant_value == 1 else LoopKind.PARALLEL
        with code.loop(code.dim(self.tasks), "task", kind=kind) as task:
            rows.take(task)
            row, column = code.divide(task, code.dim(self.columns)), code.remainder(task, code.dim(self.columns))
            strips = self._share(row, self.rows, self.all_strips)
            panels = self._share(column, self.columns, self.all_panels)
            self._task(rows, columns, coords, (task, strips, panels))

    @property
    def _kept(self) -> Dim:
        """How many panels a task keeps: one block of rows needs none again, so that all are in the same memory.

        There is room for a second one, or prefetchers would read on into what another thread writes.
        """
        return maximum(minimum(self.panels, MOST * (self.blocks - 1)), constant(2))

    def _share(self, number: SSAValue, count: Dim, units: Dim) -> Range:
        """The strips or panels of one of so many parts."""
        code, there_are, all_units = self.code, self.code.dim(count), self.code.dim(units)
        if count.constant_value == 1:
            return code.index(0), all_units
        first, end = (code.divide(code.mul(each, all_units), there_are) for each in (number, code.add(number, 1)))
        return first, end

    def _task(
        self, rows: RowPanels, columns: PackedColumns | None, coords: Coords, share: tuple[SSAValue, Range, Range]
    ) -> None:
        """The product of some rows with some columns."""
        code, tiles = self.code, self.tiles
        task, strips, (first, end) = share
        k, m = code.dim(self.k, "k"), code.dim(self.m, "m")
        height = code.dim(self.strips * tiles.rows)
        top, bottom = code.mul(strips[0], tiles.rows), code.minimum(code.mul(strips[1], tiles.rows), m)
        with (
            code.loop(code.dim(self.k_blocks), "k_block") as k_block,
            code.loop(code.dim(self.sections), "section") as section,
            code.loop(code.dim(self.blocks), "block") as block,
        ):
            start = code.mul(k_block, code.dim(self.step))
            length = code.minimum(code.sub(k, start), code.dim(self.step))
            above = code.add(top, code.mul(block, height))
            part = Part(block, above, code.minimum(code.sub(bottom, above), height), k_block, start, length)
            if not rows.direct:
                self._pack_rows(rows, coords, part)
            lower = code.add(first, code.mul(section, code.dim(self.panels)))
            upper = code.minimum(end, code.add(lower, code.dim(self.panels)))
            finish = Finish(self.product, *self._ends(k_block))
            if columns is not None:
                columns.prepare(start, length)
            self._panels(rows, columns, finish, coords, part, (task, lower, upper))

    def _pack_rows(self, rows: RowPanels, coords: Coords, part: Part) -> None:
        code = self.code
        with code.loop(self._count(part), "strip") as strip:
            rows.pack(coords, strip, code.add(part.top, code.mul(strip, self.tiles.rows)), part.start, part.length)

    def _count(self, part: Part) -> SSAValue:
        """How many strips a block has."""
        return self.code.divide(self.code.add(part.count, self.tiles.rows - 1), self.tiles.rows)

    def _ends(self, k_block: SSAValue) -> tuple[SSAValue | None, SSAValue | None]:
        if not self.needs_partial_sums:
            return None, None
        code = self.code
        return code.compare("eq", k_block, 0), code.compare("eq", k_block, code.sub(code.dim(self.k_blocks), 1))

    def _panels(
        self,
        rows: RowPanels,
        columns: PackedColumns | None,
        finish: Finish,
        coords: Coords,
        part: Part,
        share: tuple[SSAValue, SSAValue, SSAValue],
    ) -> None:
        """A block of rows times the panels of a task from one number to another."""
        code = self.code
        task, lower, upper = share
        with code.loop(upper, "panel", lower=lower) as number:
            here, left = self.product.panel_position(coords, number)
            if columns is None:
                panel = GivenPanel(self.product, here, left, part.start)
            else:
                is_only = code.compare("eq", code.dim(self.blocks), 1)
                position = code.select(is_only, code.index(0), code.sub(number, lower))
                position = code.add(code.mul(task, code.dim(self._kept)), position)
                panel = PackedPanel(columns, position, here, left, part)
            with code.loop(self._count(part), "strip") as strip:
                self._strip(rows, panel, finish, (coords, here, left), strip, part)

    def _strip(
        self,
        rows: RowPanels,
        panel: PackedPanel | GivenPanel,
        finish: Finish,
        all_coords: tuple[Coords, Coords, SSAValue],
        strip: SSAValue,
        part: Part,
    ) -> None:
        """A tile: to the output if all its rows and columns are there and nothing follows, else through memory."""
        code, product = self.code, self.product
        coords, here, left = all_coords
        done = code.mul(strip, self.tiles.rows)
        top = code.add(part.top, done)
        operand = rows.operand(coords, strip, top, part.start)

        def through_memory(later: Corner | None) -> None:
            tile = code.alloc([self.tiles.rows, self.tiles.width], product.what.element, "tile")
            self._tile(panel, operand, tile, strip, part)
            store_tile(product, finish, tile, here, (top, left), later)

        if not isinstance(operand, Matrix) or not can_store_tiles(product):
            through_memory(self._later(part, strip, top, left) if isinstance(panel, PackedPanel) else None)
            return
        rows_are_all = code.compare("sge", code.sub(part.count, done), self.tiles.rows)
        columns_are_all = code.compare("sge", code.sub(code.dim(product.n), left), self.tiles.width)
        straight = code.both(rows_are_all, columns_are_all)
        if isinstance(panel, PackedPanel) and panel.is_packed_by_tile:  # one of many has a function of its own
            straight = code.both(straight, code.compare("ne", code.add(part.block, strip), 0))
        with code.when(straight) as branch:
            corner = {**here, product.what.row: top, product.what.column: left}
            whole = results(product, corner, part.k_block)
            panel.tile(part.length, self.tiles.rows, operand, whole, strip)
        with code.otherwise(branch):
            through_memory(None)

    def _later(self, part: Part, strip: SSAValue, top: SSAValue, left: SSAValue) -> Corner:
        """The tile that follows one: that below, or behind the last strip the first one of the next panel."""
        code, tiles = self.code, self.tiles
        is_last = code.compare("sge", code.add(strip, 1), self._count(part))
        below = code.select(is_last, part.top, code.add(top, tiles.rows))
        return below, code.select(is_last, code.add(left, tiles.width), left)

    def _tile(
        self, panel: PackedPanel | GivenPanel, rows: Operand, tile: SSAValue, strip: SSAValue, part: Part
    ) -> None:
        """The sums of a tile into memory, by the smallest micro-kernel that has all its rows."""
        code, product = self.code, self.product

        def emit(height: int) -> None:
            panel.tile(part.length, height, rows, tile, strip)

        def emit_all() -> None:
            self._smallest(code.sub(part.count, code.mul(strip, self.tiles.rows)), product.heights, emit)

        if isinstance(panel, PackedPanel) and panel.is_packed_by_tile:
            begins = code.compare("eq", code.add(part.block, strip), 0)
            with code.when(begins) as branch:
                panel.packing_tile(product.heights[0], rows, tile)
            with code.otherwise(branch):
                emit_all()
        else:
            emit_all()

    def _smallest(self, left: SSAValue, heights: Sequence[int], emit: Callable[[int], None]) -> None:
        """The smallest micro-kernel that has `left` rows."""
        code, (height, *smaller) = self.code, heights
        if not smaller:
            emit(height)
            return
        with code.when(code.compare("sgt", left, smaller[0])) as branch:
            emit(height)
        with code.otherwise(branch):
            self._smallest(left, smaller, emit)

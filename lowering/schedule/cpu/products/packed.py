"""Products from packed panels: a tile of the output in registers (Goto and van de Geijn, 2008).

In turns along the sums, and in sections of the columns, a block of rows is packed into the second-level cache; then
threads take panels of columns, and run the micro-kernel down the rows. The first tile of a panel packs it. What is
used next is asked for meanwhile. Everything is in terms of symbols, so one artefact serves all sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.tasks import shared_units
from lowering.schedule.cpu.products.finish import Finish
from lowering.schedule.cpu.products.given_panels import GivenPanel
from lowering.schedule.cpu.products.packed_columns import PackedColumns, PackedPanel, Part
from lowering.schedule.cpu.products.product import Product, Spot
from lowering.schedule.cpu.products.row_panels import RowPanels
from lowering.schedule.cpu.products.tile import store_tile
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.loops import LoopKind

PRODUCTS_PER_TASK = 1 << 19
"""So few take some five microseconds; to wake a thread for less does not pay."""
WEIGHTS_PER_TASK = 1 << 17
"""Half a megabyte, which takes some thirty microseconds to come."""
TASKS_PER_THREAD = 4
"""More tasks than threads, so that a thread that is late leaves work to the others."""
STRIPS_PER_THREAD = 8
PACKED_BYTES = 1 << 24
"""Most memory for packed columns, which all blocks of rows use; less where half of the last cache is less."""


class PackedProduct:
    """Emits the code of one contraction at a place of its batch axes."""

    def __init__(self, product: Product):
        self.product = product
        self.code = product.code
        self.tiles = tiles = product.tiles
        self.m, self.n, self.k = product.m, product.n, product.k
        self.threads = product.threads(PRODUCTS_PER_TASK)
        self.given = product.what.columns.panels is not None
        if self.given:  # few rows wait for memory, which threads do side by side
            least = product.threads(WEIGHTS_PER_TASK, self.n * product.rounds * self.k)
            self.threads = maximum(self.threads, least)
        self.turns = maximum(ceildiv(self.k, constant(tiles.depth)), constant(1))
        # All turns are about as long, and start at whole vectors; blocks are about as large, and so are sections.
        self.step = tiles.lanes * ceildiv(ceildiv(self.k, self.turns), constant(tiles.lanes))
        self.room = tiles.depth * tiles.height // tiles.rows
        self.blocks, self.strips = self._split(ceildiv(self.m, constant(tiles.rows)), self.room)
        self.all_panels = ceildiv(self.n, constant(tiles.width)) * product.rounds
        self.sections, self.panels = constant(1), self.all_panels
        if not self.given:
            room = min(PACKED_BYTES, product.kernel.target.l3_bytes // 2)
            step_bytes = tiles.width * byte_size(product.what.element)
            self.sections, self.panels = self._split(self.all_panels, room // step_bytes)

    def _split(self, count: Dim, room: int) -> tuple[Dim, Dim]:
        """In how many parts so many strips or panels are packed, and the size of a part; `room` steps have room."""
        fitting = maximum(floordiv(constant(room), maximum(self.step, constant(1))), constant(1))
        parts = ceildiv(count, fitting)
        return parts, ceildiv(count, maximum(parts, constant(1)))

    @property
    def needs_partial_sums(self) -> bool:
        """Whether sums may be made in several turns."""
        return self.turns.constant_value != 1

    def emit(self, spot: Spot) -> None:
        """The product at one place of the batch axes."""
        code, tiles = self.code, self.tiles
        known = (self.strips * self.step).constant_value
        rows = RowPanels(self.product, self.room if known is None else known, self.step)
        panels, parts = self._units()
        columns = None if self.given else PackedColumns(self.product, panels * parts, self.step)
        k, m = code.dim(self.k, "k"), code.dim(self.m, "m")
        with (
            code.loop(code.dim(self.turns), "turn") as turn,
            code.loop(code.dim(self.sections), "section") as section,
            code.loop(code.dim(self.blocks), "block") as block,
        ):
            start = code.mul(turn, code.dim(self.step))
            length = code.minimum(code.sub(k, start), code.dim(self.step))
            height = code.dim(self.strips * tiles.rows)
            top = code.mul(block, height)
            part = Part(section, block, top, code.minimum(code.sub(m, top), height), start, length)
            if not rows.direct:
                self._pack_rows(rows, spot, part)
            first, last = self._ends(turn)
            self._tasks(rows, columns, Finish(self.product, first, last), spot, part)

    def _pack_rows(self, rows: RowPanels, spot: Spot, part: Part) -> None:
        code = self.code
        kind = LoopKind.SERIAL if self.threads.constant_value == 1 else LoopKind.PARALLEL
        with code.loop(self._count(part), "strip", kind=kind, grain=STRIPS_PER_THREAD) as strip:
            rows.pack(spot, strip, code.add(part.top, code.mul(strip, self.tiles.rows)), part.start, part.length)

    def _count(self, part: Part) -> SSAValue:
        """How many strips a block has."""
        return self.code.divide(self.code.add(part.count, self.tiles.rows - 1), self.tiles.rows)

    def _ends(self, turn: SSAValue) -> tuple[SSAValue | None, SSAValue | None]:
        if not self.needs_partial_sums:
            return None, None
        code = self.code
        return code.compare("eq", turn, 0), code.compare("eq", turn, code.sub(code.dim(self.turns), 1))

    # Tasks: ranges of units, each a panel of columns and a part of the strips.

    def _units(self) -> tuple[Dim, Dim]:
        """How many panels a section has, and in how many parts each splits the strips: four or more, or all."""
        wanted = ceildiv(TASKS_PER_THREAD * (self.threads - 1), maximum(self.panels, constant(1)))
        return self.panels, maximum(minimum(wanted, floordiv(self.strips, constant(4))), constant(1))

    def _tasks(self, rows: RowPanels, columns: PackedColumns | None, finish: Finish, spot: Spot, part: Part) -> None:
        code, threads = self.code, self.threads
        panels, parts = self._units()
        tasks = minimum(panels * parts, maximum(TASKS_PER_THREAD * (threads - 1) * threads, constant(1)))
        with shared_units(code, panels * parts, tasks) as (lower, upper):
            if columns is not None:
                columns.prepare(part.start, part.length)
            before = code.mul(part.section, code.dim(panels))
            there_are = code.mul(code.sub(code.dim(self.all_panels), before), code.dim(parts))
            strips = self._count(part)
            with code.loop(code.minimum(upper, there_are), "unit", lower=lower) as unit:
                number, share = code.divide(unit, code.dim(parts)), code.remainder(unit, code.dim(parts))
                here, left = self.product.panel_place(spot, code.add(before, number))
                first, end = (
                    code.divide(code.mul(each, strips), code.dim(parts)) for each in (share, code.add(share, 1))
                )
                if columns is None:
                    panel = GivenPanel(self.product, here, left, part.start)
                else:
                    # One block needs no panel again, so that all those of a task are at the same place.
                    is_only = code.compare("eq", code.dim(self.blocks), 1)
                    panel = PackedPanel(columns, code.select(is_only, lower, unit), here, left, part)
                with code.loop(end, "strip", lower=first) as strip:
                    begins = code.compare("eq", code.add(part.block, strip), first)
                    self._strip(rows, panel, finish, (spot, here, left), strip, begins, part)

    def _strip(
        self,
        rows: RowPanels,
        panel: PackedPanel | GivenPanel,
        finish: Finish,
        spots: tuple[Spot, Spot, SSAValue],
        strip: SSAValue,
        begins: SSAValue,
        part: Part,
    ) -> None:
        """A tile, by the smallest micro-kernel that has all its rows."""
        code, product = self.code, self.product
        spot, here, left = spots
        done = code.mul(strip, self.tiles.rows)
        top = code.add(part.top, done)
        operand = rows.operand(spot, strip, top, part.start)
        tile = code.alloc([self.tiles.rows, self.tiles.width], product.what.element, "tile")

        def emit(height: int) -> None:
            panel.tile(part.length, height, operand, tile, strip)

        def emit_all() -> None:
            self._smallest(code.sub(part.count, done), product.heights, emit)

        if isinstance(panel, PackedPanel) and panel.is_packed_by_tile:
            with code.when(begins) as branch:
                panel.packing_tile(product.heights[0], operand, tile)
            with code.otherwise(branch):
                emit_all()
        else:
            emit_all()
        store_tile(product, finish, tile, here, top, left, isinstance(panel, PackedPanel))

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

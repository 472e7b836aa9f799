"""Products from packed panels: a tile of the output in registers (Goto and van de Geijn, 2008).

In turns along the sums, a block of rows is packed into the second-level cache; then threads take panels of columns,
pack them into the first-level cache, and run the micro-kernel down the rows. Everything is in terms of symbols, so one
artefact serves all sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from lowering.schedule.cpu.column_panels import ColumnPanel
from lowering.schedule.cpu.finish import Finish
from lowering.schedule.cpu.given_panels import GivenPanel
from lowering.schedule.cpu.product import Product, Spot
from lowering.schedule.cpu.row_panels import RowPanels
from lowering.schedule.cpu.tasks import shared_units
from lowering.schedule.cpu.tile import Element, emit_tile, store_tile
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.ops.loops import LoopKind

PRODUCTS_PER_TASK = 1 << 19
"""So few take some five microseconds; to wake a thread for less does not pay."""
WEIGHTS_PER_TASK = 1 << 17
"""Half a megabyte, which takes some thirty microseconds to come."""
TASKS_PER_THREAD = 4
"""More tasks than threads, so that a thread that is late leaves work to the others."""
STRIPS_PER_THREAD = 8


class PackedProduct:
    """Emits the code of one contraction at a place of its batch axes."""

    def __init__(self, product: Product):
        self.product = product
        self.code = product.code
        self.tiles = product.tiles
        self.m, self.n, self.k = product.m, product.n, product.k
        self.threads = product.threads(PRODUCTS_PER_TASK)
        if product.what.columns.panels:  # few rows wait for memory, which threads do side by side
            least = product.threads(WEIGHTS_PER_TASK, self.n * product.rounds * self.k)
            self.threads = maximum(self.threads, least)
        self.turns = maximum(ceildiv(self.k, constant(self.tiles.depth)), constant(1))
        # All turns are about as long, and start at whole vectors.
        self.step = 8 * ceildiv(ceildiv(self.k, self.turns), constant(8))
        self.depth = self.step.constant_value or self.tiles.depth

    @property
    def needs_partial_sums(self) -> bool:
        """Whether sums may be made in several turns."""
        return self.turns.constant_value != 1

    def emit(self, spot: Spot) -> None:
        """The product at one place of the batch axes."""
        code, tiles = self.code, self.tiles
        rows = RowPanels(self.product, self.depth)
        k, m = code.dim(self.k, "k"), code.dim(self.m, "m")
        with (
            code.loop(code.dim(self.turns), "turn") as turn,
            code.loop(code.dim(ceildiv(self.m, constant(tiles.height))), "block") as block,
        ):
            start = code.mul(turn, code.dim(self.step))
            length = code.minimum(code.sub(k, start), code.dim(self.step))
            top = code.mul(block, tiles.height)
            here = code.minimum(code.sub(m, top), tiles.height)
            strips = code.divide(code.add(here, tiles.rows - 1), tiles.rows)
            if not rows.direct:
                self._pack_rows(rows, spot, strips, top, start, length)
            first, last = self._ends(turn)
            self._tasks(rows, Finish(self.product, first, last), spot, top, here, start, length)

    def _pack_rows(
        self, rows: RowPanels, spot: Spot, strips: SSAValue, top: SSAValue, start: SSAValue, length: SSAValue
    ) -> None:
        code = self.code
        kind = LoopKind.SERIAL if self.threads.constant_value == 1 else LoopKind.PARALLEL
        with code.loop(strips, "strip", kind=kind, grain=STRIPS_PER_THREAD) as strip:
            rows.pack(spot, strip, code.add(top, code.mul(strip, self.tiles.rows)), start, length)

    def _ends(self, turn: SSAValue) -> tuple[SSAValue | None, SSAValue | None]:
        if not self.needs_partial_sums:
            return None, None
        code = self.code
        return code.compare("eq", turn, 0), code.compare("eq", turn, code.sub(code.dim(self.turns), 1))

    # Tasks: ranges of units, each a panel of columns and a part of the strips.

    def _units(self) -> tuple[Dim, Dim, Dim]:
        """How many panels there are, in how many parts each splits the strips, and how many strips a part has."""
        tiles, product = self.tiles, self.product
        panels = ceildiv(self.n, constant(tiles.width)) * product.rounds
        strips = minimum(ceildiv(self.m, constant(tiles.rows)), constant(tiles.height // tiles.rows))
        threads = self.threads
        wanted = ceildiv(TASKS_PER_THREAD * (threads - 1), maximum(panels, constant(1)))
        parts = maximum(minimum(wanted, floordiv(strips, constant(4))), constant(1))
        return panels, parts, maximum(ceildiv(strips, parts), constant(1))

    def _tasks(
        self,
        rows: RowPanels,
        finish: Finish,
        spot: Spot,
        top: SSAValue,
        count: SSAValue,
        start: SSAValue,
        length: SSAValue,
    ) -> None:
        code, threads = self.code, self.threads
        panels, parts, height = self._units()
        units = panels * parts
        tasks = minimum(units, maximum(TASKS_PER_THREAD * (threads - 1) * threads, constant(1)))
        with shared_units(code, units, tasks) as (lower, upper):
            panel = None if self.product.what.columns.panels else ColumnPanel(self.product, self.depth)
            if panel is not None:
                panel.prepare(start, length)
            with code.loop(upper, "unit", lower=lower) as unit:
                number, part = code.divide(unit, code.dim(parts)), code.remainder(unit, code.dim(parts))
                here, left = self.product.panel_place(spot, number)
                if panel is not None:
                    panel.pack(here, left, start, length)
                columns = GivenPanel(self.product, here, left, start) if panel is None else panel
                first = code.mul(part, code.dim(height))
                strips = code.divide(code.add(count, self.tiles.rows - 1), self.tiles.rows)
                end = code.minimum(strips, code.add(first, code.dim(height)))
                with code.loop(end, "strip", lower=first) as strip:
                    done = code.mul(strip, self.tiles.rows)
                    here_top = code.add(top, done)
                    element = rows.reader(spot, strip, here_top, start)
                    tile = self._tile(columns, element, strip, code.sub(count, done), length)
                    store_tile(self.product, finish, tile, here, here_top, left)

    def _tile(
        self, columns: ColumnPanel | GivenPanel, element: Element, strip: SSAValue, left: SSAValue, length: SSAValue
    ) -> SSAValue:
        """The tile of sums, by the smallest micro-kernel that has `left` rows."""
        code = self.code
        tile = code.alloc([self.tiles.rows, self.tiles.width], self.product.what.element, "tile")

        def emit(height: int) -> None:
            if isinstance(columns, GivenPanel):
                columns.tile(length, height, element, tile, strip)
            else:
                emit_tile(self.product, (code.index(0), length), height, element, columns.vector, tile)

        self._smallest(left, self.product.heights, emit)
        return tile

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

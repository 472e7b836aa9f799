"""The packed GEMM: packed panels and a register tile (Goto and van de Geijn, 2008).

Each task has a chunk of the strips of rows and of the panels of columns. For each K block and each section of its
columns, a task packs a block of rows into L2; then it takes panels of columns and runs the micro-kernel down the rows.
The first tile of a panel packs it, and what is used next is prefetched meanwhile. All sizes are symbolic, so one
artefact serves all of them.

A task packs what it needs for itself, into the memory that it used in the call before. So threads neither wait for each
other nor fetch packed data from each other's caches: where cores do not share a last-level cache, that took longer than
packing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    PACKED_BYTES,
    PACKED_TASK_MACS,
    PACKED_TASKS_PER_THREAD,
    PANELS_PER_TASK,
    STRIPS_PER_PANEL,
    TASK_WEIGHTS,
    UNBOUNDED,
    UNEVEN_STRIPS,
)
from lowering.kernels.gemm.epilogue import EpilogueEmitter, can_store_tiles, output_tile
from lowering.kernels.gemm.micro_kernel import Matrix, Operand
from lowering.kernels.gemm.packing import RowPanels
from lowering.kernels.gemm.panels import PackedBlock, PackedColumns, PackedPanel, WeightPanel
from lowering.kernels.gemm.problem import Coords, Gemm, cache_line_starts
from lowering.kernels.gemm.register_tile import Corner, main_panels, store_tile
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.control_flow import LoopKind

Range = tuple[SSAValue, SSAValue]
"""The numbers from the first value to before the second."""


class PackedGemm:
    """Emits a packed GEMM, for one batch."""

    def __init__(self, gemm: Gemm):
        self.gemm = gemm
        self.code = gemm.code
        self.tiles = tiles = gemm.tiles
        self.m, self.n, self.k = gemm.m, gemm.n, gemm.k
        self.given = gemm.contraction.columns.panels is not None
        self.k_blocks = maximum(ceildiv(self.k, constant(tiles.kc)), constant(1))
        # All K blocks are about as long, and start at whole vectors. Blocks of rows are about as large,
        # and so are sections.
        self.step = tiles.lanes * ceildiv(ceildiv(self.k, self.k_blocks), constant(tiles.lanes))
        self.room = tiles.kc * tiles.mc // tiles.mr
        self.all_strips = ceildiv(self.m, constant(tiles.mr))
        self.all_panels = main_panels(gemm, tiles.nr)
        square = -(-tiles.nr // tiles.mr) if len(cache_line_starts(gemm)) == 1 else 0
        units = self.all_strips, self.all_panels
        self.rows, self.columns = partition(threads_for(gemm), *units, self.given, square)
        self.tasks = self.rows * self.columns
        self.blocks, self.strips = self._split(ceildiv(self.all_strips, self.rows), constant(self.room))
        self.sections, self.panels = constant(1), ceildiv(self.all_panels, self.columns)
        if not self.given:
            room = min(PACKED_BYTES, gemm.kernel.target.l3_bytes // 2)
            step_bytes = tiles.nr * byte_size(gemm.contraction.element)
            self.sections, self.panels = self._split(self.panels, floordiv(constant(room // step_bytes), self.tasks))

    def _split(self, count: Dim, room: Dim) -> tuple[Dim, Dim]:
        """In how many blocks so many strips or panels are packed, and the size of one; `room` steps have room."""
        fitting = maximum(floordiv(room, maximum(self.step, constant(1))), constant(1))
        chunks = maximum(ceildiv(count, fitting), constant(1))
        return chunks, ceildiv(count, chunks)

    @property
    def needs_partial_sums(self) -> bool:
        """Whether the reduction may be split into several blocks."""
        return self.k_blocks.constant_value != 1

    def emit(self, coords: Coords) -> None:
        """The GEMM of one batch."""
        code = self.code
        known = (self.strips * self.step).constant_value
        rows = RowPanels(self.gemm, self.room if known is None else known, self.step, self.tasks)
        columns = None if self.given else PackedColumns(self.gemm, self.tasks * self._kept, self.step)
        kind = LoopKind.SERIAL if self.tasks.constant_value == 1 else LoopKind.PARALLEL
        with code.loop(code.dim(self.tasks), "task", kind=kind) as task:
            rows.take(task)
            row, column = code.divide(task, code.dim(self.columns)), code.remainder(task, code.dim(self.columns))
            strips = self._chunk(row, self.rows, self.all_strips)
            panels = self._chunk(column, self.columns, self.all_panels)
            self._task(rows, columns, coords, (task, strips, panels))

    @property
    def _kept(self) -> Dim:
        """How many panels a task keeps: one block of rows needs none again, so that all are in the same memory.

        There is room for a second one, or prefetchers would read on into what another thread writes.
        """
        return maximum(minimum(self.panels, UNBOUNDED * (self.blocks - 1)), constant(2))

    def _chunk(self, number: SSAValue, count: Dim, units: Dim) -> Range:
        """The strips or panels of one of so many chunks."""
        code, there_are, all_units = self.code, self.code.dim(count), self.code.dim(units)
        if count.constant_value == 1:
            return code.index(0), all_units
        first, end = (code.divide(code.mul(each, all_units), there_are) for each in (number, code.add(number, 1)))
        return first, end

    def _task(
        self, rows: RowPanels, columns: PackedColumns | None, coords: Coords, chunk: tuple[SSAValue, Range, Range]
    ) -> None:
        """The product of some rows with some columns."""
        code, tiles = self.code, self.tiles
        task, strips, (first, end) = chunk
        k, m = code.dim(self.k, "k"), code.dim(self.m, "m")
        mr = code.dim(self.strips * tiles.mr)
        top, bottom = code.mul(strips[0], tiles.mr), code.minimum(code.mul(strips[1], tiles.mr), m)
        with (
            code.loop(code.dim(self.k_blocks), "k_block") as k_block,
            code.loop(code.dim(self.sections), "section") as section,
            code.loop(code.dim(self.blocks), "block") as block,
        ):
            start = code.mul(k_block, code.dim(self.step))
            length = code.minimum(code.sub(k, start), code.dim(self.step))
            above = code.add(top, code.mul(block, mr))
            k_slice = PackedBlock(block, above, code.minimum(code.sub(bottom, above), mr), k_block, start, length)
            if not rows.direct:
                self._pack_rows(rows, coords, k_slice)
            lower = code.add(first, code.mul(section, code.dim(self.panels)))
            upper = code.minimum(end, code.add(lower, code.dim(self.panels)))
            epilogue = EpilogueEmitter(self.gemm, *self._ends(k_block))
            if columns is not None:
                columns.prepare(start, length)
            self._panels(rows, columns, epilogue, coords, k_slice, (task, lower, upper))

    def _pack_rows(self, rows: RowPanels, coords: Coords, chunk: PackedBlock) -> None:
        code = self.code
        with code.loop(self._count(chunk), "strip") as strip:
            rows.pack(coords, strip, code.add(chunk.top, code.mul(strip, self.tiles.mr)), chunk.start, chunk.length)

    def _count(self, chunk: PackedBlock) -> SSAValue:
        """How many strips a block has."""
        return self.code.divide(self.code.add(chunk.count, self.tiles.mr - 1), self.tiles.mr)

    def _ends(self, k_block: SSAValue) -> tuple[SSAValue | None, SSAValue | None]:
        if not self.needs_partial_sums:
            return None, None
        code = self.code
        return code.compare("eq", k_block, 0), code.compare("eq", k_block, code.sub(code.dim(self.k_blocks), 1))

    def _panels(
        self,
        rows: RowPanels,
        columns: PackedColumns | None,
        epilogue: EpilogueEmitter,
        coords: Coords,
        k_slice: PackedBlock,
        chunk: tuple[SSAValue, SSAValue, SSAValue],
    ) -> None:
        """A block of rows times the panels of a task from one number to another."""
        code = self.code
        task, lower, upper = chunk
        with code.loop(upper, "panel", lower=lower) as number:
            here, left = self.gemm.panel_position(coords, number)
            if columns is None:
                panel = WeightPanel(self.gemm, here, left, k_slice.start)
            else:
                is_only = code.compare("eq", code.dim(self.blocks), 1)
                position = code.select(is_only, code.index(0), code.sub(number, lower))
                position = code.add(code.mul(task, code.dim(self._kept)), position)
                panel = PackedPanel(columns, position, here, left, k_slice)
            with code.loop(self._count(k_slice), "strip") as strip:
                self._strip(rows, panel, epilogue, (coords, here, left), strip, k_slice)

    def _strip(
        self,
        rows: RowPanels,
        panel: PackedPanel | WeightPanel,
        epilogue: EpilogueEmitter,
        all_coords: tuple[Coords, Coords, SSAValue],
        strip: SSAValue,
        chunk: PackedBlock,
    ) -> None:
        """Emits a tile: to the output if all its rows and columns are there and there is no epilogue, else through
        memory.
        """
        code, gemm = self.code, self.gemm
        coords, here, left = all_coords
        done = code.mul(strip, self.tiles.mr)
        top = code.add(chunk.top, done)
        operand = rows.operand(coords, strip, top, chunk.start)

        def through_memory(later: Corner | None) -> None:
            tile = code.alloc([self.tiles.mr, self.tiles.nr], gemm.contraction.element, "tile")
            self._tile(panel, operand, tile, strip, chunk)
            store_tile(gemm, epilogue, tile, here, (top, left), later)

        if not isinstance(operand, Matrix) or not can_store_tiles(gemm):
            through_memory(self._later(chunk, strip, top, left) if isinstance(panel, PackedPanel) else None)
            return
        rows_are_all = code.compare("sge", code.sub(chunk.count, done), self.tiles.mr)
        columns_are_all = code.compare("sge", code.sub(code.dim(gemm.n), left), self.tiles.nr)
        straight = code.both(rows_are_all, columns_are_all)
        if isinstance(panel, PackedPanel) and panel.is_packed_by_tile:  # one of many has a function of its own
            straight = code.both(straight, code.compare("ne", code.add(chunk.block, strip), 0))
        with code.when(straight) as branch:
            corner = {**here, gemm.contraction.row: top, gemm.contraction.column: left}
            whole = output_tile(gemm, corner, chunk.k_block)
            panel.tile(chunk.length, self.tiles.mr, operand, whole, strip)
        with code.otherwise(branch):
            through_memory(None)

    def _later(self, chunk: PackedBlock, strip: SSAValue, top: SSAValue, left: SSAValue) -> Corner:
        """The next tile: that below, or after the last strip the first one of the next panel."""
        code, tiles = self.code, self.tiles
        is_last = code.compare("sge", code.add(strip, 1), self._count(chunk))
        below = code.select(is_last, chunk.top, code.add(top, tiles.mr))
        return below, code.select(is_last, code.add(left, tiles.nr), left)

    def _tile(
        self, panel: PackedPanel | WeightPanel, rows: Operand, tile: SSAValue, strip: SSAValue, chunk: PackedBlock
    ) -> None:
        """The accumulators of a tile into memory, by the smallest micro-kernel that has all its rows."""
        code, gemm = self.code, self.gemm

        def emit(mr: int) -> None:
            panel.tile(chunk.length, mr, rows, tile, strip)

        def emit_all() -> None:
            self._smallest(code.sub(chunk.count, code.mul(strip, self.tiles.mr)), gemm.mr_sizes, emit)

        if isinstance(panel, PackedPanel) and panel.is_packed_by_tile:
            begins = code.compare("eq", code.add(chunk.block, strip), 0)
            with code.when(begins) as branch:
                panel.packing_tile(gemm.mr_sizes[0], rows, tile)
            with code.otherwise(branch):
                emit_all()
        else:
            emit_all()

    def _smallest(self, left: SSAValue, mr_sizes: Sequence[int], emit: Callable[[int], None]) -> None:
        """The smallest micro-kernel that has `left` rows."""
        code, (mr, *smaller) = self.code, mr_sizes
        if not smaller:
            emit(mr)
            return
        with code.when(code.compare("sgt", left, smaller[0])) as branch:
            emit(mr)
        with code.otherwise(branch):
            self._smallest(left, smaller, emit)


def threads_for(gemm: Gemm) -> Dim:
    """How many threads have enough to do in one batch."""
    threads = gemm.threads(PACKED_TASK_MACS)
    if gemm.contraction.columns.panels is not None:  # a small M waits for memory, which threads do side by side
        least = gemm.threads(TASK_WEIGHTS, gemm.n * gemm.rounds * gemm.k)
        threads = maximum(threads, least)
    batches = maximum(gemm.size(gemm.contraction.batch), constant(1))
    return ceildiv(threads, batches)


def partition(threads: Dim, strips: Dim, panels: Dim, given: bool, square: int = 0) -> tuple[Dim, Dim]:
    """In how many chunks the strips of rows and the panels of columns are partitioned.

    Panels packed at build time are read once by a single thread, if they suffice. A square GEMM has `square` strips for
    each panel, where a row of a panel is one cache line.
    """
    one = constant(1)
    strips, panels = maximum(strips, one), maximum(panels, one)
    most = STRIPS_PER_PANEL * panels
    if square > STRIPS_PER_PANEL:
        most = maximum(most, square * panels - UNEVEN_STRIPS)
    spare = constant(-1) if given else strips - most
    columns = _unless_above(spare, minimum(_task_count(threads, panels), panels))
    of_rows = _unless_above(-1 - spare, minimum(_task_count(threads, strips), strips))
    return minimum(maximum(of_rows, ceildiv(threads, columns)), strips), columns


def _unless_above(number: Dim, many: Dim) -> Dim:
    """`many`, which is at least 1; 1 where a number is not negative. It is a short formula where its operands are long
    ones.
    """
    return maximum(minimum(many, -UNBOUNDED * number), constant(1))


def _task_count(threads: Dim, units: Dim) -> Dim:
    """A number of tasks that gives each thread equally many."""
    one = constant(1)
    several = 1 + (PACKED_TASKS_PER_THREAD - 1) * minimum(threads - 1, one)
    return threads * maximum(minimum(floordiv(units, PANELS_PER_TASK * threads), several), one)

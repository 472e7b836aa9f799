"""GEMM on dot-product groups: blocks of rows and panels of columns are packed, and multiplied by a micro-kernel.

Numbers are small, so a panel with the whole of K stays in L2, and K is not split. Each task has an equal run of tiles.
Tiles are numbered panel by panel or, where there are many more strips of rows than panels, strip by strip. A task packs
the rows and columns of its tiles for itself, into the memory that it used in the call before, so threads neither wait
for each other nor fetch packed data from each other's caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.gemm.cost_model import (
    DOT_GROUP_GEMV_ROWS,
    DOT_GROUP_MIN_MR,
    DOT_GROUP_NEAR_L2_PART,
    DOT_GROUP_STRIPS_PER_PANEL,
    DOT_GROUP_TASK_MACS,
    PACKED_BYTES,
    UNBOUNDED,
)
from lowering.kernels.cpu.gemm.dot_groups.contraction import DotGroupContraction
from lowering.kernels.cpu.gemm.dot_groups.micro_kernel import GROUP_BYTES, DotGroupTile
from lowering.kernels.cpu.gemm.dot_groups.packing import DotGroupColumns, DotGroupRows
from lowering.kernels.cpu.gemm.epilogue import EpilogueEmitter
from lowering.kernels.cpu.gemm.gemv import Gemv, can_read_columns
from lowering.kernels.cpu.gemm.problem import Coords, Gemm
from lowering.kernels.cpu.gemm.register_tile import Corner, store_tile
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.ops.loops import LoopKind

Range = tuple[SSAValue, SSAValue]
"""The numbers from the first value to before the second."""


@dataclass(frozen=True)
class TaskTiles:
    """A task's tiles, the strips and the panels of which it has some."""

    tiles: Range
    strips: Range
    panels: Range


class TilePartition:
    """The partition of all tiles of a GEMM, with so many strips and panels, among tasks."""

    def __init__(self, code: Code, strips: Dim, panels: Dim, tasks: Dim):
        self.tasks = tasks
        self._code, self._all_strips, self._all_panels = code, strips, panels
        self._strips, self._panels = maximum(strips, constant(1)), maximum(panels, constant(1))
        self._surplus = strips - DOT_GROUP_STRIPS_PER_PANEL * panels
        """By how many strips there are too many for tasks with panels of their own."""

    @property
    def is_alone(self) -> bool:
        """Whether there is one task, known when the code is made."""
        return self.tasks.constant_value == 1

    @property
    def strips(self) -> Dim:
        """No task has tiles of more strips."""
        if self.is_alone:
            return self._strips
        few = ceildiv(self._strips, self.tasks) + 1
        return minimum(maximum(few, -UNBOUNDED * self._surplus), self._strips)

    @property
    def panels(self) -> Dim:
        """No task has tiles of more panels."""
        if self.is_alone:
            return self._panels
        few = ceildiv(self._panels, self.tasks) + 1
        return minimum(maximum(few, UNBOUNDED * (self._surplus + 1)), self._panels)

    @property
    def _is_by_strips(self) -> SSAValue:
        return self._code.compare("sge", self._code.dim(self._surplus), 0)

    def of(self, task: SSAValue) -> TaskTiles:
        """The tiles of a task."""
        code, none = self._code, self._code.index(0)
        strips, panels = code.dim(self._all_strips), code.dim(self._all_panels)
        total = code.mul(strips, panels)
        if self.is_alone:
            return TaskTiles((none, total), (none, strips), (none, panels))
        lower, upper = (code.divide(code.mul(each, total), code.dim(self.tasks)) for each in (task, code.add(task, 1)))
        by_strips = self._is_by_strips
        row = code.select(by_strips, code.dim(self._panels), code.dim(self._strips))
        rows = code.divide(lower, row), code.divide(code.add(upper, code.sub(row, 1)), row)
        start = code.mul(rows[0], row)
        is_one = code.compare("sle", upper, code.add(start, row))
        within = tuple(
            code.select(is_one, code.sub(chunk, start), all_) for chunk, all_ in ((lower, none), (upper, row))
        )
        own, others = (
            tuple(code.select(by_strips, a, b) for a, b in zip(*pair, strict=True))
            for pair in ((rows, within), (within, rows))
        )
        return TaskTiles((lower, upper), (own[0], own[1]), (others[0], others[1]))

    def strips_of(self, own: TaskTiles, panel: SSAValue) -> Range:
        """The strips of a task's tiles of a panel."""
        if self.is_alone:
            return own.strips
        code, none, by_strips = self._code, self._code.index(0), self._is_by_strips
        step = code.select(by_strips, code.dim(self._panels), code.index(1))
        before = code.select(by_strips, panel, code.mul(panel, code.dim(self._strips)))
        first, end = (
            code.divide(code.add(code.maximum(code.sub(tile, before), none), code.sub(step, 1)), step)
            for tile in own.tiles
        )
        return first, code.minimum(end, code.dim(self._strips))


@dataclass(frozen=True)
class RowBlock:
    """Strips of rows that a task packs at once, numbered from its first ones."""

    task: SSAValue
    own: TaskTiles
    number: SSAValue
    strips: Range


@dataclass(frozen=True)
class DotGroupGemm:
    """A GEMM on dot-product groups whose code is being emitted."""

    gemm: Gemm
    groups: DotGroupContraction

    def emit(self) -> None:
        """The code, batch axes included."""
        gemm, code = self.gemm, self.gemm.code
        with gemm.batches() as coords:
            if not self._may_have_few_rows:
                _Emitter(gemm, self.groups).emit(coords)
                return
            with code.when(code.compare("sle", code.dim(gemm.m, "m"), DOT_GROUP_GEMV_ROWS)) as branch:
                self._emit_rows(coords)
            with code.otherwise(branch):
                _Emitter(gemm, self.groups).emit(coords)

    @property
    def _may_have_few_rows(self) -> bool:
        """Whether columns may be read once for each row: packing them as groups takes longer."""
        rows = self.gemm.m.constant_value
        return self.groups.is_float and can_read_columns(self.gemm) and (rows is None or rows <= DOT_GROUP_GEMV_ROWS)

    def _emit_rows(self, coords: Coords) -> None:
        """The rows one by one, in `f32`."""
        gemm = self.gemm
        code, generator = gemm.code, Gemv(gemm)
        with code.loop(code.dim(gemm.m), "row") as row:
            generator.emit_row(coords, row)


class _Emitter:
    """Emits the packed GEMM at given values of its batch axes."""

    def __init__(self, gemm: Gemm, groups: DotGroupContraction):
        self.gemm, self.groups, self.code = gemm, groups, gemm.code
        self.tiles = gemm.tiles
        self.m = gemm.m
        threads = ceildiv(gemm.threads(DOT_GROUP_TASK_MACS), maximum(gemm.size(gemm.contraction.batch), constant(1)))
        panels = ceildiv(gemm.n, constant(self.tiles.nr))
        self.partition = TilePartition(self.code, ceildiv(self.m, constant(self.tiles.mr)), panels, threads)
        room = constant(gemm.kernel.target.l2_bytes // 2 // (GROUP_BYTES * self.tiles.mr))
        most = maximum(floordiv(room, maximum(groups.depth, constant(1))), constant(1))
        self.blocks = ceildiv(self.partition.strips, most)
        self.strips = ceildiv(self.partition.strips, self.blocks)
        self.columns = DotGroupColumns(gemm, groups, threads, self._kept)
        self.rows = DotGroupRows(gemm, groups, threads, self.strips * self.tiles.mr)

    @property
    def _kept(self) -> Dim:
        """How many panels a task keeps."""
        target, panel = (
            self.gemm.kernel.target,
            GROUP_BYTES * self.tiles.nr * maximum(self.groups.depth, constant(1)),
        )
        near = floordiv(constant(target.l2_bytes // DOT_GROUP_NEAR_L2_PART), panel)
        most = floordiv(constant(min(PACKED_BYTES, target.l3_bytes // 2)), panel * self.partition.tasks)
        room = minimum(most, maximum(near, UNBOUNDED * (self.blocks - 1)))
        return maximum(minimum(self.partition.panels, room), constant(1))

    def emit(self, coords: Coords) -> None:
        """All tasks."""
        code, kind = self.code, LoopKind.SERIAL if self.partition.is_alone else LoopKind.PARALLEL
        with code.loop(code.dim(self.partition.tasks), "task", kind=kind) as task:
            own = self.partition.of(task)
            self.rows.take(task)
            first, end = own.strips
            mr = code.dim(self.strips)
            count = code.divide(code.add(code.sub(end, first), code.sub(mr, 1)), mr)
            with code.loop(count, "block") as number:
                lower = code.add(first, code.mul(number, mr))
                block = RowBlock(task, own, number, (lower, code.minimum(code.add(lower, mr), end)))
                self._block(coords, block)

    def _block(self, coords: Coords, block: RowBlock) -> None:
        """Packs the rows of a block, and multiplies them with the panels."""
        code, (first, end), panels = self.code, block.strips, block.own.panels
        top, bottom = (code.mul(each, self.tiles.mr) for each in (first, end))
        with code.loop(code.sub(code.minimum(bottom, code.dim(self.m)), top), "i") as i:
            self.rows.pack(coords, code.add(top, i), i)
        with code.loop(panels[1], "panel", lower=panels[0]) as panel:
            columns = self.columns.take(coords, panel, block.task, panels, block.number)
            tile = DotGroupTile(self.gemm, self.groups, columns)
            some = self.partition.strips_of(block.own, panel)
            lower, upper = code.maximum(some[0], first), code.minimum(some[1], end)
            with code.loop(upper, "strip", lower=lower) as strip:
                is_last = code.compare("sge", code.add(strip, 1), upper)
                row = code.mul(code.select(is_last, lower, code.add(strip, 1)), self.tiles.mr)
                column = code.mul(code.select(is_last, code.add(panel, 1), panel), self.tiles.nr)
                self._strip(tile, coords, (strip, panel), top, (row, column))

    def _strip(
        self, tile: DotGroupTile, coords: Coords, at: tuple[SSAValue, SSAValue], top: SSAValue, later: Corner
    ) -> None:
        """A tile of a strip and a panel, by the smallest micro-kernel that has all its rows."""
        code, (strip, panel) = self.code, at
        row = code.mul(strip, self.tiles.mr)
        accumulators = code.alloc([self.tiles.mr, self.tiles.nr], self.groups.total, "tile")

        def group(i: int, r: SSAValue) -> SSAValue:
            return self.rows.group(code.add(code.sub(row, top), i), r)

        def emit(left: SSAValue, mr_sizes: Sequence[int]) -> None:
            mr, *smaller = mr_sizes
            if not smaller:
                tile.emit(mr, group, accumulators)
                return
            with code.when(code.compare("sgt", left, smaller[0])) as branch:
                tile.emit(mr, group, accumulators)
            with code.otherwise(branch):
                emit(left, smaller)

        emit(code.sub(code.dim(self.m), row), self._mr_sizes)
        left = code.mul(panel, self.tiles.nr)
        store_tile(self.gemm, EpilogueEmitter(self.gemm, None, None), accumulators, coords, (row, left), later)

    @property
    def _mr_sizes(self) -> tuple[int, ...]:
        """Rows of the tiles: if their number is known, the last tile has as many as are left."""
        rows, known = self.tiles.mr, self.m.constant_value
        if known is None:
            return (*self.tiles.mr_sizes, DOT_GROUP_MIN_MR)
        rest = known % rows
        return (rest,) if 0 < known < rows else (rows, rest) if rest else (rows,)

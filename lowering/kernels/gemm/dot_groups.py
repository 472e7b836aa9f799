"""GEMM on dot-product groups: blocks of rows and panels of columns are packed, and multiplied by a micro-kernel.

Numbers are small, so a panel with the whole of K stays in L2, and K is not split. Each task has an equal run of tiles.
Tiles are numbered panel by panel or, where there are many more strips of rows than panels, strip by strip. A task packs
the rows and columns of its tiles for itself, into the memory that it used in the call before, so threads neither wait
for each other nor fetch packed data from each other's caches.
Packing turns rows of A into rows of groups, and columns of B into panels of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import VectorType, i8, i32
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    DOT_GROUP_MIN_MR,
    DOT_GROUP_NEAR_L2_PART,
    DOT_GROUP_SMALL_M,
    DOT_GROUP_STRIPS_PER_PANEL,
    DOT_GROUP_TASK_MACS,
    PACKED_BYTES,
    UNBOUNDED,
)
from lowering.kernels.emit.body import Explicit, Lanes
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.vectorization import shuffle, transposed
from lowering.kernels.gemm.dot_group_contraction import DotGroupContraction
from lowering.kernels.gemm.dot_group_micro_kernel import (
    BYTE_BITS,
    GROUP_BYTES,
    LOW_BYTES,
    DotGroupTile,
    StepOrder,
    as_int16,
    constant_number,
    lanes_of_line,
    splat,
    view,
    with_flipped_sign,
)
from lowering.kernels.gemm.epilogue import EpilogueEmitter
from lowering.kernels.gemm.gemv import Gemv, can_read_columns
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.gemm.register_tile import Corner, store_tile
from lowering.kernels.structure.contraction import is_chain
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum, mod
from tir_dialect.ops.control_flow import LoopKind
from tir_dialect.ops.tile_registers import TILE_SIZE, ConfigureTilesOp, ReleaseTilesOp
from tir_dialect.target import LINE_BYTES


class DotGroupRows:
    """Some rows `[row, pitch]` of groups.

    Rows are an odd number of cache lines apart, so that the first-level cache keeps those of a tile. Contiguous runs of
    numbers are copied by vectors: a whole row, or, of a window, what it has of a row of the image. The columns have
    zeros past the end of K, so the bytes that a row has there may be anything; floats are zeros too.
    """

    def __init__(self, gemm: Gemm, groups: DotGroupContraction, tasks: Dim, count: Dim):
        """Memory for so many rows of each task."""
        self.gemm, self.groups, self.code = gemm, groups, gemm.code
        cache_lines = ceildiv(groups.depth, constant(LINE_BYTES // GROUP_BYTES))
        self.pitch = constant(LINE_BYTES // GROUP_BYTES) * (cache_lines + 1 - mod(cache_lines, constant(2)))
        self.count, self.first = count, self.code.index(0)
        self.buffer = self.code.alloc([tasks * count, self.pitch], i32, "packed_rows")
        self.numbers = view(self.code, self.buffer, [tasks * count * self.pitch * groups.parts], groups.storage)
        names = ("even_bytes", "odd_bytes") if groups.in_byte_pairs else ()
        self.halves = [self.code.alloc([tasks * count, self.pitch], i32, name) for name in names]
        """The even and the odd bytes of groups, extended to 16 bits, for steps in which sums could saturate."""
        # The reduced axes along which a row is contiguous, and those before them.
        reduced, extents = self.groups.reduced, self.groups.contraction.stage.extents
        first = len(reduced) - 1
        while first and is_chain(self.groups.rows.accesses, extents, reduced[first - 1 :]):
            first -= 1
        self.run, self.runs = reduced[first:], reduced[:first]

    def take(self, task: SSAValue) -> None:
        """Uses the memory of a task from here on."""
        self.first = self.code.mul(task, self.code.dim(self.count))

    def group(self, row: SSAValue, r: SSAValue) -> SSAValue:
        """A group of a row."""
        return self.code.load(*self.memory(row, r))

    def half(self, number: int, row: SSAValue, r: SSAValue) -> SSAValue:
        """The even or the odd bytes of a group of a row."""
        return self.code.load(self.halves[number], self.memory(row, r)[1])

    def memory(self, row: SSAValue, r: SSAValue) -> tuple[SSAValue, Sequence[SSAValue]]:
        """The buffer and the indices of a group."""
        return self.buffer, [self.code.add(self.first, row), r]

    def pack(self, coords: Coords, row: SSAValue, target: SSAValue) -> None:
        """Copies row `row` of A to row `target` of the memory."""
        code, gemm, contraction = self.code, self.gemm, self.groups.contraction
        target = code.add(self.first, target)
        if self.groups.is_float:
            last = maximum(self.groups.depth - 1, constant(0))
            code.store(constant_number(code, 0, i32), self.buffer, [target, code.dim(last)])
        length = gemm.size(self.run)
        start = code.mul(target, code.dim(self.pitch * self.groups.parts))
        here = {**coords, contraction.row: row}
        if not self.runs:
            self._copy(here, start, code.dim(length))
        else:
            with code.loop(code.dim(gemm.size(self.runs)), "run") as run:
                position = code.add(start, code.mul(run, code.dim(length)))
                self._copy({**here, self.runs: run}, position, code.dim(length))
        if self.halves:
            # The halves of a row that has been copied: cache lines, of which a row has whole ones.
            code, lanes = self.code, LINE_BYTES // GROUP_BYTES
            low, bits = splat(code, LOW_BYTES, i32, lanes), splat(code, BYTE_BITS, i32, lanes)
            with code.loop(code.dim(ceildiv(self.groups.depth, constant(lanes))), "line", vectorize=False) as line:
                at = [target, code.mul(line, lanes)]
                groups = code.load(self.buffer, at, lanes)
                for half, word in zip(self.halves, (groups, code.value(arith.ShRUIOp(groups, bits))), strict=True):
                    code.store(code.value(arith.AndIOp(word, low)), half, at)

    def _copy(self, here: Coords, start: SSAValue, length: SSAValue) -> None:
        code, lanes = self.code, lanes_of_line(self.groups.storage)

        def copy(r: SSAValue, lanes: int, on: SSAValue | None = None) -> None:
            values = self._vector({**here, self.run: r}, lanes, on)
            mask = None if on is None else code.leading(on, lanes)
            code.store(values, self.numbers, [code.add(start, r)], mask)

        whole = code.divide(length, lanes)
        with code.loop(whole, "v") as v:
            copy(code.mul(v, lanes), lanes)
        done = code.mul(whole, lanes)
        if not (self.groups.in_int16 or self.groups.in_byte_pairs):
            with code.when(code.compare("slt", done, length)):
                copy(done, lanes, code.sub(length, done))
            return
        # Machines without dot products of bytes have no masks for them either.
        while lanes > 1:
            lanes //= 2
            with code.when(code.compare("sle", code.add(done, lanes), length)) as branch:
                copy(done, lanes)
            done = code.select(branch.condition, code.add(done, lanes), done)

    def _vector(self, coords: Coords, lanes: int, on: SSAValue | None) -> SSAValue:
        rows = self.groups.rows
        at = self.gemm.at(rows.accesses, rows.pinned, coords)
        body = Explicit(self.gemm.kernel, self.groups.contraction.stage, at, Lanes(self.run[-1], lanes, on))
        body.run(rows.ops)
        values = body.widened(body.value(rows.value))
        if self.groups.in_int16:
            return as_int16(self.code, values, self.groups.dtypes[0], lanes)
        return with_flipped_sign(self.code, values, lanes) if self.groups.is_flipped else values


class DotGroupColumns:
    """The panels `[depth, width]` of a GEMM: given, or packed by the task that uses them, which keeps some."""

    def __init__(self, gemm: Gemm, groups: DotGroupContraction, tasks: Dim, kept: Dim):
        self.gemm, self.groups, self.code = gemm, groups, gemm.code
        self.tiles, self.depth, self.kept = gemm.tiles, groups.depth, kept
        if groups.panels is not None:
            memory = gemm.kernel.flat[groups.panels.load.buffer]
            count = ceildiv(gemm.n, constant(self.tiles.nr))
            shape = [count, self.depth, self.tiles.nr]
            if groups.in_int16:
                self.buffer = view(self.code, memory, [*shape[:2], self.tiles.nr * groups.parts], i8)
            else:
                self.buffer = view(self.code, memory, shape, i32)
            return
        self.buffer = self.code.alloc([tasks * kept, self.depth, self.tiles.nr], i32, "packed_columns")
        size = tasks * kept * self.depth * (self.tiles.nr * groups.parts)
        self.numbers = view(self.code, self.buffer, [size], groups.storage)

    def take(
        self, coords: Coords, panel: SSAValue, task: SSAValue, panels: tuple[SSAValue, SSAValue], block: SSAValue
    ) -> SSAValue:
        """Where one of the `panels` of a task is in memory.

        The first panel packs as many as are kept: in the first block of rows, or in each where these are not all.
        """
        code, (first, end) = self.code, panels
        if self.groups.panels is not None:
            return panel
        kept, number = code.dim(self.kept), code.sub(panel, first)
        slot = code.remainder(number, kept)
        base = code.mul(task, kept)
        is_needed = code.either(code.compare("eq", block, 0), code.compare("sgt", code.sub(end, first), kept))
        with (
            code.when(code.both(is_needed, code.compare("eq", slot, 0))),
            code.loop(code.minimum(code.sub(end, panel), kept), "panel") as i,
        ):
            self.pack(coords, code.add(panel, i), code.add(base, i))
        return code.add(base, slot)

    def vector(self, panel: SSAValue, r: SSAValue, number: int) -> SSAValue:
        """A vector of groups of a panel in memory, by step and number."""
        code, lanes = self.code, self.tiles.lanes
        if not self.groups.in_int16 or self.groups.panels is None:
            return code.load(*self.memory(panel, number * lanes, r), lanes)
        count = lanes * self.groups.parts
        values = code.load(self.buffer, [panel, r, code.index(number * count)], count)
        words = as_int16(code, values, self.groups.dtypes[1], count)
        return code.value(vector.BitcastOp(words, VectorType(i32, [lanes])))

    def memory(self, panel: SSAValue, column: int, r: SSAValue) -> tuple[SSAValue, Sequence[SSAValue]]:
        """The buffer and the indices of a group of a panel."""
        return self.buffer, [panel, r, self.code.index(column)]

    def pack(self, coords: Coords, panel: SSAValue, target: SSAValue) -> None:
        """Packs a panel into that with the number `target` of the memory."""
        left = self.code.mul(panel, self.tiles.nr)
        if self.gemm.is_contiguous(self.groups.columns, self.groups.contraction.column):
            self._interleave(coords, target, left)
        else:
            self._transpose(coords, target, left)

    def _numbers(self, coords: Coords, axis: int, lanes: int, on: SSAValue) -> SSAValue:
        """Numbers of the columns along an axis, `on` of them, then zeros."""
        columns = self.groups.columns
        at = self.gemm.at(columns.accesses, columns.pinned, coords)
        body = Explicit(self.gemm.kernel, self.groups.contraction.stage, at, Lanes(axis, lanes, on))
        body.run(columns.ops)
        values = body.widened(body.value(columns.value))
        return as_int16(self.code, values, self.groups.dtypes[1], lanes) if self.groups.in_int16 else values

    # Columns beside each other.

    def _interleave(self, coords: Coords, panel: SSAValue, left: SSAValue) -> None:
        code, chunks, width = self.code, self.groups.parts, self.tiles.nr
        on, k = code.sub(code.dim(self.gemm.n), left), code.dim(self.groups.k)
        start = code.mul(panel, code.dim(self.depth))

        def group(r: SSAValue, counts: Sequence[SSAValue]) -> None:
            elements = [code.add(code.mul(r, chunks), chunk) for chunk in range(chunks)]
            rows = [self._row(coords, left, *each) for each in zip(elements, counts, strict=True)]
            row = code.add(start, r)
            code.store(interleaved(self.gemm, rows), self.numbers, [code.mul(row, width * chunks)])

        whole = code.divide(k, chunks)
        with code.loop(whole, "r") as r:
            group(r, [on] * chunks)
        rest = code.sub(k, code.mul(whole, chunks))
        with code.when(code.compare("sgt", rest, 0)):
            group(whole, [code.select(code.compare("sgt", rest, chunk), on, code.index(0)) for chunk in range(chunks)])

    def _row(self, coords: Coords, left: SSAValue, element: SSAValue, on: SSAValue) -> SSAValue:
        """The numbers of a panel's columns at a step of K, `on` of them, then zeros."""
        column = self.groups.contraction.column
        here = {**coords, self.groups.reduced: element, column: left}
        return self._numbers(here, column[-1], self.tiles.nr, on)

    # Columns along K.

    def _transpose(self, coords: Coords, panel: SSAValue, left: SSAValue) -> None:
        """Blocks of as many groups as columns: each column goes to memory, from where groups are read."""
        code, contraction, lanes = self.code, self.groups.contraction, self.tiles.lanes
        numbers = lanes * self.groups.parts
        block = code.alloc([lanes, lanes], i32, "block", scope="local")
        chunks = view(code, block, [lanes, numbers], self.groups.storage)
        last, k = code.sub(code.dim(self.gemm.n), 1), code.dim(self.groups.k)
        with (
            code.loop(code.index(self.tiles.vectors), "v") as v,
            code.loop(code.dim(ceildiv(self.depth, constant(lanes))), "block") as block_number,
        ):
            first, start = code.mul(v, lanes), code.mul(block_number, numbers)
            on = code.sub(k, start)
            for j in range(lanes):
                column = code.minimum(code.add(code.add(left, first), j), last)
                here = {**coords, self.groups.reduced: start, contraction.column: column}
                values = self._numbers(here, self.groups.reduced[-1], numbers, on)
                code.store(values, chunks, [code.index(j), code.index(0)])
            groups = [code.load(block, [code.index(j), code.index(0)], lanes) for j in range(lanes)]
            self._store(panel, code.mul(block_number, lanes), first, transposed(code, groups))

    def _store(self, panel: SSAValue, top: SSAValue, first: SSAValue, rows: Sequence[SSAValue]) -> None:
        """Stores as many rows of a block as the panel has."""
        code = self.code
        for i, row in enumerate(rows):
            r = code.add(top, i)
            inside = code.select(code.compare("slt", r, code.dim(self.depth)), code.index(len(rows)), code.index(0))
            code.store(row, self.buffer, [panel, r, first], code.leading(inside, len(rows)))


def interleaved(gemm: Gemm, rows: Sequence[SSAValue]) -> SSAValue:
    """Two or four vectors as one: an element of each in turn."""
    code, lanes = gemm.code, gemm.tiles.nr
    pairs = [
        shuffle(code, (rows[i], rows[i + 1]), [each + lanes * half for each in range(lanes) for half in range(2)])
        for i in range(0, len(rows), 2)
    ]
    if len(pairs) == 1:
        return pairs[0]
    order = [2 * each + at + 2 * lanes * half for each in range(lanes) for half in range(2) for at in range(2)]
    return shuffle(code, (pairs[0], pairs[1]), order)


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
            small_m = self._small_m
            if small_m is None:
                _Emitter(gemm, self.groups).emit(coords)
                return
            with code.when(code.compare("sle", code.dim(gemm.m, "m"), DOT_GROUP_SMALL_M)) as branch:
                small_m(coords)
            with code.otherwise(branch):
                _Emitter(gemm, self.groups).emit(coords)

    @property
    def _small_m(self) -> Callable[[Coords], None] | None:
        """What emits the code for small M, if M may be small and has code of its own."""
        if self._may_read_columns:
            return self._emit_rows
        return self._emit_in_vectors if self.groups.in_tiles and self.gemm.m.constant_value is None else None

    @property
    def _may_read_columns(self) -> bool:
        """Whether columns may be read once for each row: packing them as groups takes longer."""
        rows = self.gemm.m.constant_value
        return self.groups.is_float and can_read_columns(self.gemm) and (rows is None or rows <= DOT_GROUP_SMALL_M)

    def _emit_in_vectors(self, coords: Coords) -> None:
        """The rows in vector registers."""
        tiles = replace(self.gemm.tiles, mr_sizes=(DOT_GROUP_SMALL_M,))
        _Emitter(replace(self.gemm, tiles=tiles), replace(self.groups, in_tiles=False)).emit(coords)

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
        group_bytes = GROUP_BYTES * (2 if groups.in_byte_pairs else 1)
        room = constant(gemm.kernel.target.l2_bytes // 2 // (group_bytes * self.tiles.mr))
        most = maximum(floordiv(room, maximum(groups.depth, constant(1))), constant(1))
        self.blocks = ceildiv(self.partition.strips, most)
        self.strips = ceildiv(self.partition.strips, self.blocks)
        self.columns = DotGroupColumns(gemm, groups, threads, self._kept)
        self.rows = DotGroupRows(gemm, groups, threads, self.strips * self.tiles.mr)
        self.order = StepOrder(gemm, groups.depth, threads) if groups.in_byte_pairs else None

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
            if self.groups.in_tiles:
                code.emit(ConfigureTilesOp(code.dim(mod(self.groups.depth, constant(TILE_SIZE)))))
            self.rows.take(task)
            first, end = own.strips
            mr = code.dim(self.strips)
            count = code.divide(code.add(code.sub(end, first), code.sub(mr, 1)), mr)
            with code.loop(count, "block") as number:
                lower = code.add(first, code.mul(number, mr))
                block = RowBlock(task, own, number, (lower, code.minimum(code.add(lower, mr), end)))
                self._block(coords, block)
            if self.groups.in_tiles:
                code.emit(ReleaseTilesOp())

    def _block(self, coords: Coords, block: RowBlock) -> None:
        """Packs the rows of a block, and multiplies them with the panels."""
        code, (first, end), panels = self.code, block.strips, block.own.panels
        top, bottom = (code.mul(each, self.tiles.mr) for each in (first, end))
        with code.loop(code.sub(code.minimum(bottom, code.dim(self.m)), top), "i") as i:
            self.rows.pack(coords, code.add(top, i), i)
        with code.loop(panels[1], "panel", lower=panels[0]) as panel:
            packed = self.columns.take(coords, panel, block.task, panels, block.number)
            columns = partial(self.columns.vector, packed)
            steps = None if self.order is None else self.order.of(block.task, columns)
            tile = DotGroupTile(self.gemm, self.groups, columns, steps)
            some = self.partition.strips_of(block.own, panel)
            lower, upper = code.maximum(some[0], first), code.minimum(some[1], end)
            with code.loop(upper, "strip", lower=lower) as strip:
                is_last = code.compare("sge", code.add(strip, 1), upper)
                row = code.mul(code.select(is_last, lower, code.add(strip, 1)), self.tiles.mr)
                column = code.mul(code.select(is_last, code.add(panel, 1), panel), self.tiles.nr)
                self._strip(tile, packed, coords, (strip, panel), top, (row, column))

    def _strip(
        self,
        tile: DotGroupTile,
        packed: SSAValue,
        coords: Coords,
        at: tuple[SSAValue, SSAValue],
        top: SSAValue,
        later: Corner,
    ) -> None:
        """A tile of a strip and a panel, by the smallest micro-kernel that has all its rows."""
        code, (strip, panel) = self.code, at
        row = code.mul(strip, self.tiles.mr)
        accumulators = code.alloc([self.tiles.mr, self.tiles.nr], self.groups.total, "tile")

        def group(i: int, r: SSAValue) -> SSAValue:
            return self.rows.group(code.add(code.sub(row, top), i), r)

        def rows(i: int, r: SSAValue) -> tuple[SSAValue, Sequence[SSAValue]]:
            return self.rows.memory(code.add(code.sub(row, top), i), r)

        def half(number: int, i: int, r: SSAValue) -> SSAValue:
            return self.rows.half(number, code.add(code.sub(row, top), i), r)

        def multiply(mr: int) -> None:
            if self.groups.in_tiles:
                tile.emit_in_tiles(mr, rows, partial(self.columns.memory, packed), accumulators)
            else:
                tile.emit(mr, group, accumulators, [partial(half, number) for number in range(len(self.rows.halves))])

        def emit(left: SSAValue, mr_sizes: Sequence[int]) -> None:
            mr, *smaller = mr_sizes
            if not smaller:
                multiply(mr)
                return
            with code.when(code.compare("sgt", left, smaller[0])) as branch:
                multiply(mr)
            with code.otherwise(branch):
                emit(left, smaller)

        emit(code.sub(code.dim(self.m), row), self._mr_sizes)
        left = code.mul(panel, self.tiles.nr)
        store_tile(self.gemm, EpilogueEmitter(self.gemm, None, None), accumulators, coords, (row, left), later)

    @property
    def _mr_sizes(self) -> tuple[int, ...]:
        """Rows of the tiles: if their number is known, the last tile has as many as are left."""
        rows, known = self.tiles.mr, self.m.constant_value
        if self.groups.in_tiles:
            return self.tiles.mr_sizes if known is None or known > TILE_SIZE else (TILE_SIZE,)
        if known is None:
            return (*self.tiles.mr_sizes, DOT_GROUP_MIN_MR)
        rest = known % rows
        return (rest,) if 0 < known < rows else (rows, rest) if rest else (rows,)

"""Winograd convolutions: blocks of tiles go through both transforms and the products in cache.

Data and results lie in blocks of channels, or, bytes, with channels last. Patches of bytes are numbers of 16 bits after
their transform, of which the micro-kernel multiplies pairs.

A task transforms the patches of a block of tiles, multiplies them point by point with panels of the weights, by the
micro-kernel of matrix products, and transforms the sums of some panels at a time back, with the epilogue. If there are
fewer blocks than threads can take, tasks also have ranges of the panels, and each transforms the patches for itself,
which takes little of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from typing_extensions import override
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, f32, i8
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import (
    COMPUTE_TASK_MACS,
    WEIGHT_PREFETCH_STEPS,
    WINOGRAD_KC,
    WINOGRAD_MAX_ADDRESSES,
    WINOGRAD_MAX_INLINED_TILE,
    WINOGRAD_MAX_TILES,
    WINOGRAD_MIN_TILES,
    WINOGRAD_ROW_LENGTHS,
    WINOGRAD_TASKS_PER_THREAD,
)
from lowering.kernels.emit.body import Explicit, Lanes
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Kernel, Routine, buffer_type, flat, shared_units
from lowering.kernels.gemm.dot_group_micro_kernel import as_int16, view
from lowering.kernels.gemm.epilogue import OutputTile
from lowering.kernels.gemm.micro_kernel import Matrix, MicroKernel, Prefetch, TileOperands
from lowering.kernels.gemm.tiling import Tiling
from lowering.kernels.structure.winograd import LinearProgram, Winograd
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.blocks import FlattenOp
from tir_dialect.target import LINE_BYTES
from tir_dialect.types import BufferType

Position: TypeAlias = tuple[SSAValue, SSAValue, SSAValue, SSAValue]
"""Of a vector of data or results: its image, its number among those of a pixel, its row and its column."""


@dataclass(frozen=True)
class LinearMap(Routine):
    """A linear program on vectors: inputs at `source + row * row_step + column * column_step`, output number `i` at
    `target + i * step`.
    """

    lanes: int
    program: LinearProgram

    @property
    @override
    def label(self) -> str:
        program = self.program
        return f"linear.{program.dtype}.{len(program.inputs)}to{len(program.outputs)}x{self.lanes}"

    @override
    def sizes(self) -> Sequence[str]:
        return "source", "row_step", "column_step", "target", "step"

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        program = self.program
        return flat(program.source, "inputs") | flat(program.dtype, "outputs")

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        steps = size["row_step"], size["column_step"]
        for number, value in enumerate(self.results(code, buffer["inputs"], size["source"], steps)):
            offset = code.add(size["target"], code.mul(size["step"], number))
            code.store(value, buffer["outputs"], [offset])

    def results(
        self, code: Code, inputs: SSAValue, source: SSAValue, steps: tuple[SSAValue, SSAValue]
    ) -> Sequence[SSAValue]:
        """The values of the outputs, whose code goes here."""
        program, lanes = self.program, self.lanes
        values: list[SSAValue] = []
        for row, column in program.inputs:
            away = code.add(code.mul(steps[0], row), code.mul(steps[1], column))
            value = code.load(inputs, [code.add(source, away)], lanes)
            values.append(as_int16(code, value, program.source, lanes) if program.extends else value)
        values += [code.splat(code.number(number, f32), lanes) for number in program.numbers]
        products: dict[int, tuple[SSAValue, SSAValue]] = {}
        for name, (left, right) in program.instructions:
            values.append(self._value(code, name, (left, right), values, products))
            if name == "mul":
                products[len(values) - 1] = values[left], values[right]
        return [values[output] for output in program.outputs]

    def _value(
        self,
        code: Code,
        name: str,
        operands: tuple[int, int],
        values: Sequence[SSAValue],
        products: Mapping[int, tuple[SSAValue, SSAValue]],
    ) -> SSAValue:
        """An instruction; sums and differences with a product are one multiply-add."""
        left, right = operands
        if name == "mul":
            return code.value(arith.MulfOp(values[left], values[right]))
        if right in products:
            factor, other = products[right]
            return code.fma(code.value(arith.NegfOp(factor)) if name == "sub" else factor, other, values[left])
        if left in products and name == "add":
            return code.fma(*products[left], values[right])
        floats = isinstance(self.program.dtype, AnyFloat)
        if name == "add":
            return code.value((arith.AddfOp if floats else arith.AddiOp)(values[left], values[right]))
        return code.value((arith.SubfOp if floats else arith.SubiOp)(values[left], values[right]))


def suits(winograd: Winograd, tiles: Tiling) -> bool:
    """Whether channels fill vectors, and the panels of weights are as wide as register tiles."""
    products, vector = winograd.products, winograd.layout.vector
    data, results = (each.stage.extents[vector].constant_value or 0 for each in (winograd.there, winograd.back))
    if products.width != tiles.nr:
        return False
    if winograd.layout.lane is not None:
        return data == results == tiles.lanes
    return data % (products.group * tiles.lanes) == 0 and results % tiles.lanes == 0


@dataclass(frozen=True)
class Memory:
    """Rows of vectors for each point, a little apart so that they are in different sets of the caches."""

    buffer: SSAValue
    groups: SSAValue
    """The same memory as numbers that the micro-kernel multiplies: of 32 bits."""
    row: int
    """Elements from a tile to the next."""
    point: int
    """Elements from a point to the next."""


@dataclass(frozen=True)
class WeightPanels:
    """The panel of a register tile and the next one, by their first elements."""

    buffer: SSAValue
    first: SSAValue
    following: SSAValue
    half: SSAValue
    """Which half of the next one is prefetched."""


class WinogradConvolution:
    """Generates a Winograd convolution, including its batch axis."""

    def __init__(self, kernel: Kernel, winograd: Winograd, tiles: Tiling):
        self.kernel, self.code, self.winograd, self.tiles = kernel, kernel.code, winograd, tiles
        products, self.layout, back = winograd.products, winograd.layout, winograd.back
        self.points, self.filters, self.channels = (products.extent(axis) for axis in (0, 4, 5))
        self.group_size = products.group
        self.panels = -(-self.filters // tiles.nr)
        self.lanes, self.tile, self.dilation = tiles.lanes, back.grid.tile, back.grid.dilation
        self.side = round(self.points**0.5)
        extents = back.stage.extents
        self.grid = extents[self.layout.row], extents[self.layout.column]
        self.count = product_of((extents[self.layout.batch], *self.grid))
        # As many tiles as let their patches and sums take half of L2.
        each = 4 * self.points * (self.channels // self.group_size + min(self.filters, 2 * self.tiles.nr))
        fitting = kernel.target.l2_bytes // 2 // each
        known, mr = self.count.constant_value, self.tiles.mr
        most = max(-(-WINOGRAD_MIN_TILES // mr), min(WINOGRAD_MAX_TILES, fitting) // mr) * mr
        self.block = most if known is None else max(1, min(most, known))
        # As many panels as let their sums take a quarter of L2.
        each = 4 * self.points * self.block * self.tiles.nr
        self.panel_group = max(1, min(self.panels, kernel.target.l2_bytes // 4 // each))

    @property
    def _total(self) -> AnyFloat | IntegerType:
        """The type of sums."""
        return self.winograd.back.program.dtype

    @property
    def _data_lanes(self) -> int:
        """Channels in a vector of data."""
        return self.lanes * self.group_size

    def emit(self) -> None:
        """All results."""
        code, blocks, splits = self.code, *self._partition()
        units = blocks * splits
        threads = self._threads
        tasks = minimum(units, maximum(WINOGRAD_TASKS_PER_THREAD * (threads - 1) * threads, constant(1)))
        rows = self._rows_of_block
        with shared_units(code, units, tasks) as (lower, upper):
            length = next((length for length in WINOGRAD_ROW_LENGTHS if self.channels <= length), self.channels)
            there = self._memory("transformed", rows, length + self._data_lanes, self.group_size)
            back = self._memory("sums", rows, self.panel_group * self.tiles.nr + self.lanes, 1)
            with code.loop(upper, "unit", lower=lower, plain=True) as unit:
                block, split = code.divide(unit, code.dim(splits)), code.remainder(unit, code.dim(splits))
                first, last = self._tiles_of(block, code.dim(blocks))
                low, high = self._range(split, code.index(self.panels), code.dim(splits))
                self._patches(there, first, last)
                groups = code.divide(code.add(code.sub(high, low), self.panel_group - 1), self.panel_group)
                with code.loop(groups, "group") as group:
                    begin = code.add(low, code.mul(group, self.panel_group))
                    end = code.minimum(high, code.add(begin, self.panel_group))
                    self._products(there, back, code.sub(last, first), (begin, end))
                    self._results(back, (first, last), (begin, end))

    def _memory(self, name: str, rows: int, width: int, group: int) -> Memory:
        """Memory of a task, for so many rows of each point; `group` elements are one number of the micro-kernel."""
        code, point = self.code, rows * width + group * self.lanes
        if group == 1:
            buffer = code.alloc([self.points * point], self._total, name)
            return Memory(buffer, buffer, width, point)
        groups = code.alloc([self.points * point // group], self._total, name)
        dtype = self.winograd.there.program.dtype
        return Memory(view(code, groups, [self.points * point], dtype), groups, width, point)

    def _tiles_of(self, block: SSAValue, blocks: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The first tile of a block and the one after its last: whole register tiles, but for the last block."""
        code, count, mr = self.code, self.code.dim(self.count), self.tiles.mr
        strips = code.divide(code.add(count, mr - 1), mr)
        first, last = (code.mul(each, mr) for each in self._range(block, strips, blocks))
        return first, code.minimum(last, count)

    def _range(self, number: SSAValue, count: SSAValue, parts: SSAValue) -> tuple[SSAValue, SSAValue]:
        code = self.code
        low = code.divide(code.mul(number, count), parts)
        return low, code.divide(code.mul(code.add(number, 1), count), parts)

    # Work partition

    @property
    def _threads(self) -> Dim:
        work = self.count * (self.points * self.channels * self.filters)
        worthwhile = floordiv(work, constant(self.kernel.least_work(COMPUTE_TASK_MACS)))
        return maximum(minimum(worthwhile, constant(self.kernel.target.cores)), constant(1))

    def _partition(self) -> tuple[Dim, Dim]:
        """The number of blocks of tiles, and of ranges of panels."""
        blocks, one = maximum(ceildiv(self.count, constant(self.block)), constant(1)), constant(1)
        wanted = maximum(WINOGRAD_TASKS_PER_THREAD * (self._threads - 1), one)
        return blocks, minimum(ceildiv(wanted, blocks), constant(self.panels))

    # From data to points

    def _patches(self, memory: Memory, first: SSAValue, last: SSAValue) -> None:
        """The transformed patches of some tiles."""
        code, there, lanes = self.code, self.winograd.there, self._data_lanes
        data = self.kernel.flat[self.winograd.data]
        strides = buffer_type(self.kernel.values[self.winograd.data]).strides
        steps = [code.dim(strides[axis] * self.dilation) for axis in (self.layout.row, self.layout.column)]
        program = LinearMap(lanes, there.program)
        patch = code.alloc([self.points * lanes], there.program.source, "patch")
        patch = code.value(FlattenOp(patch))
        with code.loop(last, "t", lower=first, vectorize=False) as t:
            n, row, column = self._position(t, self._low)
            slot = code.mul(code.sub(t, first), memory.row)
            inside = self._is_inside(row, column)
            with code.loop(self._vectors(there.stage.extents, lanes), "c", vectorize=False) as c:
                target = code.add(slot, code.mul(c, lanes))
                position = n, c, row, column
                sizes = [self._offset(self.winograd.data, position, lanes), *steps, target, code.index(memory.point)]
                with code.when(inside) if inside is not None else nullcontext() as branch:
                    self.kernel.routines.call(code, program, sizes, [data, memory.buffer])
                if branch is not None:
                    with code.otherwise(branch):
                        self._copy_patch(patch, position)
                        sizes[:3] = [code.index(each) for each in (0, self.side * lanes, lanes)]
                        self.kernel.routines.call(code, program, sizes, [patch, memory.buffer])

    def _vectors(self, extents: Sequence[Dim], lanes: int) -> SSAValue:
        """How many vectors the channels of a stage fill."""
        channels = extents[self.layout.channel]
        return self.code.dim(channels if self.layout.lane is not None else floordiv(channels, constant(lanes)))

    def _offset(self, buffer: SSAValue, position: Position, lanes: int) -> SSAValue:
        """Where a vector of channels begins, by its image, its number, its row and its column."""
        strides, layout = buffer_type(self.kernel.values[buffer]).strides, self.layout
        channel = strides[layout.channel] * (1 if layout.lane is not None else lanes)
        steps = strides[layout.batch], channel, strides[layout.row], strides[layout.column]
        return self.code.linear(constant(0), [*zip(position, steps, strict=True)])

    @property
    def _low(self) -> tuple[int, int]:
        padding, layout = self.winograd.padding, self.layout
        return (0, 0) if padding is None else (padding.low[layout.row], padding.low[layout.column])

    def _position(self, t: SSAValue, low: tuple[int, int]) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The image of a tile, and its first row and column, so many before which the patch begins."""
        code = self.code
        rows, columns = map(code.dim, self.grid)
        rest = code.divide(t, columns)
        row, column = self._first(code.remainder(rest, rows)), self._first(code.remainder(t, columns))
        return code.divide(rest, rows), code.sub(row, low[0]), code.sub(column, low[1])

    def _first(self, number: SSAValue) -> SSAValue:
        """The first row or column of a tile; those of `dilation` tiles take turns."""
        code = self.code
        if self.dilation == 1:
            return code.mul(number, self.tile)
        group = code.mul(code.divide(number, self.dilation), self.tile * self.dilation)
        return code.add(group, code.remainder(number, self.dilation))

    @property
    def _extents(self) -> tuple[Dim, Dim]:
        padding = self.winograd.padding
        assert padding is not None  # without, patches are within the data
        return padding.data[self.layout.row], padding.data[self.layout.column]

    def _is_inside(self, row: SSAValue, column: SSAValue) -> SSAValue | None:
        """Whether a patch is within the data; `None` if all are."""
        if self.winograd.padding is None:
            return None
        code, found, length = self.code, None, (self.side - 1) * self.dilation + 1
        for at, extent in zip((row, column), self._extents, strict=True):
            below = code.compare("sge", at, 0)
            above = code.compare("sle", code.add(at, length), code.dim(extent))
            both = code.both(below, above)
            found = both if found is None else code.both(found, both)
        return found

    def _copy_patch(self, patch: SSAValue, position: Position) -> None:
        """The data of a patch, and the constant around them where there are none."""
        code, (n, c, row, column), lanes = self.code, position, self._data_lanes
        filler = self._filler()
        for number in range(self.points):
            code.store(filler, patch, [code.index(number * lanes)])
        (top, bottom), (left, right) = (
            (self._steps_to(code.sub(code.index(0), at)), code.minimum(self._steps_to(code.sub(end, at)), self.side))
            for at, end in zip((row, column), map(code.dim, self._extents), strict=True)
        )
        with (
            code.loop(bottom, "p", lower=top, vectorize=False) as p,
            code.loop(right, "q", lower=left, vectorize=False) as q,
        ):
            there = n, c, self._further(row, p), self._further(column, q)
            offset = self._offset(self.winograd.data, there, lanes)
            value = code.load(self.kernel.flat[self.winograd.data], [offset], lanes)
            code.store(value, patch, [code.mul(code.add(code.mul(p, self.side), q), lanes)])

    def _filler(self) -> SSAValue:
        """A vector of the constant around the data."""
        code, padding = self.code, self.winograd.padding
        assert padding is not None  # a patch that is not within the data
        value = padding.filler.value
        if padding.is_zero or not isinstance(value, FloatAttr | IntegerAttr):
            return code.zeros(i8 if self.winograd.there.program.extends else f32, self._data_lanes)
        return code.splat(code.value(arith.ConstantOp(value)), self._data_lanes)

    def _further(self, first: SSAValue, number: SSAValue) -> SSAValue:
        """A row or column of a tile or patch, by its number in it."""
        return self.code.add(first, number if self.dilation == 1 else self.code.mul(number, self.dilation))

    def _steps_to(self, distance: SSAValue) -> SSAValue:
        """How many rows or columns of a tile are before so many elements: none if that is negative."""
        code = self.code
        if self.dilation == 1:
            return code.maximum(distance, 0)
        return code.divide(code.add(code.maximum(distance, 0), self.dilation - 1), self.dilation)

    # Products

    @property
    def _mr_choices(self) -> tuple[int, ...]:
        """The heights of register tiles, in falling order: those that blocks of a known number of tiles need, else
        some.
        """
        most, known = self.tiles.mr, self.count.constant_value
        if known is None:
            return tuple(sorted({most, *range(2, most, 2 if most <= 8 else 3), 1}, reverse=True))
        strips, blocks = -(-known // most), max(1, -(-known // self.block))
        ends = [min(known, most * (number * strips // blocks)) for number in range(blocks + 1)]
        sizes = {last - first for first, last in pairwise(ends)} - {0}
        return tuple(sorted({-(-size // -(-size // most)) for size in sizes}, reverse=True)) or (1,)

    @property
    def _rows_of_block(self) -> int:
        """Rows of memory for a block: the last register tile of one may have more than there are tiles."""
        choices, most = self._mr_choices, 0
        for count in range(1, self.block + 1):
            strips = -(-count // self.tiles.mr)
            fitting = [mr for mr in choices if mr >= -(-count // strips)] or [choices[0]]
            most = max(most, strips * min(fitting))
        return most

    def _products(self, there: Memory, back: Memory, count: SSAValue, panels: tuple[SSAValue, SSAValue]) -> None:
        """The sums of all points for some panels."""
        code, nr = self.code, self.tiles.nr
        begin, end = panels
        strips = code.divide(code.add(count, self.tiles.mr - 1), self.tiles.mr)
        each = code.divide(code.add(count, code.sub(strips, 1)), strips)
        weights, steps = self._weights(), self.channels // self.group_size
        with (
            code.loop(code.index(self.points), "point", vectorize=False) as point,
            code.loop(end, "panel", lower=begin, vectorize=False) as panel,
        ):
            number = code.add(code.mul(point, self.panels), panel)
            first = code.mul(number, steps * nr)
            column = code.mul(code.sub(panel, begin), nr)
            is_last = code.compare("eq", code.add(panel, 1), end)
            jump = code.select(is_last, code.sub(code.add(begin, self.panels), panel), code.index(1))
            following = code.add(first, code.mul(jump, steps * nr))

            def emit(mr: int) -> None:
                with code.loop(strips, "strip", vectorize=False) as strip:
                    row = code.mul(strip, mr)
                    source = code.add(
                        code.mul(point, there.point // self.group_size), code.mul(row, there.row // self.group_size)
                    )
                    offset = code.add(code.add(code.mul(point, back.point), code.mul(row, back.row)), column)
                    panels = WeightPanels(weights, first, following, code.remainder(strip, 2))
                    self._strip(mr, (there, source), panels, (back, offset))

            self._smallest(each, self._mr_choices, emit)

    def _weights(self) -> SSAValue:
        """The weights as numbers that the micro-kernel multiplies."""
        buffer = self.kernel.flat[self.winograd.products.weights]
        if self.group_size == 1:
            return buffer
        count = product_of(buffer_type(buffer).shape)
        return view(self.code, buffer, [floordiv(count, constant(self.group_size))], self._total)

    def _strip(
        self, mr: int, rows: tuple[Memory, SSAValue], panels: WeightPanels, sums: tuple[Memory, SSAValue]
    ) -> None:
        """The sums of a register tile, block of channels by block.

        Each of two strips prefetches half of the next panel, a single one all of it: weights come from L3 or memory.
        """
        code, nr, steps = self.code, self.tiles.nr, self.channels // self.group_size
        blocks = -(-steps // WINOGRAD_KC)
        lines = range(0, nr, LINE_BYTES // byte_size(self._total))
        prefetches = tuple(Prefetch(WEIGHT_PREFETCH_STEPS, line, 1) for line in lines)
        half = nr // 2
        ahead = ((0, half),) if self.block > self.tiles.mr else ((0, nr), (half, nr))
        done = code.mul(panels.half, steps * half) if len(ahead) == 1 else code.index(0)
        soon = Matrix(panels.buffer, code.add(panels.following, done), 1, nr, self.lanes)
        kind = MicroKernel(self._total, mr, self.tiles.vectors, self.lanes, prefetches=prefetches, ahead=ahead)
        # So few addresses are in registers, and tiles for other numbers of channels are the same function.
        apart = rows[0].row // self.group_size
        each = code.index(apart) if mr <= min(WINOGRAD_MAX_ADDRESSES, self.tiles.mr - 1) else apart
        left = Matrix(rows[0].groups, rows[1], each, 1, self.lanes)
        right = Matrix(panels.buffer, panels.first, 1, nr, self.lanes)
        for block in range(blocks):
            lower, upper = (code.index(at * steps // blocks) for at in (block, block + 1))
            tile = OutputTile(sums[0].buffer, sums[1], code.index(sums[0].row), code.index(block))
            kind.call(self.kernel, TileOperands(left, right, lower, upper, tile, ahead=soon))

    def _smallest(self, count: SSAValue, choices: Sequence[int], emit: Callable[[int], None]) -> None:
        """The smallest register tile that has so many rows."""
        most, *smaller = choices
        if not smaller:
            emit(most)
            return
        with self.code.when(self.code.compare("sgt", count, smaller[0])) as branch:
            emit(most)
        with self.code.otherwise(branch):
            self._smallest(count, smaller, emit)

    # From points to results

    def _results(self, sums: Memory, tiles: tuple[SSAValue, SSAValue], panels: tuple[SSAValue, SSAValue]) -> None:
        """The results of some tiles and panels."""
        code, nr, lanes, back = self.code, self.tiles.nr, self.lanes, self.winograd.back
        low = code.mul(panels[0], nr // lanes)
        high = code.minimum(code.mul(panels[1], nr // lanes), self._vectors(back.stage.extents, lanes))
        program = LinearMap(lanes, back.program)
        steps = code.index(self.side * sums.point), code.index(sums.point)
        with code.loop(tiles[1], "t", lower=tiles[0], vectorize=False) as t:
            n, row, column = self._position(t, (0, 0))
            slot = code.mul(code.sub(t, tiles[0]), sums.row)
            count, width = self._ends(row, column)

            def whole(c: SSAValue, source: SSAValue) -> None:
                for number, value in enumerate(program.results(code, sums.buffer, source, steps)):
                    p, q = map(code.index, divmod(number, self.tile))
                    self._store(value, (n, c, self._further(row, p), self._further(column, q)))

            def some(c: SSAValue, source: SSAValue) -> None:
                square = code.value(FlattenOp(code.alloc([self.tile**2 * lanes], self._total, "tile")))
                sizes = [source, *steps, code.index(0), code.index(lanes)]
                self.kernel.routines.call(code, program, sizes, [sums.buffer, square])
                with (
                    code.loop(count, "p", vectorize=False) as p,
                    code.loop(width, "q", vectorize=False) as q,
                ):
                    offset = code.mul(code.add(code.mul(p, self.tile), q), lanes)
                    value = code.load(square, [offset], lanes)
                    self._store(value, (n, c, self._further(row, p), self._further(column, q)))

            def channels(emit: Callable[[SSAValue, SSAValue], None]) -> None:
                with code.loop(high, "c", lower=low, vectorize=False) as c:
                    emit(c, code.add(slot, code.mul(code.sub(c, low), lanes)))

            if self.tile > WINOGRAD_MAX_INLINED_TILE:
                channels(some)
            else:
                is_whole = code.both(code.compare("eq", count, self.tile), code.compare("eq", width, self.tile))
                with code.when(is_whole) as branch:
                    channels(whole)
                with code.otherwise(branch):
                    channels(some)

    def _ends(self, row: SSAValue, column: SSAValue) -> tuple[SSAValue, SSAValue]:
        """How many rows and columns of a tile are results."""
        code, steps = self.code, self.winograd.steps
        if not steps:  # the memory has room for whole tiles
            return code.index(self.tile), code.index(self.tile)
        rows, columns = (code.dim(steps[0].extents[axis]) for axis in (self.layout.row, self.layout.column))
        count, width = self._steps_to(code.sub(rows, row)), self._steps_to(code.sub(columns, column))
        return code.minimum(count, self.tile), code.minimum(width, self.tile)

    def _store(self, value: SSAValue, position: Position) -> None:
        """The epilogue of a vector of results, which is stored."""
        code, back, layout = self.code, self.winograd.back, self.layout
        if not self.winograd.steps:
            code.store(value, self.kernel.flat[back.target], [self._offset(back.target, position, self.lanes)])
            return
        n, c, row, column = position
        at = {layout.batch: n, layout.row: row, layout.column: column}
        if layout.lane is None:
            at[layout.channel] = code.mul(c, self.lanes)
        else:
            at |= {layout.channel: c, layout.lane: code.index(0)}
        produced = {back.target: value}
        for stage in self.winograd.steps:
            body = Explicit(self.kernel, stage, at, Lanes(layout.vector, self.lanes))
            for load in stage.loads:
                if load.buffer in produced:
                    body.values[load.result] = produced[load.buffer]
            body.run(stage.body)
            for store in stage.stores:
                produced[store.buffer] = body.widened(body.value(store.value))

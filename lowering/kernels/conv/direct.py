"""Direct convolution on channel-blocked data, without packing, in tiles of MR pixels of a row.

The work is partitioned into ranges of pixel tiles and groups of channel blocks. A tile with more pixels than it stores,
and the last group of blocks, may overlap others: they compute some outputs twice and store them once.

Tiles prefetch the next weights and the memory of their outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.conv.channel_blocks import (
    ChannelBlocks,
    ReductionBlock,
    ReductionBlocks,
    RegisterTile,
    choose_register_tile,
    find_channel_blocks,
    find_reduction_blocks,
    load_of,
    remainder_blocks,
    runtime_step_cycles,
)
from lowering.kernels.conv.micro_kernel import (
    MicroKernel,
    PaddedAxis,
    PrefetchedCacheLines,
    TileMemory,
    find_padded_axes,
)
from lowering.kernels.cost_model import (
    COMPUTE_TASK_MACS,
    CONV_DEFAULT_TILES_PER_IMAGE,
    CONV_LARGE_DILATION,
    CONV_MAX_PREFETCHED_LINES,
    CONV_TASKS_PER_THREAD,
)
from lowering.kernels.emit.kernel import buffer_type, shared_units
from lowering.kernels.gemm.epilogue import EpilogueEmitter
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.structure.contraction import Factor
from lowering.kernels.structure.stages import AffineAccess
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum, total
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import LoadOp
from tir_dialect.target import LINE_BYTES


class RowTiles:
    """Generates the division of rows into tiles."""

    def __init__(self, tile: MicroKernel, shape: RegisterTile, padded_axes: Mapping[int, PaddedAxis]):
        self.tile, self.shape, self.padded_axes = tile, shape, padded_axes
        self.gemm, self.code = tile.gemm, tile.code
        self.row_length = self.gemm.size(tile.blocks.pixels)

    def count(self) -> SSAValue:
        """The number of tiles of a row: the cheapest one for its length."""
        code, row_length = self.code, self.code.dim(self.row_length)
        if self.row_length.is_constant:
            return code.dim(ceildiv(self.row_length, constant(self.shape.pixels)))
        least, *more = sorted(self.shape.mr_choices)
        mr, time = code.index(least), self._time(row_length, least)
        for each in more:
            other = self._time(row_length, each)
            fits = code.compare("sge", row_length, each)
            better = code.select(fits, code.compare("sle", other, time), fits)
            mr, time = code.select(better, code.index(each), mr), code.select(better, other, time)
        return code.divide(code.add(row_length, code.sub(mr, 1)), mr)

    def pixels(self, number: SSAValue, tiles: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The range of pixels of a tile; tiles differ by one pixel at most."""
        code = self.code
        ends = number, code.add(number, 1)
        first, end = (code.divide(code.mul(each, code.dim(self.row_length)), tiles) for each in ends)
        return first, end

    def mr_of(self, pixels: SSAValue) -> SSAValue:
        """The smallest MR that suits so many pixels."""
        code, (most, *smaller) = self.code, self.shape.mr_choices
        mr = code.index(most)
        for each in smaller:
            mr = code.select(code.compare("sle", pixels, each), code.index(each), mr)
        return mr

    def _time(self, row_length: SSAValue, mr: int) -> SSAValue:
        """How long a row takes in tiles of some MR, in quarters of a cycle for each step of the reduction."""
        code, registers = self.code, self.gemm.kernel.target.tile_registers
        cycles = round(4 * runtime_step_cycles(registers, mr, self.tile.width))
        tiles, low = code.divide(code.add(row_length, mr - 1), mr), self.shape.smallest_consecutive_mr(mr)
        dilated = next(
            (each for number, each in self.padded_axes.items() if self._has_large_dilation(number, each)), None
        )
        used = tiles
        if dilated is not None:
            count = self.gemm.contraction.stage.extents[dilated.window].constant_value or 0
            used = code.dim(dilated.tiles(count, self.row_length, ceildiv(self.row_length, constant(mr))))
        if low is None:
            return code.mul(used, cycles)
        pixels = code.maximum(row_length, code.mul(tiles, low))
        if dilated is not None:
            pixels = code.divide(code.mul(used, pixels), code.maximum(tiles, 1))
        return code.divide(code.mul(pixels, cycles), mr)

    def _has_large_dilation(self, number: int, padded_axis: PaddedAxis) -> bool:
        """Whether the dilation is so large that some taps are in the padding for all pixels of a tile."""
        known = self.tile.extents[number].is_constant
        return known and (padded_axis.axis,) == self.tile.blocks.pixels and padded_axis.dilation >= CONV_LARGE_DILATION


@dataclass(frozen=True)
class TileRange:
    """A range of tiles: the batch, the tiles of a row, and the group of channel blocks."""

    coords: Coords
    tiles: SSAValue
    group: SSAValue


@dataclass(frozen=True)
class TilePosition:
    """The position of a tile, its MR, and the range of its pixels and blocks that it stores."""

    coords: Coords
    pixel: SSAValue
    mr: SSAValue
    block: SSAValue
    own: tuple[SSAValue, SSAValue]
    """A range of pixels. The others are those of another tile: in-place epilogues may have overwritten their inputs."""
    own_blocks: tuple[SSAValue, SSAValue]


@dataclass(frozen=True)
class TilePositions:
    """Generates the positions of tiles."""

    row_tiles: RowTiles
    has_remainder_tile: bool
    """Whether the blocks after the last whole group have a tile of their own."""

    def of(self, tile_range: TileRange, tile_number: SSAValue) -> TilePosition:
        """The position of a tile, which begins early enough to be whole at the end of a row or of the blocks."""
        row_tiles, code = self.row_tiles, self.row_tiles.code
        row, number = code.divide(tile_number, tile_range.tiles), code.remainder(tile_number, tile_range.tiles)
        wanted, end = row_tiles.pixels(number, tile_range.tiles)
        mr = row_tiles.mr_of(code.sub(end, wanted))
        pixel = code.minimum(wanted, code.sub(code.dim(row_tiles.row_length), mr))
        block, own_blocks = self._blocks_of(tile_range.group)
        coords = {**tile_range.coords, **coords_of(row_tiles.gemm, row_tiles.tile.blocks.rows, row)}
        own = code.sub(wanted, pixel), code.sub(end, pixel)
        return TilePosition(coords, pixel, mr, block, own, own_blocks)

    def _blocks_of(self, group: SSAValue) -> tuple[SSAValue, tuple[SSAValue, SSAValue]]:
        """The first block of a tile, and the range of its blocks that it stores."""
        code, count, channels = self.row_tiles.code, self.row_tiles.shape.blocks, self.row_tiles.gemm.rounds
        first = code.mul(group, count)
        if self.has_remainder_tile:
            return first, (code.index(0), code.minimum(code.sub(code.dim(channels), first), count))
        block = code.minimum(first, code.dim(channels - count))
        return block, (code.sub(first, block), code.index(count))


def coords_of(gemm: Gemm, axes: tuple[int, ...], number: SSAValue) -> Coords:
    """The values of single axes, from one index into all of them."""
    return {(axis,): value for axis, value in gemm.at((), axes, {axes: number}).items()}


class Prefetches:
    """Generates the prefetches of a tile. Inside of a network even weights that fit in a cache are not there yet."""

    def __init__(self, tile: MicroKernel, shape: RegisterTile, reduction_blocks: ReductionBlocks | None):
        self.tile, self.shape, self.reduction_blocks = tile, shape, reduction_blocks
        self.gemm, self.code = tile.gemm, tile.code

    def of(
        self, here: Coords, weights: SSAValue, number: SSAValue, reduction_block: ReductionBlock | None
    ) -> list[PrefetchedCacheLines]:
        """What a tile prefetches whose weights are at `weights`, after `number` other tiles."""
        ahead = self._weights(weights, number, reduction_block)
        return [*([] if ahead is None else [ahead]), *self._results(here)]

    def _weights(
        self, weights: SSAValue, number: SSAValue, reduction_block: ReductionBlock | None
    ) -> PrefetchedCacheLines | None:
        """The weights of the next reduction block or of the next channel blocks; `None` if they are in the cache.

        The tiles of one image share these prefetches.
        """
        code, contraction, tile, blocks = self.code, self.gemm.contraction, self.tile, self.tile.blocks
        extents = [extent.constant_value for extent in (*tile.extents, tile.jump)]
        if len(contraction.outer) != 1 or len(tile.extents) < 2 or None in extents:
            return None
        steps = extents[0] if self.reduction_blocks is None else self.reduction_blocks.steps
        known = (extent for axis in blocks.rows if (extent := contraction.stage.extents[axis]).is_constant)
        row_length = self.gemm.size(blocks.pixels)
        tiles = (
            product_of([ceildiv(row_length, constant(self.shape.pixels)), *known]).constant_value
            or CONV_DEFAULT_TILES_PER_IMAGE
        )
        tiles = tiles if self.reduction_blocks is None else min(tiles, self.reduction_blocks.tiles)
        length = tile.weights.strides[blocks.reduced[0][-1]] * (steps or 0)
        runs = product_of(tile.extents[1:-1]) * (steps or 0) * tiles
        cache_lines = (
            ceildiv(length * byte_size(contraction.element), LINE_BYTES * maximum(runs, constant(1))).constant_value
            or 0
        )
        start = code.add(weights, code.dim(tile.jump * self.shape.blocks))
        if reduction_block is not None:
            done = code.add(reduction_block.start, reduction_block.steps)
            further = code.add(weights, code.mul(done, code.dim(length // (steps or 1))))
            start = code.select(code.compare("slt", done, code.dim(tile.extents[0])), further, start)
        prefetched = PrefetchedCacheLines(
            tile.weights.memory, start, tile.jump, code.minimum(number, tiles - 1), cache_lines, 2
        )
        return prefetched if 0 < cache_lines <= CONV_MAX_PREFETCHED_LINES else None

    def _results(self, here: Coords) -> Iterator[PrefetchedCacheLines]:
        """The outputs of a tile, and the operands of its epilogue."""
        gemm, tile = self.gemm, self.tile
        runs, along = (
            tile.runs(None if self.reduction_blocks is None else self.reduction_blocks.steps),
            tile.blocks.pixels[-1],
        )
        for memory, access in self._accessed():
            step = access.strides[along].constant_value
            if runs is None or step is None:
                continue
            cache_lines = -(-self.shape.pixels * step * byte_size(gemm.contraction.element) // (LINE_BYTES * runs))
            jump = total(access.strides[axis] for axis in gemm.contraction.outer)
            level = 1 if self.reduction_blocks is None else 2
            if 0 < cache_lines <= CONV_MAX_PREFETCHED_LINES:
                yield PrefetchedCacheLines(
                    memory, gemm.offset(access, here), jump, self.code.index(0), cache_lines, level
                )

    def _accessed(self) -> Iterator[tuple[SSAValue, AffineAccess]]:
        """The memory of outputs and of operands of the epilogue, each once."""
        gemm = self.gemm
        contraction, epilogue = gemm.contraction, gemm.epilogue
        count = len(contraction.stage.axes)
        accesses = {
            contraction.store.buffer: contraction.output,
            **{op.buffer: step.access(op, count) for step, op in epilogue.accesses},
        }
        for buffer, access in accesses.items():
            if buffer not in epilogue.unread:
                yield gemm.kernel.flat[buffer], access


def is_direct_convolution(gemm: Gemm) -> bool:
    """Whether a contraction has the form of a direct convolution."""
    return len(gemm.contraction.outer) <= 1 and find_channel_blocks(gemm) is not None


class DirectConvolution:
    """Generates a direct convolution, including its batch axes."""

    def __init__(self, gemm: Gemm):
        self.gemm, self.code = gemm, gemm.code
        blocks = find_channel_blocks(gemm)
        assert blocks is not None  # the caller has checked
        self.blocks: ChannelBlocks = blocks
        self.row_length, self.channels = gemm.size(blocks.pixels), gemm.rounds
        row_length, channels = self.row_length.constant_value, self.channels.constant_value
        registers, joined = self.gemm.kernel.target.tile_registers, len(self.blocks.pixels) > 1
        self.shape = choose_register_tile(registers, self.blocks.vectors, row_length, channels, joined)
        self.tile = MicroKernel(gemm, blocks, self.shape.blocks)
        rest = remainder_blocks(gemm.kernel.target.tile_registers, self.channels.constant_value, self.shape.blocks)
        self.remainder_tile = MicroKernel(gemm, blocks, rest) if rest else None
        self.epilogue = EpilogueEmitter(gemm, None, None)
        rows = ceildiv(self.row_length, constant(self.shape.pixels)) * gemm.size(blocks.rows)
        self.reduction_blocks = find_reduction_blocks(gemm, blocks, self.shape, rows)
        self.prefetches = Prefetches(self.tile, self.shape, self.reduction_blocks)
        # The padded axes of the data along rows or pixels, by the number of the loop over their taps.
        load, extents = self.gemm.contraction.rows.value.owner, self.gemm.contraction.stage.extents
        padding = self.gemm.kernel.padded.get(load.buffer) if isinstance(load, LoadOp) else None
        if padding is None or not isinstance(load, LoadOp):
            self.padded_axes = {}
        else:
            alone = self.blocks.pixels if len(self.blocks.pixels) == 1 else ()
            axes = (*self.blocks.rows, *alone)
            padded_axes = [each for each in find_padded_axes(self.gemm, load, padding) if each.axis in axes]
            self.padded_axes = {
                number: padded_axis
                for number, axes in enumerate(self.blocks.reduced)
                for padded_axis in padded_axes
                if [axis for axis in axes if extents[axis].constant_value != 1] == [padded_axis.window]
            }
        self.row_tiles = RowTiles(self.tile, self.shape, self.padded_axes)
        self.tile_positions = TilePositions(self.row_tiles, self.remainder_tile is not None)

    def emit(self) -> None:
        """All outputs."""
        code, gemm, tiles = self.code, self.gemm, self.row_tiles.count()
        positions = code.mul(code.dim(gemm.size(self.blocks.rows)), tiles)
        groups, chunks = self._units()
        units = gemm.size(gemm.contraction.batch) * groups * chunks
        threads = gemm.threads(COMPUTE_TASK_MACS, self._work)
        tasks = minimum(units, maximum(CONV_TASKS_PER_THREAD * (threads - 1) * threads, constant(1)))
        # The micro-kernel, which would say so, may be a routine outside.
        with (
            shared_units(code, units, tasks) as (lower, upper),
            code.loop(upper, "unit", lower=lower, plain=True) as unit,
        ):
            batch, group, chunk = self._unit_indices(unit, groups, chunks)
            coords = coords_of(gemm, gemm.contraction.batch, batch)
            first = code.divide(code.mul(chunk, positions), code.dim(chunks))
            last = code.divide(code.mul(code.add(chunk, 1), positions), code.dim(chunks))
            # The tiles of a chunk; several tiles share a reduction block.
            chunk = TileRange(coords, tiles, group)
            code, shape = self.code, self.shape
            tiles_per_block = 1 if self.reduction_blocks is None else self.reduction_blocks.tiles
            room = tiles_per_block * shape.pixels * self._row
            memory = code.alloc([room], self.gemm.contraction.element, "tile")
            if self.reduction_blocks is None:
                with code.loop(last, "position", lower=first) as number:
                    position = self.tile_positions.of(chunk, number)
                    self._sums(position, TileMemory(memory, code.index(0), self._row), None, code.sub(number, first))
                    self._store(position, memory, code.index(0))
                return
            count = code.sub(last, first)
            sets = code.divide(code.add(count, tiles_per_block - 1), tiles_per_block)
            with code.loop(sets, "set") as number:
                low = code.add(first, code.divide(code.mul(number, count), sets))
                high = code.add(first, code.divide(code.mul(code.add(number, 1), count), sets))
                self._in_reduction_blocks(chunk, self.reduction_blocks, (low, high), memory)

    @property
    def _work(self) -> Dim:
        contraction = self.gemm.contraction
        return self.gemm.size(
            (*contraction.batch, *contraction.row, *contraction.outer, *contraction.column, *contraction.reduced)
        )

    # Work partition

    @property
    def _weights_fit_in_l2(self) -> bool:
        """Whether half of L2 holds the weights of all blocks."""
        size = self._bytes(self.gemm.contraction.columns).constant_value
        return size is not None and size <= self.gemm.kernel.target.l2_bytes // 2

    def _bytes(self, factor: Factor) -> Dim:
        kind = buffer_type(load_of(factor)[0])
        return product_of(kind.shape) * byte_size(kind.dtype)

    def _units(self) -> tuple[Dim, Dim]:
        """The number of groups of channel blocks, and of chunks of the pixels."""
        target, threads = self.gemm.kernel.target, self.gemm.threads(COMPUTE_TASK_MACS, self._work)
        groups = ceildiv(self.channels, constant(self.shape.blocks))
        chunks = ceildiv(CONV_TASKS_PER_THREAD * (threads - 1), maximum(groups, constant(1)))
        room = target.l2_bytes // (4 if self._weights_fit_in_l2 else 2)
        chunks = maximum(chunks, ceildiv(self._bytes(self.gemm.contraction.rows), constant(room)))
        return groups, maximum(chunks, constant(1))

    def _unit_indices(self, unit: SSAValue, groups: Dim, chunks: Dim) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The batch, group and chunk of a work unit. All groups of a chunk, whose data L2 holds, come before the next
        chunk.
        """
        code = self.code
        group, rest = code.remainder(unit, code.dim(groups)), code.divide(unit, code.dim(groups))
        return code.divide(rest, code.dim(chunks)), group, code.remainder(rest, code.dim(chunks))

    # Tiles

    @property
    def _row(self) -> int:
        """Elements of a row of a tile."""
        return self.tile.width * self.gemm.tiles.lanes

    def _in_reduction_blocks(
        self,
        chunk: TileRange,
        reduction_blocks: ReductionBlocks,
        positions: tuple[SSAValue, SSAValue],
        memory: SSAValue,
    ) -> None:
        """The accumulators of some tiles, by blocks of the reduction, and then their epilogues."""
        code, (low, high) = self.code, positions
        with (
            code.loop(code.index(reduction_blocks.count), "part") as number,
            code.loop(high, "position", lower=low) as tile_number,
        ):
            start = code.mul(number, reduction_blocks.steps)
            steps = code.minimum(code.sub(code.dim(self.tile.extents[0]), start), reduction_blocks.steps)
            reduction_block = ReductionBlock(number, start, steps, reduction_blocks.steps)
            index = code.sub(tile_number, low)
            first = code.mul(index, self.shape.pixels * self._row)
            self._sums(
                self.tile_positions.of(chunk, tile_number), TileMemory(memory, first, self._row), reduction_block, index
            )
        with code.loop(high, "position", lower=low) as tile_number:
            row = code.mul(code.sub(tile_number, low), self.shape.pixels)
            self._store(self.tile_positions.of(chunk, tile_number), memory, row)

    def _coords_of(self, position: TilePosition, p: SSAValue | None = None, q: SSAValue | None = None) -> Coords:
        code = self.code
        pixel = position.pixel if p is None else code.add(position.pixel, p)
        block = position.block if q is None else code.add(position.block, q)
        return {**position.coords, self.blocks.pixels: pixel, self.gemm.contraction.outer: block}

    def _sums(
        self, position: TilePosition, memory: TileMemory, reduction_block: ReductionBlock | None, number: SSAValue
    ) -> None:
        """Accumulates a tile, or a reduction block of it; `number` is how many tiles came before."""
        here, contraction = self._coords_of(position), self.gemm.contraction
        data, weights = (
            self.gemm.offset(load_of(factor)[1], here) for factor in (contraction.rows, contraction.columns)
        )
        ahead = self.prefetches.of(here, weights, number, reduction_block)
        bounds = self._bounds(position, reduction_block)

        def emit(tile: MicroKernel, mr_choices: Sequence[int]) -> None:
            most, *smaller = mr_choices
            if not smaller:
                tile.emit(most, data, weights, memory, reduction_block, ahead, bounds)
                return
            with self.code.when(self.code.compare("eq", position.mr, most)) as branch:
                tile.emit(most, data, weights, memory, reduction_block, ahead, bounds)
            with self.code.otherwise(branch):
                emit(tile, smaller)

        if self.remainder_tile is None:
            emit(self.tile, self.shape.mr_choices)
            return
        with self.code.when(self.code.compare("eq", position.own_blocks[1], self.shape.blocks)) as is_whole:
            emit(self.tile, self.shape.mr_choices)
        with self.code.otherwise(is_whole):
            emit(self.remainder_tile, self.shape.mr_choices)

    def _bounds(
        self, position: TilePosition, reduction_block: ReductionBlock | None
    ) -> Mapping[int, tuple[SSAValue, SSAValue]]:
        """The range of taps that have data, by the number of their loop."""
        code, found = self.code, dict[int, tuple[SSAValue, SSAValue]]()
        for number, padded_axis in self.padded_axes.items():
            along, count = (padded_axis.axis,) == self.blocks.pixels, code.dim(self.tile.extents[number])
            first, last = padded_axis.taps(code, position.pixel if along else position.coords[padded_axis.axis,], count)
            if along:  # the last pixel reaches the data first
                end = code.add(position.pixel, code.sub(position.mr, 1))
                first, _ = padded_axis.taps(code, end, count)
            if reduction_block is not None and number == 0:
                first = code.maximum(code.sub(first, reduction_block.start), 0)
                last = code.minimum(code.sub(last, reduction_block.start), reduction_block.steps)
            found[number] = first, last
        return found

    def _store(self, position: TilePosition, memory: SSAValue, row: SSAValue) -> None:
        """The epilogue of a tile."""
        code, blocks = self.code, self.shape.blocks
        known = self.channels.constant_value
        lower, upper = position.own
        with code.loop(upper, "p", lower=lower, vectorize=False) as p:
            if known is not None and known % blocks == 0:
                for q in range(blocks):
                    self._store_block(position, memory, row, p, code.index(q))
                return
            with code.loop(position.own_blocks[1], "q", lower=position.own_blocks[0], vectorize=False) as q:
                self._store_block(position, memory, row, p, q)

    def _store_block(self, position: TilePosition, memory: SSAValue, row: SSAValue, p: SSAValue, q: SSAValue) -> None:
        """The epilogue of one pixel of a block."""
        code, lanes = self.code, self.gemm.tiles.lanes
        coords = self._coords_of(position, p, q)
        for v in range(self.blocks.vectors):
            column = code.index(v * lanes)
            slot = code.add(code.mul(code.add(row, p), self._row), code.mul(q, self.blocks.vectors * lanes))
            accumulators = code.load(memory, [code.add(slot, v * lanes)], lanes)
            self.epilogue.store_lanes(accumulators, {**coords, self.gemm.contraction.column: column}, None)

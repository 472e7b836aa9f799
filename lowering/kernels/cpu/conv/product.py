"""Blocked products: direct convolution, pixel by pixel, without packing.

A unit of work is a range of pixel tiles and a group of channel blocks. A tile that is higher than its share of a line,
and the last group of blocks if there are many, may overlap others, whose sums they recompute but do not store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from lowering.kernels.cpu.conv.bordered_windows import Border, find_borders
from lowering.kernels.cpu.conv.heights import Heights
from lowering.kernels.cpu.conv.hints import Hints
from lowering.kernels.cpu.conv.placement import Part, Placement, Placing, coords_of
from lowering.kernels.cpu.conv.reduction_parts import ReductionPart, ReductionParts, find_reduction_parts
from lowering.kernels.cpu.conv.shape import Shape, last_blocks, tile_shape
from lowering.kernels.cpu.conv.sums import Blocks, find_blocks, load_of
from lowering.kernels.cpu.conv.tile import Tile, TileMemory
from lowering.kernels.cpu.emit.kernel import buffer_type
from lowering.kernels.cpu.emit.tasks import shared_units
from lowering.kernels.cpu.gemm.epilogue import EpilogueEmitter as Finish
from lowering.kernels.cpu.gemm.problem import Coords
from lowering.kernels.cpu.gemm.problem import Gemm as Product
from lowering.kernels.cpu.structure.contraction import Factor
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import LoadOp

PRODUCTS_PER_TASK = 1 << 19
"""So few take some five microseconds; to wake a thread for less does not pay."""
TASKS_PER_THREAD = 16
"""Threads take the last ones singly, so that they end at about the same time."""


def is_blocked(product: Product) -> bool:
    """Whether a product is one in blocks."""
    return len(product.what.outer) <= 1 and find_blocks(product) is not None


class BlockedProduct:
    """Emits the code of one contraction, including its batch axes."""

    def __init__(self, product: Product):
        self.product, self.code = product, product.code
        blocks = find_blocks(product)
        assert blocks is not None  # as asked before
        self.blocks: Blocks = blocks
        self.line, self.channels = product.size(blocks.pixels), product.rounds
        self.shape = self._shape()
        self.tile = Tile(product, blocks, self.shape.blocks)
        rest = last_blocks(product.kernel.target.tile_registers, self.channels.constant_value, self.shape.blocks)
        self.last_tile = Tile(product, blocks, rest) if rest else None
        self.finish = Finish(product, None, None)
        lines = ceildiv(self.line, constant(self.shape.pixels)) * product.size(blocks.lines)
        self.reduction_parts = find_reduction_parts(product, blocks, self.shape, lines)
        self.hints = Hints(self.tile, self.shape, self.reduction_parts)
        self.borders = self._borders()
        self.heights = Heights(self.tile, self.shape, self.borders)
        self.placing = Placing(self.heights, self.last_tile is not None)

    def _shape(self) -> Shape:
        line, channels = self.line.constant_value, self.channels.constant_value
        registers, joined = self.product.kernel.target.tile_registers, len(self.blocks.pixels) > 1
        return tile_shape(registers, self.blocks.vectors, line, channels, joined)

    def _borders(self) -> dict[int, Border]:
        """Around the data, by the number of the loop over the windows that move with its lines, or with pixels."""
        load, extents = self.product.what.rows.value.owner, self.product.what.stage.extents
        padding = self.product.kernel.padded.get(load.buffer) if isinstance(load, LoadOp) else None
        if padding is None or not isinstance(load, LoadOp):
            return {}
        alone = self.blocks.pixels if len(self.blocks.pixels) == 1 else ()
        axes = (*self.blocks.lines, *alone)
        borders = [each for each in find_borders(self.product, load, padding) if each.axis in axes]
        return {
            number: border
            for number, axes in enumerate(self.blocks.reduced)
            for border in borders
            if [axis for axis in axes if extents[axis].constant_value != 1] == [border.window]
        }

    def emit(self) -> None:
        """All results."""
        code, product, tiles = self.code, self.product, self.heights.tiles()
        positions = code.mul(code.dim(product.size(self.blocks.lines)), tiles)
        groups, parts = self._units()
        units = product.size(product.what.batch) * groups * parts
        threads = product.threads(PRODUCTS_PER_TASK, self._work)
        tasks = minimum(units, maximum(TASKS_PER_THREAD * (threads - 1) * threads, constant(1)))
        with shared_units(code, units, tasks) as (lower, upper), code.loop(upper, "unit", lower=lower) as unit:
            batch, group, part = self._digits(unit, groups, parts)
            coords = coords_of(product, product.what.batch, batch)
            first = code.divide(code.mul(part, positions), code.dim(parts))
            last = code.divide(code.mul(code.add(part, 1), positions), code.dim(parts))
            self._part(Part(coords, tiles, group), first, last)

    @property
    def _work(self) -> Dim:
        what = self.product.what
        return self.product.size((*what.batch, *what.row, *what.outer, *what.column, *what.reduced))

    # Units

    @property
    def _weights_stay(self) -> bool:
        """Whether the second-level cache holds the weights of all blocks."""
        size = self._bytes(self.product.what.columns).constant_value
        return size is not None and size <= self.product.kernel.target.l2_bytes // 2

    def _bytes(self, factor: Factor) -> Dim:
        kind = buffer_type(load_of(factor)[0])
        return product_of(kind.shape) * byte_size(kind.dtype)

    def _units(self) -> tuple[Dim, Dim]:
        """How many groups of blocks there are, and in how many parts each splits the pixels."""
        target, threads = self.product.kernel.target, self.product.threads(PRODUCTS_PER_TASK, self._work)
        groups = ceildiv(self.channels, constant(self.shape.blocks))
        parts = ceildiv(TASKS_PER_THREAD * (threads - 1), maximum(groups, constant(1)))
        room = target.l2_bytes // (4 if self._weights_stay else 2)
        parts = maximum(parts, ceildiv(self._bytes(self.product.what.rows), constant(room)))
        return groups, maximum(parts, constant(1))

    def _digits(self, unit: SSAValue, groups: Dim, parts: Dim) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The batch, group and part of a unit: all groups of a part, whose data the cache holds, before the next."""
        code = self.code
        group, rest = code.remainder(unit, code.dim(groups)), code.divide(unit, code.dim(groups))
        return code.divide(rest, code.dim(parts)), group, code.remainder(rest, code.dim(parts))

    # Tiles

    def _part(self, part: Part, first: SSAValue, last: SSAValue) -> None:
        """The tiles of a part, a few at a time if the reduction is split."""
        code, shape = self.code, self.shape
        several = 1 if self.reduction_parts is None else self.reduction_parts.tiles
        kept = [several * shape.pixels, self.tile.width * self.product.tiles.lanes]
        memory = code.alloc(kept, self.product.what.element, "tile")
        if self.reduction_parts is None:
            with code.loop(last, "position", lower=first) as position:
                placement = self.placing.of(part, position)
                self._sums(placement, TileMemory(memory, code.index(0)), None, code.sub(position, first))
                self._store(placement, memory, code.index(0))
            return
        count = code.sub(last, first)
        sets = code.divide(code.add(count, several - 1), several)
        with code.loop(sets, "set") as number:
            low = code.add(first, code.divide(code.mul(number, count), sets))
            high = code.add(first, code.divide(code.mul(code.add(number, 1), count), sets))
            self._in_reduction_parts(part, self.reduction_parts, (low, high), memory)

    def _in_reduction_parts(
        self, part: Part, reduction_parts: ReductionParts, positions: tuple[SSAValue, SSAValue], memory: SSAValue
    ) -> None:
        """The sums of some tiles, part by part of the reduction, and then what is made of them."""
        code, (low, high) = self.code, positions
        with (
            code.loop(code.index(reduction_parts.count), "part") as number,
            code.loop(high, "position", lower=low) as position,
        ):
            start = code.mul(number, reduction_parts.steps)
            steps = code.minimum(code.sub(code.dim(self.tile.extents[0]), start), reduction_parts.steps)
            reduction_part = ReductionPart(start, steps, code.compare("eq", number, 0), reduction_parts.steps)
            index = code.sub(position, low)
            row = code.mul(index, self.shape.pixels)
            self._sums(self.placing.of(part, position), TileMemory(memory, row), reduction_part, index)
        with code.loop(high, "position", lower=low) as position:
            row = code.mul(code.sub(position, low), self.shape.pixels)
            self._store(self.placing.of(part, position), memory, row)

    def _coords_of(self, placement: Placement, p: SSAValue | None = None, q: SSAValue | None = None) -> Coords:
        code = self.code
        pixel = placement.pixel if p is None else code.add(placement.pixel, p)
        block = placement.block if q is None else code.add(placement.block, q)
        return {**placement.coords, self.blocks.pixels: pixel, self.product.what.outer: block}

    def _sums(
        self, placement: Placement, memory: TileMemory, reduction_part: ReductionPart | None, number: SSAValue
    ) -> None:
        """The sums of a tile, or a part of them; `number` is how many tiles came before."""
        here, what = self._coords_of(placement), self.product.what
        data, weights = (self.product.offset(load_of(factor)[1], here) for factor in (what.rows, what.columns))
        ahead = self.hints.of(here, weights, number, reduction_part)
        bounds = self._bounds(placement, reduction_part)

        def emit(tile: Tile, heights: Sequence[int]) -> None:
            most, *smaller = heights
            if not smaller:
                tile.emit(most, data, weights, memory, reduction_part, ahead, bounds)
                return
            with self.code.when(self.code.compare("eq", placement.height, most)) as branch:
                tile.emit(most, data, weights, memory, reduction_part, ahead, bounds)
            with self.code.otherwise(branch):
                emit(tile, smaller)

        if self.last_tile is None:
            emit(self.tile, self.shape.heights)
            return
        with self.code.when(self.code.compare("eq", placement.own_blocks[1], self.shape.blocks)) as is_whole:
            emit(self.tile, self.shape.heights)
        with self.code.otherwise(is_whole):
            emit(self.last_tile, self.shape.heights)

    def _bounds(
        self, placement: Placement, reduction_part: ReductionPart | None
    ) -> Mapping[int, tuple[SSAValue, SSAValue]]:
        """Between which steps the loops over windows, by number, read more than the zeros around the data."""
        code, found = self.code, dict[int, tuple[SSAValue, SSAValue]]()
        for number, border in self.borders.items():
            along, count = (border.axis,) == self.blocks.pixels, code.dim(self.tile.extents[number])
            first, last = border.taps(code, placement.pixel if along else placement.coords[border.axis,], count)
            if along:  # the last pixel meets data first
                end = code.add(placement.pixel, code.sub(placement.height, 1))
                first, _ = border.taps(code, end, count)
            if reduction_part is not None and number == 0:
                first = code.maximum(code.sub(first, reduction_part.start), 0)
                last = code.minimum(code.sub(last, reduction_part.start), reduction_part.steps)
            found[number] = first, last
        return found

    def _store(self, placement: Placement, memory: SSAValue, row: SSAValue) -> None:
        """What is made of the new sums of a tile."""
        code, blocks = self.code, self.shape.blocks
        known = self.channels.constant_value
        lower, upper = placement.own
        with code.loop(upper, "p", lower=lower, vectorize=False) as p:
            if known is not None and known % blocks == 0:
                for q in range(blocks):
                    self._store_block(placement, memory, row, p, code.index(q))
                return
            with code.loop(placement.own_blocks[1], "q", lower=placement.own_blocks[0], vectorize=False) as q:
                self._store_block(placement, memory, row, p, q)

    def _store_block(self, placement: Placement, memory: SSAValue, row: SSAValue, p: SSAValue, q: SSAValue) -> None:
        """One pixel of a block."""
        code, lanes = self.code, self.product.tiles.lanes
        coords = self._coords_of(placement, p, q)
        for v in range(self.blocks.vectors):
            column = code.index(v * lanes)
            kept = [code.add(row, p), code.add(code.mul(q, self.blocks.vectors * lanes), column)]
            sums = code.load(memory, kept, lanes)
            self.finish.store_lanes(sums, {**coords, self.product.what.column: column}, None)

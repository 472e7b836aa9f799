"""Products in blocks of channels: direct convolution, pixel by pixel, without packing.

A unit of work is a range of tiles of pixels and a group of blocks. Tiles at the end of a line, and groups at the end
of the blocks, overlap the ones before them, whose sums they make again but do not store.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowering.schedule.cpu.blocked_sums import Blocks, Shape, find_blocks, load_of, tile_shape
from lowering.schedule.cpu.blocked_tile import LINE_BYTES, Ahead, Tile
from lowering.schedule.cpu.contraction import Factor
from lowering.schedule.cpu.finish import Finish
from lowering.schedule.cpu.kernel import buffer_type
from lowering.schedule.cpu.product import Product, Spot
from lowering.schedule.cpu.tasks import shared_units
from tir_dialect.dims import Dim, ceildiv, constant, maximum, minimum
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size

PRODUCTS_PER_TASK = 1 << 19
"""So few take some five microseconds; to wake a thread for less does not pay."""
TASKS_PER_THREAD = 4
MOST_AHEAD = 32
"""More lines at once are not asked for."""


def is_blocked(product: Product) -> bool:
    """Whether a product is one in blocks."""
    return len(product.what.outer) <= 1 and find_blocks(product) is not None


class BlockedProduct:
    """Emits the code of one contraction, its batch axes included."""

    def __init__(self, product: Product):
        self.product, self.code = product, product.code
        blocks = find_blocks(product)
        assert blocks is not None  # as asked before
        self.blocks: Blocks = blocks
        self.line, self.channels = product.size(blocks.pixels), product.rounds
        self.shape = self._shape()
        self.tile = Tile(product, blocks, self.shape.blocks)
        self.finish = Finish(product, None, None)

    def _shape(self) -> Shape:
        line, channels = self.line.constant_value, self.channels.constant_value
        return tile_shape(self.product.kernel.target, self.blocks.vectors, line, channels)

    @property
    def heights(self) -> tuple[int, ...]:
        """How many pixels tiles may have: a line of unknown length takes the greatest that fits."""
        most = self.shape.pixels
        return (most,) if self.line.constant_value is not None else (most, *(h for h in (6, 1) if h < most))

    def emit(self) -> None:
        """All results."""
        code, product = self.code, self.product
        height = self._height()
        tiles = code.divide(code.add(code.dim(self.line), code.sub(height, 1)), height)
        positions = code.mul(code.dim(product.size(self.blocks.lines)), tiles)
        groups, parts = self._units()
        units = product.size(product.what.batch) * groups * parts
        threads = product.threads(PRODUCTS_PER_TASK, self._work)
        tasks = minimum(units, maximum(TASKS_PER_THREAD * (threads - 1) * threads, constant(1)))
        with shared_units(code, units, tasks) as (lower, upper), code.loop(upper, "unit", lower=lower) as unit:
            batch, group, part = self._digits(unit, groups, parts)
            spot = self._spot(product.what.batch, batch)
            first = code.divide(code.mul(part, positions), code.dim(parts))
            last = code.divide(code.mul(code.add(part, 1), positions), code.dim(parts))
            with code.loop(last, "position", lower=first) as position:
                line, place = code.divide(position, tiles), code.remainder(position, tiles)
                here = {**spot, **self._spot(self.blocks.lines, line)}
                self._tile(here, height, place, group, code.sub(position, first))

    @property
    def _work(self) -> Dim:
        what = self.product.what
        return self.product.size((*what.batch, *what.row, *what.outer, *what.column, *what.reduced))

    def _height(self) -> SSAValue:
        """The pixels of a tile."""
        code, line = self.code, self.code.dim(self.line)
        *more, least = self.heights
        height = code.index(least)
        for each in reversed(more):
            height = code.select(code.compare("sge", line, each), code.index(each), height)
        return height

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
        if self._weights_stay:
            parts = maximum(parts, ceildiv(self._bytes(self.product.what.rows), constant(target.l2_bytes // 4)))
        return groups, maximum(parts, constant(1))

    def _digits(self, unit: SSAValue, groups: Dim, parts: Dim) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The batch, group and part of a unit: first all groups of a part, if the cache holds all weights."""
        code = self.code
        sizes = (groups, parts) if self._weights_stay else (parts, groups)
        low, rest = code.remainder(unit, code.dim(sizes[0])), code.divide(unit, code.dim(sizes[0]))
        high, batch = code.remainder(rest, code.dim(sizes[1])), code.divide(rest, code.dim(sizes[1]))
        return (batch, low, high) if self._weights_stay else (batch, high, low)

    def _spot(self, axes: tuple[int, ...], number: SSAValue) -> Spot:
        """Single axes from one number for all."""
        return {(axis,): value for axis, value in self.product.at((), axes, {axes: number}).items()}

    # Tiles

    def _tile(self, spot: Spot, height: SSAValue, place: SSAValue, group: SSAValue, number: SSAValue) -> None:
        """The sums of a tile, and what is made of them; `number` is how many tiles came before in this unit."""
        code, shape, what = self.code, self.shape, self.product.what
        wanted, first = code.mul(place, height), code.mul(group, shape.blocks)
        pixel = code.minimum(wanted, code.sub(code.dim(self.line), height))
        block = code.minimum(first, code.dim(self.channels - shape.blocks))
        here = {**spot, self.blocks.pixels: pixel, what.outer: block}
        data, weights = (self.product.offset(load_of(factor)[1], here) for factor in (what.rows, what.columns))
        tile = code.alloc([shape.pixels, self.tile.width * self.product.tiles.lanes], what.element, "tile")
        self._sums(height, self.heights, (data, weights, tile), self._ahead(weights, number))
        new_pixels, new_blocks = (code.sub(wanted, pixel), height), (code.sub(first, block), code.index(shape.blocks))
        with (
            code.loop(new_pixels[1], "p", lower=new_pixels[0], vectorize=False) as p,
            code.loop(new_blocks[1], "q", lower=new_blocks[0], vectorize=False) as q,
        ):
            self._finish({**here, self.blocks.pixels: code.add(pixel, p), what.outer: code.add(block, q)}, tile, p, q)

    def _sums(
        self, height: SSAValue, heights: Sequence[int], places: tuple[SSAValue, SSAValue, SSAValue], ahead: Ahead | None
    ) -> None:
        code, (most, *smaller) = self.code, heights
        if not smaller:
            self.tile.emit(most, *places, ahead)
            return
        with code.when(code.compare("eq", height, most)) as branch:
            self.tile.emit(most, *places, ahead)
        with code.otherwise(branch):
            self._sums(height, smaller, places, ahead)

    def _ahead(self, weights: SSAValue, number: SSAValue) -> Ahead | None:
        """The weights of the next group, which the tiles of one picture ask for together."""
        code, what, kind = self.code, self.product.what, self.product.what.element
        known = (extent for axis in self.blocks.lines if (extent := what.stage.extents[axis]).is_constant)
        tiles = product_of([ceildiv(self.line, constant(self.shape.pixels)), *known])
        turns = (tiles * self.tile.turns).constant_value
        if self._weights_stay or turns is None or len(what.outer) != 1 or not turns:
            return None
        group = (self.tile.weights.strides[what.outer[0]] * self.shape.blocks).constant_value
        lines = -(-(group or 0) * byte_size(kind) // LINE_BYTES // turns)
        last = code.minimum(number, (tiles.constant_value or 1) - 1)
        return Ahead(code.add(weights, code.index(group or 0)), last, lines) if 0 < lines <= MOST_AHEAD else None

    def _finish(self, spot: Spot, tile: SSAValue, p: SSAValue, q: SSAValue) -> None:
        """One pixel of one block."""
        code, lanes = self.code, self.product.tiles.lanes
        for v in range(self.blocks.vectors):
            column = code.index(v * lanes)
            sums = code.load(tile, [p, code.add(code.mul(q, self.blocks.vectors * lanes), column)], lanes)
            self.finish.store_lanes(sums, {**spot, self.product.what.column: column}, None)

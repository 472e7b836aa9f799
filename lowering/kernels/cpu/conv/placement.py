"""Where the tiles of a blocked product are: the last ones of a line and of the blocks may overlap others."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.conv.heights import Heights
from lowering.kernels.cpu.gemm.problem import Coords
from lowering.kernels.cpu.gemm.problem import Gemm as Product


@dataclass(frozen=True)
class Part:
    """A range of tiles: axes with one value, tiles of a line, and the group of blocks."""

    coords: Coords
    tiles: SSAValue
    group: SSAValue


@dataclass(frozen=True)
class Placement:
    """The position of a tile, its number of pixels, and which of its pixels and blocks are its own: the first, and the
    one after the last.
    """

    coords: Coords
    pixel: SSAValue
    height: SSAValue
    block: SSAValue
    own: tuple[SSAValue, SSAValue]
    """Pixels: what is made of a sum may have overwritten what it is made of."""
    own_blocks: tuple[SSAValue, SSAValue]


@dataclass(frozen=True)
class Placing:
    """Emits the positions of the tiles of one product."""

    heights: Heights
    has_last_tile: bool
    """Whether the blocks after the last whole group have tiles of their own."""

    def of(self, part: Part, position: SSAValue) -> Placement:
        """Where a tile is: it begins early enough to be whole at the end of a line or of the blocks."""
        heights, code = self.heights, self.heights.code
        line, number = code.divide(position, part.tiles), code.remainder(position, part.tiles)
        wanted, end = heights.share(number, part.tiles)
        height = heights.of(code.sub(end, wanted))
        pixel = code.minimum(wanted, code.sub(code.dim(heights.line), height))
        block, own_blocks = self._blocks_of(part.group)
        coords = {**part.coords, **coords_of(heights.product, heights.tile.blocks.lines, line)}
        own = code.sub(wanted, pixel), code.sub(end, pixel)
        return Placement(coords, pixel, height, block, own, own_blocks)

    def _blocks_of(self, group: SSAValue) -> tuple[SSAValue, tuple[SSAValue, SSAValue]]:
        """The first block of a tile, and which of its blocks are its own."""
        code, count, channels = self.heights.code, self.heights.shape.blocks, self.heights.product.rounds
        first = code.mul(group, count)
        if self.has_last_tile:
            return first, (code.index(0), code.minimum(code.sub(code.dim(channels), first), count))
        block = code.minimum(first, code.dim(channels - count))
        return block, (code.sub(first, block), code.index(count))


def coords_of(product: Product, axes: tuple[int, ...], number: SSAValue) -> Coords:
    """The values of single axes, from one number for all."""
    return {(axis,): value for axis, value in product.at((), axes, {axes: number}).items()}

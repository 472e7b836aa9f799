"""How rows of pixels are divided into tiles of MR pixels, and the position of each tile.

The last tiles of a row, and of the channel blocks, may overlap the ones before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.conv.micro_kernel import MicroKernel
from lowering.kernels.cpu.conv.padded_windows import PaddedAxis
from lowering.kernels.cpu.conv.register_tile import RegisterTile, runtime_step_cycles
from lowering.kernels.cpu.gemm.problem import Coords, Gemm
from tir_dialect.dims import ceildiv, constant

LARGE_DILATION = 4
"""With such a dilation, a tile may have taps that are in the padding for all of its pixels, and skips them."""


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
        return known and (padded_axis.axis,) == self.tile.blocks.pixels and padded_axis.dilation >= LARGE_DILATION


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

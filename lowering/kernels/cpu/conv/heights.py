"""How lines of pixels are divided into tiles: into how many, which of them takes which pixels, and how high it is."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from lowering.kernels.cpu.conv.bordered_windows import Border
from lowering.kernels.cpu.conv.shape import Shape, cycles_of_choice
from lowering.kernels.cpu.conv.tile import Tile
from tir_dialect.dims import ceildiv, constant

FAR = 4
"""Pixels of a low tile: windows whose elements are as far apart have taps at the border that a tile can leave out."""


class Heights:
    """Emits what divides the lines of one product."""

    def __init__(self, tile: Tile, shape: Shape, borders: Mapping[int, Border]):
        self.tile, self.shape, self.borders = tile, shape, borders
        self.product, self.code = tile.product, tile.code
        self.line = self.product.size(tile.blocks.pixels)

    def tiles(self) -> SSAValue:
        """How many tiles a line has: of pixels that take the least time for it, which a line of known length has."""
        code, line = self.code, self.code.dim(self.line)
        if self.line.is_constant:
            return code.dim(ceildiv(self.line, constant(self.shape.pixels)))
        least, *more = sorted(self.shape.heights)
        height, time = code.index(least), self._time(line, least)
        for each in more:
            other = self._time(line, each)
            fits = code.compare("sge", line, each)
            better = code.select(fits, code.compare("sle", other, time), fits)
            height, time = code.select(better, code.index(each), height), code.select(better, other, time)
        return code.divide(code.add(line, code.sub(height, 1)), height)

    def share(self, number: SSAValue, tiles: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The first pixel of one of the tiles of a line, and the one behind its last; they differ by one at most."""
        code = self.code
        ends = number, code.add(number, 1)
        first, end = (code.divide(code.mul(each, code.dim(self.line)), tiles) for each in ends)
        return first, end

    def of(self, pixels: SSAValue) -> SSAValue:
        """The least height of a tile for so many pixels."""
        code, (most, *smaller) = self.code, self.shape.heights
        height = code.index(most)
        for each in smaller:
            height = code.select(code.compare("sle", pixels, each), code.index(each), height)
        return height

    def _time(self, line: SSAValue, height: int) -> SSAValue:
        """How long a line takes in tiles of some height, in quarters of a cycle for each step of the sums."""
        code, registers = self.code, self.product.kernel.target.tile_registers
        cycles = round(4 * cycles_of_choice(registers, height, self.tile.width))
        tiles, low = code.divide(code.add(line, height - 1), height), self.shape.least_of_shares(height)
        far = next((each for number, each in self.borders.items() if self._is_far(number, each)), None)
        used = tiles
        if far is not None:
            count = self.product.what.stage.extents[far.window].constant_value or 0
            used = code.dim(far.tiles(count, self.line, ceildiv(self.line, constant(height))))
        if low is None:
            return code.mul(used, cycles)
        pixels = code.maximum(line, code.mul(tiles, low))
        if far is not None:
            pixels = code.divide(code.mul(used, pixels), code.maximum(tiles, 1))
        return code.divide(code.mul(pixels, cycles), height)

    def _is_far(self, number: int, border: Border) -> bool:
        """Whether elements of a window are so far apart that some meet only zeros for all pixels of a tile."""
        known = self.tile.extents[number].is_constant
        return known and (border.axis,) == self.tile.blocks.pixels and border.step >= FAR

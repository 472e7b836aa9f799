"""Tile and block sizes: the register tile, and the blocks that the caches hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from tir_dialect.target import Target


@dataclass(frozen=True)
class Tiling:
    """Block sizes, in elements."""

    lanes: int
    """Of one vector register."""
    vectors: int
    """Registers in a row of the tile."""
    heights: tuple[int, ...]
    """Rows of the tile, and of the smaller tiles for the last rows, in falling order."""
    depth: int
    """Most products of a sum that are made at once, whole vectors: so long are packed panels, which stay in the
    second-level cache."""
    height: int
    """Rows of this depth that are packed at once, a multiple of those of the tile: they stay in the same cache."""

    steps: int = 1
    """Steps of the reduction in an iteration of the micro-kernel's loop."""
    low: tuple[int, ...] = ()
    """Still smaller tiles, where there is no other way for few rows."""
    far: bool = False
    """Whether packed panels are larger than the first-level cache, so that their lines are asked for in advance."""

    @property
    def rows(self) -> int:
        """Rows of the tile."""
        return self.heights[0]

    @property
    def width(self) -> int:
        """Columns of the tile."""
        return self.lanes * self.vectors


Tile: TypeAlias = tuple[int, tuple[int, ...], int]
"""Vectors of a row, heights and steps, as in `Tiling`."""


def chosen_tile(target: Target) -> Tile:
    """The tile that a search has chosen for a kernel, where it has, and else the usual one."""
    vectors, heights, steps = target.usual_tile
    if rows := target.schedule.tile_rows:
        heights = (rows, *([height for height in heights if height < rows] or [max(1, rows // 2)][: rows - 1]))
    return target.schedule.tile_vectors or vectors, heights, target.schedule.tile_steps or steps


def tiling(target: Target, element_bytes: int, longest: int | None = None, tile: Tile | None = None) -> Tiling:
    """The blocks for a tile, the usual one unless another is given.

    No more than `longest` products are added at once.
    """
    lanes = target.lanes(8 * element_bytes)
    vectors, heights, steps = tile or target.usual_tile
    panel, rows = _rooms(target)
    depth = max(64, panel // (vectors * lanes * element_bytes) // lanes * lanes)
    depth = min(longest or depth, depth)
    far = depth * vectors * lanes * element_bytes > target.l1_bytes
    packed = max(1, rows // (depth * element_bytes * heights[0]))
    low = tuple(height for height in (4, 1) if height < heights[-1])
    return Tiling(lanes, vectors, heights, depth, heights[0] * packed, steps, low, far)


def _rooms(target: Target) -> tuple[int, int]:
    """Bytes for a panel of columns, and for the packed rows.

    Longer sums go to memory and back less often, but what is used next, and the output, need room beside them. So a
    panel takes a 16th of the second-level cache, and rows half of it. Where the first level is as large as that, half
    of it is better: then panels stay there, and with fewer rows so do these in the second level, beside other work too.
    """
    panel = target.l2_bytes // 16
    if panel > target.l1_bytes:
        return panel, target.l2_bytes // 2
    return target.l1_bytes // 2, target.l2_bytes * 5 // 16


def for_panels(tiles: Tiling, target: Target, element_bytes: int, length: int | None, longest: int | None) -> Tiling:
    """The blocks for columns that lie in panels: these are read from the second-level cache, so sums are long."""
    lanes = tiles.lanes
    most = max(64, target.l2_bytes // 16 // (tiles.width * element_bytes) // lanes * lanes)
    most = min(longest or most, most)
    k_blocks = max(1, -(-(length or most) // most))
    depth = max(lanes, -(-(length or most) // (lanes * k_blocks)) * lanes)
    packed = max(1, target.l2_bytes // 2 // (depth * element_bytes * tiles.rows))
    return replace(tiles, depth=depth, height=tiles.rows * packed)

"""The block sizes of GEMM that follow from the cost model and the caches of a machine (Goto and van de Geijn): the
register tile MR x NR, and the blocks KC and MC.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from lowering.kernels.cost_model import KC_L1_PART, KC_L2_PART, MC_L2_PART, MC_L2_SIXTEENTHS, MIN_KC
from lowering.kernels.structure.contraction import Contraction, from_panels
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size
from tir_dialect.target import Target


@dataclass(frozen=True)
class Tiling:
    """Block sizes, in elements; in the terms of Goto and van de Geijn, NR is the width of the register tile and
    MR its height.
    """

    lanes: int
    """Elements of one vector register."""
    vectors: int
    """Vector registers in a row of the tile."""
    mr_sizes: tuple[int, ...]
    """MR, and the rows of the smaller tiles for the last rows, in falling order."""
    kc: int
    """KC: the length of a K block, whole vectors. Packed panels are so long and stay in the second-level cache."""
    mc: int
    """MC: the rows that are packed at once, a multiple of MR. They stay in the same cache."""

    steps: int = 1
    """Steps of K in an iteration of the micro-kernel's loop."""
    low: tuple[int, ...] = ()
    """Still smaller tiles, where no other generator takes a small M."""
    far: bool = False
    """Whether packed panels are larger than the first-level cache, so that their cache lines are prefetched."""

    @property
    def mr(self) -> int:
        """MR, the rows of the tile."""
        return self.mr_sizes[0]

    @property
    def nr(self) -> int:
        """NR, the columns of the tile."""
        return self.lanes * self.vectors


Tile: TypeAlias = tuple[int, tuple[int, ...], int]
"""Vectors of a row, heights and steps, as in `Tiling`."""


def chosen_tile(target: Target) -> Tile:
    """The tile that a search has chosen for a kernel, where it has, and else the usual one."""
    vectors, mr_sizes, steps = target.usual_tile
    if rows := target.schedule.tile_rows:
        mr_sizes = (rows, *([mr for mr in mr_sizes if mr < rows] or [max(1, rows // 2)][: rows - 1]))
    return target.schedule.tile_vectors or vectors, mr_sizes, target.schedule.tile_steps or steps


def tiling(target: Target, element_bytes: int, longest: int | None = None, tile: Tile | None = None) -> Tiling:
    """The blocks for a tile, the usual one unless another is given; a K block has at most `longest` steps."""
    lanes = target.lanes(8 * element_bytes)
    vectors, mr_sizes, steps = tile or target.usual_tile
    panel, rows = _rooms(target)
    depth = max(MIN_KC, panel // (vectors * lanes * element_bytes) // lanes * lanes)
    depth = min(longest or depth, depth)
    far = depth * vectors * lanes * element_bytes > target.l1_bytes
    packed = max(1, rows // (depth * element_bytes * mr_sizes[0]))
    low = tuple(mr for mr in (4, 1) if mr < mr_sizes[-1])
    return Tiling(lanes, vectors, mr_sizes, depth, mr_sizes[0] * packed, steps, low, far)


def _rooms(target: Target) -> tuple[int, int]:
    """Bytes for a panel of columns, and for the packed rows.

    The longer a K block, the less often accumulators go to memory and back; but what is used next, and the output, need
    room beside it. Where the first-level cache has room for such a panel, half of it is better: then panels stay there.
    """
    panel = target.l2_bytes // KC_L2_PART
    if panel > target.l1_bytes:
        return panel, target.l2_bytes // MC_L2_PART
    return target.l1_bytes // KC_L1_PART, target.l2_bytes * MC_L2_SIXTEENTHS // 16


def for_panels(tiles: Tiling, target: Target, element_bytes: int, length: int | None, longest: int | None) -> Tiling:
    """The blocks for columns that lie in panels: these are read from the second-level cache, so K blocks are long."""
    lanes = tiles.lanes
    most = max(MIN_KC, target.l2_bytes // KC_L2_PART // (tiles.nr * element_bytes) // lanes * lanes)
    most = min(longest or most, most)
    k_blocks = max(1, -(-(length or most) // most))
    depth = max(lanes, -(-(length or most) // (lanes * k_blocks)) * lanes)
    packed = max(1, target.l2_bytes // MC_L2_PART // (depth * element_bytes * tiles.mr))
    return replace(tiles, kc=depth, mc=tiles.mr * packed)


def with_tiles(contraction: Contraction, target: Target) -> tuple[Contraction, Tiling]:
    """A contraction on a machine: its columns are in panels only if these are as wide as a tile."""
    size = byte_size(contraction.element)
    tiles = tiling(target, size, contraction.longest, chosen_tile(target))
    contraction = from_panels(contraction, tiles.nr)
    if contraction.columns.panels is None:
        return contraction, tiles
    length = product_of(contraction.stage.extents[axis] for axis in contraction.reduced).constant_value
    return contraction, for_panels(tiles, target, size, length, contraction.longest)

"""The block sizes of a contraction, and whether its columns are in panels of that width."""

from __future__ import annotations

from lowering.kernels.cpu.gemm.tiling import Tiling, chosen_tile, for_panels, tiling
from lowering.kernels.cpu.structure.contraction import Contraction, from_panels
from tir_dialect.dims import product
from tir_dialect.dtypes import byte_size
from tir_dialect.target import Target


def with_tiles(what: Contraction, target: Target) -> tuple[Contraction, Tiling]:
    """A contraction on a machine: its columns are in panels only if these are as wide as a tile."""
    size = byte_size(what.element)
    tiles = tiling(target, size, what.longest, chosen_tile(target))
    what = from_panels(what, tiles.width)
    if what.columns.panels is None:
        return what, tiles
    length = product(what.stage.extents[axis] for axis in what.reduced).constant_value
    return what, for_panels(tiles, target, size, length, what.longest)

"""Whether an intrinsic may work on tiles of buffers: in bounds, and apart where one of them is written."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from xdsl.ir import SSAValue

from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.regions import AxisRange
from tir_dialect.analysis.structure import root_buffer
from tir_dialect.dims import constant
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule.legality.accesses import accesses_in, written_buffers
from tir_dialect.schedule.legality.boxes import join, loops_between, range_of
from tir_dialect.schedule.legality.matching import Tile
from tir_dialect.schedule.state import ScheduleState
from tir_dialect.schedule.structure import shape_of


def check_tiles(self: ScheduleState, space: IndexSpace, tiles: Sequence[Tile], description: PrimFuncOp) -> None:
    """Refuses tiles, one for each parameter of a description, that an implementation may not use as it likes.

    Parameters of an intrinsic do not overlap, and all of their elements are there.
    """
    boxes = [_box(tile, param) for tile, param in zip(tiles, description.params, strict=True)]
    written = written_buffers(description)
    rows = list(zip(tiles, description.params, boxes, strict=True))
    for tile, param, box in rows:
        if not _is_inside(space, tile, box) and not _uses_all(description, param):
            raise self.error(f'the tile of buffer "{tile.buffer.name_hint}" may reach behind its end')
    for (one, param, box), (two, other, position) in combinations(rows, 2):
        if not written.isdisjoint((param, other)) and not _are_apart(space, (one, two), (box, position)):
            raise self.error(
                f'the tiles of parameters "{param.name_hint}" and "{other.name_hint}" may overlap in buffer '
                f'"{one.buffer.name_hint}", and one of them is written'
            )


def _box(tile: Tile, param: SSAValue) -> list[AxisRange]:
    shape = shape_of(param)
    extents = [*[constant(1)] * (len(tile.starts) - len(shape)), *shape]
    return [AxisRange(start, extent) for start, extent in zip(tile.starts, extents, strict=True)]


def _is_inside(space: IndexSpace, tile: Tile, box: Sequence[AxisRange]) -> bool:
    """Whether a tile is in its buffer for all values of the iterators."""
    return all(
        space.less_equal(0, axis.lower) is True and space.less_equal(axis.lower + axis.extent, extent) is True
        for axis, extent in zip(box, shape_of(tile.buffer), strict=True)
    )


def _uses_all(description: PrimFuncOp, param: SSAValue) -> bool:
    """Whether the description reaches both ends of a parameter, so the function itself reaches as far."""
    space = IndexSpace(description)
    columns: list[list[AxisRange | None]] = [[] for _ in shape_of(param)]
    for access in accesses_in(space, description):
        if access.buffer is param:
            inner = [space.variable(loop.induction_var) for loop in loops_between(access, None)]
            for column, axis in zip(columns, access.axes, strict=True):
                column.append(range_of(space.prover, axis, inner))
    for column, extent in zip(columns, shape_of(param), strict=True):
        known = [axis for axis in column if axis is not None]
        if not known or join(space.prover, known) != AxisRange(constant(0), extent):
            return False
    return True


def _are_apart(space: IndexSpace, tiles: tuple[Tile, Tile], boxes: tuple[list[AxisRange], list[AxisRange]]) -> bool:
    """Whether tiles have no element in common: of different memory, or one after the other in some dimension."""
    one, two = (tile.buffer for tile in tiles)
    if root_buffer(one) is not root_buffer(two):
        return True
    return one is two and any(
        space.less_equal(a.lower + a.extent, b.lower) is True or space.less_equal(b.lower + b.extent, a.lower) is True
        for a, b in zip(*boxes, strict=True)
    )

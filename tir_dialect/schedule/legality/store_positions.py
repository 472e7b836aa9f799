"""The elements that a block stores to, as tiles of a buffer numbered by its iterators, upwards or downwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tir_dialect.analysis.regions import AxisRange, BlockRegions, Region
from tir_dialect.dims import Dim, floordiv, symbol
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class Position:
    """The indices `offset + step * v` and the `width - 1` after it, for iterator number `iterator` with value `v`.

    `width` is at most the size of `step`, which is not 0, so an index belongs to one value of the iterator.
    """

    iterator: int
    offset: Dim
    step: int
    width: Dim

    def values(self, indices: AxisRange) -> AxisRange:
        """The values of the iterator for which some index is in a range."""
        size = abs(self.step)
        first = floordiv(indices.lower - self.offset - self.width + size, size)
        last = floordiv(indices.lower - self.offset + indices.extent - 1, size)
        return AxisRange(first if self.step > 0 else -last, last - first + 1)


def positions_of(
    block: BlockOp, regions: BlockRegions, region: Region, sizes: Sequence[str]
) -> list[Position | None] | None:
    """What each dimension of a region that a block writes is; the same elements for all iterators are `None`.

    `None` for the whole if one is something else, or if the region does not tell all spatial iterators, or one twice.
    Offsets are made of `sizes`.
    """
    names = [dim.as_symbol or "" for dim in regions.iterators.values()]
    found: list[Position | None] = []
    for axis in region.axes:
        moving = [number for number, name in enumerate(names) if name in axis.lower.symbols | axis.extent.symbols]
        position = _position(axis, moving[0], names[moving[0]]) if len(moving) == 1 else None
        if moving and (position is None or not _is_alone(regions, position, sizes)):
            return None
        found.append(position)
    used = [position.iterator for position in found if position is not None]
    free = [number for number, it in enumerate(block.iterators) if it.kind is IteratorKind.SPATIAL]
    extents = [regions.space.dim_of(block.extents[number]) for number in free if number not in used]
    units = all(extent is not None and extent.constant_value == 1 for extent in extents)
    return found if units and len(set(used)) == len(used) else None


def _position(axis: AxisRange, number: int, name: str) -> Position | None:
    """The range of an axis as a multiple of a variable; `None` if it is none."""
    own = [(factor, monomial) for factor, monomial in axis.lower.terms if any(name in a.symbols for a, _ in monomial)]
    if len(own) != 1 or name in axis.extent.symbols:
        return None
    step, offset = own[0][0], axis.lower - own[0][0] * symbol(name)
    return None if name in offset.symbols else Position(number, offset, step, axis.extent)


def _is_alone(regions: BlockRegions, position: Position, sizes: Sequence[str]) -> bool:
    """Whether no two values of the iterator mean the same index, and the position depends on nothing else that
    moves.
    """
    fixed = position.offset.symbols | position.width.symbols
    return fixed <= set(sizes) and regions.space.less_equal(position.width, abs(position.step)) is True

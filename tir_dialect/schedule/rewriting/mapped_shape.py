"""The shape of a buffer whose indices are mapped."""

from __future__ import annotations

from collections.abc import Sequence

from tir_dialect.dims import Dim, maximum, product
from tir_dialect.schedule.index_domain import IndexDomain
from tir_dialect.schedule.index_map import IndexMap
from tir_dialect.schedule.state import ScheduleState


def mapped_shape(
    self: ScheduleState, index_map: IndexMap, shape: Sequence[Dim], *, assume_injective: bool = False
) -> list[Dim]:
    """The extents of the new indices; ScheduleError for maps of another rank, and maps that may not be injective.

    Where it is assumed that they do not, those are refused that certainly do, since they have fewer positions.
    """
    if len(index_map.inputs) != len(shape):
        raise self.error(f"expected an index map of {len(shape)} indices, got {index_map}")
    unknown = frozenset[str]().union(*(output.symbols for output in index_map.outputs))
    unknown = unknown.difference(index_map.inputs, self.func.symbol_names)
    if unknown:
        raise self.error(f'index map {index_map} uses "{min(unknown)}", which is no symbol of the function')
    domain = IndexDomain.of(shape, self.func.bounds)
    outputs = index_map.apply(domain.indices)
    if not assume_injective and not domain.tells_apart(outputs):
        raise self.error(f"index map {index_map} may map two elements to the same index")
    extents = [domain.extent(output) for output in outputs]
    known = [extent for extent in extents if extent is not None]
    if len(known) != len(extents):
        raise self.error(f"index map {index_map} gives an index that is not known to be at least 0 and bounded")
    if self.space.less_equal(product(shape), product(known)) is False:
        raise self.error(f"index map {index_map} has {product(known)} places for {product(shape)} elements")
    # of a buffer without elements, one more than the greatest index may be negative
    return [extent if self.space.less_equal(0, extent) is True else maximum(extent, 0) for extent in known]

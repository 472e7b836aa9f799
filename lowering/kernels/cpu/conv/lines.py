"""The structure of depthwise and grouped convolutions on channel-blocked data.

A vector holds channels of some groups. Each of them sees the members of its group, one after the other, by a vector of
data in which all lanes of a group hold the same member.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from lowering.kernels.cpu.conv.bordered_windows import Border, Windowed, find_windowed
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.gemm.problem import Gemm as Product
from lowering.kernels.cpu.structure.contraction import Factor, is_chain
from lowering.kernels.cpu.structure.padding import Padding, find_padding
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.ops.memory import LoadOp

Item = TypeVar("Item")


@dataclass(frozen=True)
class Lanes:
    """The axes of a block of channels."""

    axes: tuple[int, ...]
    """Those that count as one: the channels, or the groups and the filters of each."""
    size: int
    """How many channels a block has,"""
    members: int = 1
    """and a group."""
    member: int | None = None
    """The axis of the sums over the members of a group."""


@dataclass(frozen=True)
class Lines:
    """The axes of a depthwise or grouped convolution."""

    lanes: Lanes
    pixel: int
    units: tuple[int, ...]
    """The other axes of the results."""
    reduced: tuple[int, ...]
    """Those of the windows, that along which they move with the pixels last."""
    data: Windowed

    def border(self, axis: int) -> Border | None:
        """The border of the data along an axis of the results or of the windows."""
        return next((each for each in self.data.borders if axis in (each.axis, each.window)), None)


def find_lines(product: Product, padding: Padding | None) -> Lines | None:
    """The lines of a product whose data is padded so; `None` if it is no such product."""
    what, load = product.what, product.what.rows.value.owner
    if what.outer or what.is_integer or product.tiles.lanes == 1 or not isinstance(load, LoadOp):
        return None
    lanes = _find_groups(product) if what.column else _find_channels(product)
    data = find_windowed(product, load, padding)
    if lanes is None or data is None:
        return None
    pixel = next((axis for axis in what.row if what.output.strides[axis].constant_value == lanes.size), None)
    if pixel is None:
        return None
    windows = [axis for axis in what.reduced if axis != lanes.member]
    windows.sort(key=lambda axis: -(data.strides[axis].constant_value or 1 << 62))
    windows.sort(key=lambda axis: any((each.axis, each.window) == (pixel, axis) for each in data.borders))
    units = tuple(axis for axis in sorted((*what.batch, *what.row)) if axis not in (*lanes.axes, pixel))
    return Lines(lanes, pixel, units, tuple(windows), data)


def _find_channels(product: Product) -> Lanes | None:
    """A block of channels each of which has a filter for itself."""
    what = product.what
    lane = what.along[-1] if what.along else None
    if lane is None or not all(_is_plain(each) and each.stride(lane) == 1 for each in (what.rows, what.columns)):
        return None
    size = what.stage.extents[lane].constant_value
    return Lanes((lane,), size) if size and size % product.tiles.lanes == 0 else None


def _find_groups(product: Product) -> Lanes | None:
    """A block of groups that have as many filters as members, and of which a vector holds several."""
    what, extents = product.what, product.what.stage.extents
    if len(what.column) != 1 or not (_is_plain(what.rows) and _is_plain(what.columns)):
        return None
    (filter,) = what.column
    count = extents[filter].constant_value or 0
    group = next((axis for axis in what.batch if what.output.strides[axis].constant_value == count), None)
    member = next((axis for axis in what.reduced if what.rows.stride(axis) == 1), None)
    if group is None or member is None or extents[member] is not extents[filter]:
        return None
    size, axes, lanes = count * (extents[group].constant_value or 0), (group, filter), product.tiles.lanes
    accesses = [step.access(op, len(extents)) for step, op in product.epilogue.accesses]
    together = is_chain([what.output, *what.columns.accesses, *accesses], extents, axes)
    whole = size > 0 and size % lanes == 0 and lanes % count == 0
    read_so = what.rows.stride(group) == count and what.columns.stride(filter) == 1
    return Lanes(axes, size, count, member) if together and whole and read_so else None


def _is_plain(factor: Factor) -> bool:
    """Whether a factor is an element of memory, at an index that is linear in the axes."""
    plain = isinstance(factor.value.owner, LoadOp) and factor.value.type == factor.element
    return plain and factor.is_linear and factor.panels is None


def lines_of(product: Product) -> Lines | None:
    """The lines of a product whose code is being written."""
    load = product.what.rows.value.owner
    return find_lines(product, product.kernel.borders.get(load.buffer) if isinstance(load, LoadOp) else None)


def leave_out_borders(kernel: Kernel, plan: Sequence[Item]) -> list[Item]:
    """The plan without the stages that put zeros around data for one product that can do without."""
    stages = {store.buffer: each for each in plan if isinstance(each, Stage) for store in each.stores}
    left_out: list[Stage] = []
    for product in plan:
        load = product.what.rows.value.owner if isinstance(product, Product) else None
        if not isinstance(product, Product) or not isinstance(load, LoadOp) or load.buffer not in stages:
            continue
        padding = find_padding(stages[load.buffer])
        alone = sum(isinstance(use.operation, LoadOp) for use in load.buffer.uses) == 1
        if padding is not None and padding.is_zero and alone and find_lines(product, padding) is not None:
            kernel.borders[load.buffer] = padding
            left_out.append(stages[load.buffer])
    return [item for item in plan if not any(item is stage for stage in left_out)]

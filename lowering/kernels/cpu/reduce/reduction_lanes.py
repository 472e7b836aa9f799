"""Along which axis the lanes of a reduction lie, and whether they are results of a window that moves along it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lowering.kernels.cpu.emit.groups import Group, lane_group
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.widths import lane_count
from lowering.kernels.cpu.reduce.borders import find_border
from lowering.kernels.cpu.reduce.window import Window, find_window
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage


@dataclass(frozen=True)
class ReductionLanes:
    """The lanes of a reduction."""

    group: Group
    window: Window | None
    """Windows that overlap along the group, if a row of results is computed from them."""
    members_if_few: bool
    """Whether accesses are contiguous along the windows only, which pays off for a row of a few results."""


def reduction_lanes(
    kernel: Kernel, stage: Stage, reduction: Reduction, spatial: Sequence[Group], reduced: Sequence[Group], inner: bool
) -> ReductionLanes:
    """Lanes along the best group; if that is one side of a short window, along the results.

    A window of 5 x 5 fills no vector, and each of its results would take as long as many elements. `inner` says that
    there are loops around all groups.
    """
    best = lane_group(kernel, [stage], [*reduced, *spatial])
    if not spatial:
        return ReductionLanes(best, None, False)
    along = best if best in spatial else spatial[-1]
    lanes = lane_count(kernel, [stage], along)
    alone = all(stage.extents[axis].constant_value == 1 for axis in along.axes[:-1])
    if lanes == 1 or not alone or not (inner or len(spatial) > 1):
        return ReductionLanes(best, None, False)
    window = find_window(stage, reduction, along.last, find_border(stage, reduction, along.last))
    if window is None or (along is not best and window.size >= lanes):
        return ReductionLanes(best, None, False)
    return ReductionLanes(along, window, along is not best)

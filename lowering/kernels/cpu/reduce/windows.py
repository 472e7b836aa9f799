"""Windows that overlap along the lanes: which reductions move one.

Along which axis the lanes of a reduction lie, and whether they are results of a window that moves along it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lowering.kernels.cpu.emit.guards import Border, find_border, unneeded
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.vectorization import Group, lane_count, lane_group
from lowering.kernels.cpu.structure.accesses import Index
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class Window:
    """A reduction whose loads along one dimension are at `stride * lane + dilation * member`."""

    stage: Stage
    """The reduction, with indices of the row in place of the lanes, and no members."""
    reduction: Reduction
    border: Border | None
    lane: int
    member: int
    stride: int
    dilation: int
    results: Dim
    """How many results a row has."""

    @property
    def length(self) -> Dim:
        """How many elements windows reach."""
        return self.stride * (self.results - 1) + self.reach + 1

    @property
    def reach(self) -> int:
        """The distance between the first and the last element of a window."""
        return self.dilation * (self.size - 1)

    @property
    def size(self) -> int:
        """How many elements lie beside each other in a window."""
        return self.stage.axes[self.member].extent.constant_value or 1


def find_window(stage: Stage, reduction: Reduction, lane: int, border: Border | None) -> Window | None:
    """The window that a reduction moves along the lanes; `None` if there is none, or it cannot be taken apart."""
    reduced = stage.of_kind(IteratorKind.REDUCE)
    loads = [load for load in stage.loads if load not in reduction.accumulators]
    indices = [index for load in loads for index in stage.accesses[load] if index.strides[lane].terms]
    if len(reduction.combine) != 1 or not indices or any(load in stage.wholes for load in loads):
        return None
    members = [axis for axis in reduced if indices[0].strides[axis].terms]
    stride = indices[0].strides[lane].constant_value
    if len(members) != 1 or stride is None or stride < 1:
        return None
    size, dilation = (dim.constant_value for dim in (stage.axes[members[0]].extent, indices[0].strides[members[0]]))
    if size is None or size < 2 or dilation is None or dilation < 1 or dilation * size < stride:
        return None
    steps = {axis: step for axis, step in ((lane, stride), (members[0], dilation))}
    if not _moves_together(stage, loads, steps) or not _is_along(border, lane, members[0], steps):
        return None
    if not _only_indexes(stage, border, steps):
        return None
    row = _row_stage(stage, loads, lane, members[0])
    return Window(row, reduction, border, lane, members[0], stride, dilation, stage.axes[lane].extent)


def _moves_together(stage: Stage, loads: Sequence[LoadOp], steps: Mapping[int, int]) -> bool:
    """Whether every index moves with neither of the axes, or with both by their steps."""
    wanted = [constant(step) for step in steps.values()]
    for load in loads:
        for index in stage.accesses[load]:
            found = [index.strides[axis] for axis in steps]
            if index.value is not None or (found != wanted and any(each.terms for each in found)):
                return False
    return True


def _is_along(border: Border | None, lane: int, member: int, steps: Mapping[int, int]) -> bool:
    """Whether bounds of the lanes are bounds of indices in the row, the same in all rows."""
    for bound in () if border is None else border.edges:
        sign = 1 if (bound.step(lane) or 0) > 0 else -1
        if any(bound.step(axis) != sign * steps.get(axis, 0) for axis in range(len(bound.strides))):
            return False
    return border is None or member not in border.cuts


def _only_indexes(stage: Stage, border: Border | None, axes: Mapping[int, int]) -> bool:
    """Whether the axes are used for nothing but indices, and the question whether these are in the data."""
    if border is None:
        return stage.pinned.isdisjoint(axes)
    skipped = unneeded(stage, frozenset((border.guard.op,)))
    rest = [op for op in stage.block.body.walk() if op in stage.needed and op not in skipped]
    values = {stage.axes[axis].value for axis in axes}
    users = [op for op in rest if not isinstance(op, LoadOp | StoreOp) and not op.regions]
    return not any(operand in values or operand.owner in skipped for op in users for operand in op.operands)


def _row_stage(stage: Stage, loads: Sequence[LoadOp], lane: int, member: int) -> Stage:
    def moved(index: Index) -> Index:
        if not index.strides[lane].terms:
            return index
        steps = {lane: constant(1), member: constant(0)}
        return replace(index, strides=tuple(steps.get(axis, old) for axis, old in enumerate(index.strides)))

    accesses = {op: tuple(map(moved, old)) if op in loads else old for op, old in stage.accesses.items()}
    return replace(stage, accesses=accesses)


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

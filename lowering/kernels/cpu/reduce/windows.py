"""Sliding windows (pooling): which reductions are windows that overlap along the lanes, and the choice of the lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lowering.kernels.cpu.emit.guards import ClippedReduction, find_clipping, unneeded
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.vectorization import AxisGroup, choose_lane_axes, lane_count
from lowering.kernels.cpu.structure.accesses import Index
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class Window:
    """A reduction whose loads along one dimension are at `stride * lane + dilation * tap`."""

    stage: Stage
    """The reduction over rows of the windows: indices are those of the input row, without taps."""
    reduction: Reduction
    clipping: ClippedReduction | None
    lane: int
    tap: int
    stride: int
    dilation: int
    results: Dim
    """Results of a row."""

    @property
    def length(self) -> Dim:
        """Elements of an input row that the windows cover."""
        return self.stride * (self.results - 1) + self.span + 1

    @property
    def span(self) -> int:
        """The distance from the first to the last element of a window."""
        return self.dilation * (self.size - 1)

    @property
    def size(self) -> int:
        """Taps of a window along the lanes."""
        return self.stage.axes[self.tap].extent.constant_value or 1


def find_window(stage: Stage, reduction: Reduction, lane: int, clipping: ClippedReduction | None) -> Window | None:
    """The window that slides along the lanes; `None` if there is none, or it is not separable."""
    reduced = stage.of_kind(IteratorKind.REDUCE)
    loads = [load for load in stage.loads if load not in reduction.accumulators]
    indices = [index for load in loads for index in stage.accesses[load] if index.strides[lane].terms]
    if len(reduction.combine) != 1 or not indices or any(load in stage.wholes for load in loads):
        return None
    taps = [axis for axis in reduced if indices[0].strides[axis].terms]
    stride = indices[0].strides[lane].constant_value
    if len(taps) != 1 or stride is None or stride < 1:
        return None
    size, dilation = (dim.constant_value for dim in (stage.axes[taps[0]].extent, indices[0].strides[taps[0]]))
    if size is None or size < 2 or dilation is None or dilation < 1 or dilation * size < stride:
        return None
    steps = {axis: step for axis, step in ((lane, stride), (taps[0], dilation))}
    if not _moves_together(stage, loads, steps) or not _is_along(clipping, lane, taps[0], steps):
        return None
    if not _only_indexes(stage, clipping, steps):
        return None
    row = _row_stage(stage, loads, lane, taps[0])
    return Window(row, reduction, clipping, lane, taps[0], stride, dilation, stage.axes[lane].extent)


def _moves_together(stage: Stage, loads: Sequence[LoadOp], steps: Mapping[int, int]) -> bool:
    """Whether every index moves with neither of the axes, or with both by their strides."""
    wanted = [constant(step) for step in steps.values()]
    for load in loads:
        for index in stage.accesses[load]:
            found = [index.strides[axis] for axis in steps]
            if index.value is not None or (found != wanted and any(each.terms for each in found)):
                return False
    return True


def _is_along(clipping: ClippedReduction | None, lane: int, tap: int, steps: Mapping[int, int]) -> bool:
    """Whether bounds of the lanes are bounds of indices in the input row, the same in all rows."""
    for bound in () if clipping is None else clipping.lane_bounds:
        sign = 1 if (bound.step(lane) or 0) > 0 else -1
        if any(bound.step(axis) != sign * steps.get(axis, 0) for axis in range(len(bound.strides))):
            return False
    return clipping is None or tap not in clipping.loop_bounds


def _only_indexes(stage: Stage, clipping: ClippedReduction | None, axes: Mapping[int, int]) -> bool:
    """Whether the axes are used only in indices, and in the test whether these are in bounds."""
    if clipping is None:
        return stage.pinned.isdisjoint(axes)
    skipped = unneeded(stage, frozenset((clipping.guard.op,)))
    rest = [op for op in stage.block.body.walk() if op in stage.needed and op not in skipped]
    values = {stage.axes[axis].value for axis in axes}
    users = [op for op in rest if not isinstance(op, LoadOp | StoreOp) and not op.regions]
    return not any(operand in values or operand.owner in skipped for op in users for operand in op.operands)


def _row_stage(stage: Stage, loads: Sequence[LoadOp], lane: int, tap: int) -> Stage:
    def moved(index: Index) -> Index:
        if not index.strides[lane].terms:
            return index
        steps = {lane: constant(1), tap: constant(0)}
        return replace(index, strides=tuple(steps.get(axis, old) for axis, old in enumerate(index.strides)))

    accesses = {op: tuple(map(moved, old)) if op in loads else old for op, old in stage.accesses.items()}
    return replace(stage, accesses=accesses)


@dataclass(frozen=True)
class ReductionLanes:
    """The lanes of a reduction."""

    group: AxisGroup
    window: Window | None
    """Windows that slide along the group, if a row of results is computed from them."""
    taps_if_few: bool
    """Whether only the taps are contiguous, which is profitable for rows of a few results."""


def reduction_lanes(
    kernel: Kernel,
    stage: Stage,
    reduction: Reduction,
    spatial: Sequence[AxisGroup],
    reduced: Sequence[AxisGroup],
    inner: bool,
) -> ReductionLanes:
    """Lanes along the best group; if that is one side of a short window, along the results.

    A window of 5 x 5 fills no vector, and a horizontal reduction for each result would take long. `inner` says whether
    there are loops around all groups.
    """
    best = choose_lane_axes(kernel, [stage], [*reduced, *spatial])
    if not spatial:
        return ReductionLanes(best, None, False)
    along = best if best in spatial else spatial[-1]
    lanes = lane_count(kernel, [stage], along)
    alone = all(stage.extents[axis].constant_value == 1 for axis in along.axes[:-1])
    if lanes == 1 or not alone or not (inner or len(spatial) > 1):
        return ReductionLanes(best, None, False)
    window = find_window(stage, reduction, along.last, find_clipping(stage, reduction, along.last))
    if window is None or (along is not best and window.size >= lanes):
        return ReductionLanes(best, None, False)
    return ReductionLanes(along, window, along is not best)

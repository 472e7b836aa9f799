"""Stages that share rows: reductions and elementwise stages such that one row is completed before the next.

A kernel takes rows in one of four orders: short rows in blocks, with one row in each lane (`row_blocks.py`); two rows
jammed in each pass, or the last pass of a row fused with the first pass of the next (`rows.py`); or one after the
other (`rows.py`, which chooses).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.vectorization import collapse_axes
from lowering.kernels.cpu.reduce.windows import reduction_lanes
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.ops.memory import LoadOp
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class Row:
    """The rows that stages share, and the passes over each."""

    depth: int
    """How many leading axes choose the row."""
    buffers: tuple[SSAValue, ...]
    """Buffers of the function of which one row is live at a time."""
    unread: frozenset[SSAValue]
    """Those among them that are only read in the pass that writes them."""
    passes: tuple[tuple[Stage, ...], ...]
    """The stages of a row; those of one pass are fused into one loop."""


def find_row(
    kernel: Kernel, stages: Sequence[Stage], reductions: Mapping[Stage, Reduction], buffers: Sequence[SSAValue]
) -> Row | None:
    """The rows that the stages share; `None` if there is one stage, or no common row."""
    if len(stages) < 2:
        return None
    depth = min((shared_depth(stages), *(_lane_depth(kernel, *each) for each in reductions.items())))
    if depth == 0:
        return None
    passes = _fuse_passes(stages, reductions, depth)
    own = tuple(buffer for buffer in buffers if any(_touches(stage, buffer) for stage in stages))
    return Row(depth, own, frozenset(buffer for buffer in own if _is_unread(buffer, passes, reductions)), passes)


def _touches(stage: Stage, buffer: SSAValue) -> bool:
    return any(op.buffer is buffer for op in stage.accesses)


def shared_depth(stages: Sequence[Stage]) -> int:
    """How many leading axes all stages have in common, by which all accesses to shared buffers are indexed."""
    written = {store.buffer for stage in stages for store in stage.stores if _is_shared(store.buffer, stages)}
    depth = min(len(stage.of_kind(IteratorKind.SPATIAL)) for stage in stages)
    while depth > 0:
        if all(_is_by_rows(stage, stages[0], written, depth) for stage in stages):
            return depth
        depth -= 1
    return 0


def _lane_depth(kernel: Kernel, stage: Stage, reduction: Reduction) -> int:
    """How many axes are outside of the lanes of a reduction, if the lanes lie along a kept axis."""
    spatial, reduced = (stage.of_kind(kind) for kind in (IteratorKind.SPATIAL, IteratorKind.REDUCE))
    groups = [collapse_axes(kernel, [stage], axes) for axes in (spatial, reduced)]
    lane = reduction_lanes(kernel, stage, reduction, *groups, inner=False).group
    first = next((axis for axis in lane.axes if stage.extents[axis].constant_value != 1), lane.last)
    return first if lane.last in spatial else len(spatial)


def _is_shared(buffer: SSAValue, stages: Sequence[Stage]) -> bool:
    return sum(_touches(stage, buffer) for stage in stages) > 1


def _is_by_rows(stage: Stage, first: Stage, written: AbstractSet[SSAValue], depth: int) -> bool:
    kinds = [axis.kind for axis in stage.axes[:depth]]
    if stage.extents[:depth] != first.extents[:depth] or any(kind is not IteratorKind.SPATIAL for kind in kinds):
        return False
    for op, indices in stage.accesses.items():
        if op.buffer in written:
            if len(indices) < depth or not all(indices[axis].is_axis(axis) for axis in range(depth)):
                return False
            if any(index.strides[axis].terms for index in indices[depth:] for axis in range(depth)):
                return False
    return True


def _fuse_passes(
    stages: Sequence[Stage], reductions: Mapping[Stage, Reduction], depth: int
) -> tuple[tuple[Stage, ...], ...]:
    """Fuses adjacent stages that run once along the row and read only their own element of each other's results."""
    passes: list[list[Stage]] = []
    for stage in stages:
        if passes and all(_can_join(stage, other, reductions, depth) for other in passes[-1]):
            passes[-1].append(stage)
        else:
            passes.append([stage])
    return tuple(map(tuple, passes))


def _can_join(stage: Stage, other: Stage, reductions: Mapping[Stage, Reduction], depth: int) -> bool:
    """Whether a stage may handle each element right after an earlier stage has."""
    if stage.extents[depth:] != other.extents[depth:] or len(stage.axes) == depth:
        return False
    if not (_goes_along(stage, reductions, depth) and _goes_along(other, reductions, depth)):
        return False
    written = {store.buffer: other.accesses[store] for store in other.stores}
    mine = {store.buffer for store in stage.stores}
    if any(load.buffer in mine for load in other.loads) or not mine.isdisjoint(written):
        return False
    touched = [load for load in stage.loads if load.buffer in written]
    if other in reductions:
        return not touched
    return all(_same_element(stage, load, written[load.buffer]) for load in touched)


def _same_element(stage: Stage, load: LoadOp, written: Sequence[object]) -> bool:
    return stage.accesses[load] == tuple(written) and load.parent is stage.block.body.block


def _goes_along(stage: Stage, reductions: Mapping[Stage, Reduction], depth: int) -> bool:
    reduced = stage in reductions
    return not reduced or len(stage.of_kind(IteratorKind.SPATIAL)) == depth


def _is_unread(buffer: SSAValue, passes: Sequence[Sequence[Stage]], reductions: Mapping[Stage, Reduction]) -> bool:
    """Whether an elementwise stage writes the buffer and all its readers are in the same pass, after it."""
    users = [fused for fused in passes if any(_touches(stage, buffer) for stage in fused)]
    writers = [stage for fused in users for stage in fused if any(store.buffer is buffer for store in stage.stores)]
    return len(users) == 1 and len(writers) == 1 and writers[0] not in reductions


At: TypeAlias = Mapping[int, SSAValue]
"""Values of axes."""

Pass: TypeAlias = Callable[[Sequence[Stage], int, At, Mapping[Stage, At]], None]
"""Emits the stages of a pass with so many row axes, at a row; some of them at another row."""


class RowOrder(Protocol):
    """An order in which rows along the innermost of their axes are taken."""

    def emit(self, at: At, low: SSAValue | None, high: SSAValue) -> None:
        """The rows from `low` to before `high`, for given values of the axes around."""

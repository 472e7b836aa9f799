"""Maps of the results of windows, which are computed with these rather than from a row in memory."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from lowering.kernels.cpu.emit.groups import group_axes
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.structure.chains import Row
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.types import IteratorKind


def map_of_windows(kernel: Kernel, row: Row, stage: Stage, reductions: Mapping[Stage, Reduction]) -> Stage | None:
    """The map that follows a stage of windows, if it alone needs their results, each of them where it is."""
    following = next((after for sweep, after in pairwise(row.sweeps) if sweep == (stage,)), ())
    if len(following) != 1 or following[0] in reductions:
        return None
    (last,), (store,) = following, reductions[stage].stores
    stages = [each for sweep in row.sweeps for each in sweep]
    users = [each for each in stages if any(op.buffer is store.buffer for op in each.accesses)]
    if users != [stage, last] or store.buffer not in row.buffers:
        return None
    same_elements = _is_at_its_axes(stage, store.buffer) and _is_at_its_axes(last, store.buffer)
    return last if same_elements and _has_same_loops(kernel, stage, last, row.depth) else None


def _is_at_its_axes(stage: Stage, buffer: object) -> bool:
    """Whether a stage accesses the element of a buffer that its axes say, in every iteration."""
    found = [op for op in stage.accesses if op.buffer is buffer]
    indices = [(number, index) for op in found for number, index in enumerate(stage.accesses[op])]
    always = {*stage.body, *stage.init}
    return all(op in always for op in found) and all(index.is_axis(number) for number, index in indices)


def _has_same_loops(kernel: Kernel, stage: Stage, last: Stage, depth: int) -> bool:
    """Whether the axes of a map are those of the results, and loops that are one for these are one for the map."""
    axes = range(len(last.axes))
    if [*stage.of_kind(IteratorKind.SPATIAL)] != [*axes] or last.extents != stage.extents[: len(axes)]:
        return False
    inner = axes[depth:]
    alone, both = (group_axes(kernel, stages, inner) for stages in ([stage], [stage, last]))
    return [group.axes for group in alone] == [group.axes for group in both]

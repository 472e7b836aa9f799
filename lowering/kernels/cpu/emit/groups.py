"""Collapsing of axes: where the memory layout allows, several loops become a single longer one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.structure.accesses import AffineAccess
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.dims import Dim
from tir_dialect.ops.memory import StoreOp


@dataclass(frozen=True)
class Group:
    """Adjacent axes collapsed into one; each access advances with the last of them."""

    axes: tuple[int, ...]
    extent: Dim

    @property
    def last(self) -> int:
        """The axis that stands for all."""
        return self.axes[-1]


def group_axes(kernel: Kernel, stages: Sequence[Stage], axes: Sequence[int]) -> list[Group]:
    """The fewest groups of the axes, which all stages have: no access may jump between neighbours of a group.

    An axis with one value is part of the next group, so that threads share that one.
    """
    accesses = [access for stage in stages for access in accesses_of(kernel, stage)]
    pinned = {axis for stage in stages for axis in stage.pinned}
    extents = stages[0].extents
    groups: list[Group] = []
    for axis in axes:
        if groups and axis not in pinned and groups[-1].last not in pinned:
            last = groups[-1].last
            is_one = groups[-1].extent.constant_value == 1  # at 0, wherever that leads
            if is_one or all(access.strides[last] is access.strides[axis] * extents[axis] for access in accesses):
                groups[-1] = Group((*groups[-1].axes, axis), groups[-1].extent * extents[axis])
                continue
        groups.append(Group((axis,), extents[axis]))
    return groups


def accesses_of(kernel: Kernel, stage: Stage) -> Iterable[AffineAccess]:
    """All accesses that are made in memory."""
    return (kernel.access(stage, op) for op in stage.accesses)


def lane_group(kernel: Kernel, stages: Sequence[Stage], groups: Sequence[Group]) -> Group:
    """The group along which lanes lie best: where most accesses are contiguous, and as few as possible scattered."""

    def score(group: Group) -> tuple[int, int]:
        points = 0
        for stage in stages:
            written = {store.buffer for store in stage.stores} if stage.init else set[SSAValue]()
            for op in stage.accesses:
                if op.buffer not in written:
                    stride = kernel.access(stage, op).strides[group.last]
                    weight = 3 if isinstance(op, StoreOp) else 2
                    points += weight if stride.constant_value == 1 else 0 if not stride.terms else -weight
        short = group.extent.constant_value
        return points if short is None or short >= 4 else points - 4, groups.index(group)

    return max(groups, key=score)

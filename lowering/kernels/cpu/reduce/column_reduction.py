"""Reductions whose lanes run along a kept axis: each lane has a result of its own.

A few vectors of results are accumulated at once while the loops over the reduced axes run: a column of a matrix is
summed in rows of some cache lines, and a pooling window for all lanes together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.groups import Group, group_axes
from lowering.kernels.cpu.emit.kernel import Kernel, work_of
from lowering.kernels.cpu.emit.widths import lane_count, masks_are_cheap
from lowering.kernels.cpu.reduce.arg_columns import ArgColumns
from lowering.kernels.cpu.reduce.arg_reduction import has_lanes, order_of
from lowering.kernels.cpu.reduce.arg_rows import ArgReduction
from lowering.kernels.cpu.reduce.bands import NextBand
from lowering.kernels.cpu.reduce.borders import find_border
from lowering.kernels.cpu.reduce.columns import Columns
from lowering.kernels.cpu.reduce.extreme_rows import find_extreme_row
from lowering.kernels.cpu.reduce.reduction_lanes import reduction_lanes
from lowering.kernels.cpu.reduce.windows import Windows, windows_of
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from lowering.kernels.cpu.traversal.sweep import Sweep
from tir_dialect.dims import Dim, constant, product
from tir_dialect.types import IteratorKind

ROW_END = 16
"""To make one number of a vector of sums takes as long as so many elements."""

ROW_OF_WINDOWS = 48
"""The same for a row of windows, however short: it goes through memory."""
FEW_RESULTS = 3
"""Up to so many windows of a row are reduced one by one."""


class ColumnReduction:
    """A stage with kept axes, inside those that `at` fixes, and reduced axes."""

    def __init__(self, kernel: Kernel, stage: Stage, reduction: Reduction, around: int, asks: bool = False):
        """A stage that `asks` for bands of rows does so where they come from memory."""
        self.kernel, self.stage, self.reduction = kernel, stage, reduction
        self.code = kernel.code
        spatial = [axis for axis in stage.of_kind(IteratorKind.SPATIAL) if axis >= around]
        self.spatial = group_axes(kernel, [stage], spatial)
        self.reduced = group_axes(kernel, [stage], stage.of_kind(IteratorKind.REDUCE))
        found = reduction_lanes(kernel, stage, reduction, self.spatial, self.reduced, inner=around > 0)
        self.lane, self.members_if_few = found.group, found.members_if_few
        self.windows = None if found.window is None else windows_of(kernel, stage, found.window)
        self.lanes = lane_count(kernel, [stage], self.lane) if self.lane in self.spatial else 1
        order = order_of(stage, reduction) if self.lanes > 1 else None
        data = [load for load in stage.loads if load not in reduction.accumulators]
        asks = asks and self.lanes > 1 and len(self.reduced) == 1
        ahead = NextBand.of(kernel, stage, data, self.reduced[0].last, self.lane.last) if asks else None
        self.arguments = None if order is None else ArgColumns(kernel, stage, reduction, order, self.lane, ahead)
        self.lanes = self.lanes if self.arguments is None else self.arguments.lanes
        border = find_border(stage, reduction, self.lane.last) if self.lanes > 1 else None
        self.columns = Columns(kernel, stage, reduction, self.reduced, self.lane, self.lanes, border, ahead)

    @property
    def outermost(self) -> Group:
        """The group whose loop is around all others."""
        others = [group for group in self.spatial if group is not self.lane]
        return others[0] if others else self.spatial[0]

    @property
    def work(self) -> Dim:
        """About how many additions' time the stage takes."""
        if self.windows is not None:
            rows = product(group.extent for group in self.spatial if group is not self.lane)
            return work_of(self.stage) + rows * ROW_OF_WINDOWS
        ends = product(group.extent for group in self.spatial) if self.lane in self.reduced else constant(0)
        return work_of(self.stage) + ends * ROW_END

    @property
    def can_split_rows(self) -> bool:
        """Whether ranges of rows, all columns of each, may be reduced apart from each other."""
        alone = len(self.spatial) == len(self.reduced) == 1 and self.lanes > 1 and self.windows is None
        return alone and bool(self.reduction.combine) and self.columns.border is None

    @property
    def may_map_windows(self) -> bool:
        """Whether a map can follow results of windows while they are in registers."""
        return self.windows is not None and self.windows.are_in_registers

    def map_windows(self, stage: Stage) -> ColumnReduction | None:
        """Has a map of the results computed with them: here, or only for short rows, which others are given for.

        What is computed from the index in the row, too, is not computed for long ones, as it is by loops
        that know where the middle is.
        """
        assert self.windows is not None  # for which it may be asked
        if self.lane.last not in stage.pinned:
            self.windows.follow(stage)
            return None
        short = copy(self)
        short.windows = self.windows.take_short(stage)
        return short

    @property
    def is_short(self) -> SSAValue:
        """Whether rows are so short that those that are given for these are meant."""
        assert self.windows is not None  # they are given
        assert self.windows.short is not None
        return self.windows.short.is_one_iteration

    def prepare(self) -> None:
        """Memory that all results share, before the loops."""
        if self.windows is not None:
            self.windows.prepare()
        if self.arguments is not None:
            self.arguments.prepare()

    def emit(self, at: Mapping[int, SSAValue], part: tuple[SSAValue, SSAValue] | None = None) -> None:
        """The loops, after `prepare`; `part` is the range of the outermost group."""
        self._loops([group for group in self.spatial if group is not self.lane], dict(at), part)

    def emit_rows(self, rows: tuple[SSAValue, SSAValue]) -> None:
        """What a range of rows contributes to all columns, after `prepare`, if they can be split and counted."""
        target = self.columns if self.arguments is None else self.arguments
        target.emit({}, None, self.code.dim(self.lane.extent), rows)

    def _loops(self, groups: Sequence[Group], at: dict[int, SSAValue], part: tuple[SSAValue, SSAValue] | None) -> None:
        if not groups:
            if self.windows is not None:
                self._windows(self.windows, at)
            elif self.lane in self.reduced or self.lanes == 1:
                self._rows(at, part)
            elif self.arguments is not None:
                self._best_of_columns(self.arguments, at, part)
            else:
                self.columns.emit(at, *self._beginning_and_length(part))
            return
        low, high = (None, self.code.dim(groups[0].extent)) if part is None else part
        with self.code.loop(high, self._name(groups[0]), lower=low) as index:
            self._loops(groups[1:], {**at, groups[0].last: index}, None)

    def _windows(self, windows: Windows, at: dict[int, SSAValue]) -> None:
        """A row of results; through memory, a few of them one by one, with lanes along the window."""
        if not self.members_if_few or windows.are_in_registers:
            windows.emit(at)
            return
        with self.code.when(self.code.compare("sgt", self.code.dim(self.lane.extent), FEW_RESULTS)) as are_many:
            windows.emit(at)
        with self.code.otherwise(are_many):
            self._rows(at, None)

    def _name(self, group: Group) -> str:
        return self.stage.axes[group.last].value.name_hint or "i"

    def _beginning_and_length(self, part: tuple[SSAValue, SSAValue] | None) -> tuple[SSAValue | None, SSAValue]:
        if part is None:
            return None, self.code.dim(self.lane.extent)
        return part[0], self.code.sub(part[1], part[0])

    def _best_of_columns(
        self, arguments: ArgColumns, at: dict[int, SSAValue], part: tuple[SSAValue, SSAValue] | None
    ) -> None:
        """In lanes; one by one if there are too many rows to be counted in these."""
        can_count = arguments.can_count
        if isinstance(can_count, SSAValue):
            with self.code.when(can_count) as branch:
                arguments.emit(at, *self._beginning_and_length(part))
            with self.code.otherwise(branch):
                self._rows(at, part, one_by_one)
        elif can_count:
            arguments.emit(at, *self._beginning_and_length(part))
        else:
            self._rows(at, part, one_by_one)

    def _rows(
        self, at: dict[int, SSAValue], part: tuple[SSAValue, SSAValue] | None, reduce: RowCode | None = None
    ) -> None:
        """Lanes along a reduced axis, or none."""
        reduce = reduce or reduce_rows
        if self.lane in self.spatial:
            low, high = (None, self.code.dim(self.lane.extent)) if part is None else part
            with self.code.loop(high, self._name(self.lane), lower=low) as index:
                reduce(self.kernel, self.stage, self.reduction, {**at, self.lane.last: index})
            return
        reduce(self.kernel, self.stage, self.reduction, at)


RowCode: TypeAlias = Callable[[Kernel, Stage, Reduction, Mapping[int, SSAValue]], None]
"""Emits one result."""


def reduce_rows(kernel: Kernel, stage: Stage, reduction: Reduction, at: Mapping[int, SSAValue]) -> None:
    """One result: all reduced axes in one sweep."""
    order = order_of(stage, reduction) if has_lanes(kernel) else None
    if order is None:
        row = find_extreme_row(kernel, stage, reduction)
        with nullcontext() if row is None else kernel.code.when(row.is_special(at)):
            sweep_row(kernel, stage, reduction, at)
        return
    short = None if masks_are_cheap(kernel, [stage]) else partial(one_by_one, kernel, stage, reduction, at)
    ArgReduction(kernel, stage, reduction, order).emit(at, short)


def one_by_one(kernel: Kernel, stage: Stage, reduction: Reduction, at: Mapping[int, SSAValue]) -> None:
    """The same in the order of elements, without lanes."""
    sweep_row(kernel, stage, replace(reduction, combine=()), at)


def sweep_row(kernel: Kernel, stage: Stage, reduction: Reduction, at: Mapping[int, SSAValue]) -> None:
    """The same, by what all kinds of reductions have in common."""
    accumulators = Sweep(kernel, [stage], stage.of_kind(IteratorKind.REDUCE), {0: reduction}, asks=True).emit(at)
    if accumulators is not None:
        accumulators.write(accumulators.finish())

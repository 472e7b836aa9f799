"""Reductions whose lanes lie along an axis that stays: each lane has a result of its own.

A few vectors of results are accumulated at once while the loops over the reduced axes run; so a column of a matrix is
added up in rows of some cache lines, and a pooling window for all lanes together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.body import Body
from lowering.schedule.cpu.emit.groups import Group, group_axes, lane_group
from lowering.schedule.cpu.emit.kernel import Kernel, is_heavy
from lowering.schedule.cpu.emit.vectors import Step, vector_turn
from lowering.schedule.cpu.emit.widths import lane_count
from lowering.schedule.cpu.memory.accumulators import accumulator
from lowering.schedule.cpu.memory.arg_reduction import ArgReduction, direction, suits_lanes
from lowering.schedule.cpu.memory.borders import find_border, no_cuts
from lowering.schedule.cpu.memory.reduction import Reduction
from lowering.schedule.cpu.memory.sweep import Sweep, constant_of
from lowering.schedule.cpu.memory.window_reduction import WindowReduction, find_window
from lowering.schedule.cpu.structure.stages import Stage
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.types import IteratorKind

VECTORS_AT_ONCE = 8


class ColumnReduction:
    """A stage with axes that stay, inside of those that `at` has, and axes that are reduced."""

    def __init__(self, kernel: Kernel, stage: Stage, reduction: Reduction, around: int):
        self.kernel, self.stage, self.reduction = kernel, stage, reduction
        self.code = kernel.code
        spatial = [axis for axis in stage.of_kind(IteratorKind.SPATIAL) if axis >= around]
        self.spatial = group_axes(kernel, [stage], spatial)
        self.reduced = group_axes(kernel, [stage], stage.of_kind(IteratorKind.REDUCE))
        self.lane = lane_group(kernel, [stage], [*self.reduced, *self.spatial])
        self.lanes = lane_count(kernel, [stage], self.lane) if self.lane in self.spatial else 1
        self.border = find_border(stage, reduction, self.lane.last) if self.lanes > 1 else None
        alone = self.lanes > 1 and len(self.lane.axes) == 1
        found = find_window(stage, reduction, self.lane.last, self.border) if alone else None
        self.window = WindowReduction(kernel, stage, found) if found is not None and self.outer(around) else None
        branches = self.border is None or self.border.edges
        simple = not any(is_heavy(op) or (branches and isinstance(op, IfOp)) for op in stage.needed)
        self.unroll = VECTORS_AT_ONCE if simple and len(stage.stores) == 1 else 1

    def outer(self, around: int) -> bool:
        """Whether there are rows of results: lanes are not the outermost axis."""
        return around > 0 or len(self.spatial) > 1

    @property
    def outermost(self) -> Group:
        """The group whose loop is around all others."""
        others = [group for group in self.spatial if group is not self.lane]
        return others[0] if others else self.spatial[0]

    def prepare(self) -> None:
        """Memory that all results share, before the loops."""
        if self.window is not None:
            self.window.prepare()

    def emit(self, at: Mapping[int, SSAValue], part: tuple[SSAValue, SSAValue] | None = None) -> None:
        """The loops, after `prepare`; `part` is the range of the outermost group."""
        self._loops([group for group in self.spatial if group is not self.lane], dict(at), part)

    def _loops(self, groups: Sequence[Group], at: dict[int, SSAValue], part: tuple[SSAValue, SSAValue] | None) -> None:
        if not groups:
            if self.window is not None:
                self.window.emit(at)
            elif self.lane in self.reduced or self.lanes == 1:
                self._rows(at, part)
            else:
                self._columns(at, part)
            return
        low, high = (None, self.code.dim(groups[0].extent)) if part is None else part
        with self.code.loop(high, self._name(groups[0]), lower=low) as index:
            self._loops(groups[1:], {**at, groups[0].last: index}, None)

    def _name(self, group: Group) -> str:
        return self.stage.axes[group.last].value.name_hint or "i"

    def _rows(self, at: dict[int, SSAValue], part: tuple[SSAValue, SSAValue] | None) -> None:
        """Lanes along a reduced axis, or none."""
        if self.lane in self.spatial:
            low, high = (None, self.code.dim(self.lane.extent)) if part is None else part
            with self.code.loop(high, self._name(self.lane), lower=low) as index:
                reduce_rows(self.kernel, self.stage, self.reduction, {**at, self.lane.last: index})
            return
        reduce_rows(self.kernel, self.stage, self.reduction, at)

    # Lanes along an axis that stays.

    def _columns(self, at: dict[int, SSAValue], part: tuple[SSAValue, SSAValue] | None) -> None:
        code = self.code
        low, high = (None, code.dim(self.lane.extent)) if part is None else part
        length = high if low is None else code.sub(high, low)
        _Columns(self, at, low, length).emit()


class _Columns:
    """A range of results beside each other, for given values of the other axes that stay."""

    def __init__(self, reduction: ColumnReduction, at: dict[int, SSAValue], low: SSAValue | None, length: SSAValue):
        self.kernel, self.code, self.stage = reduction.kernel, reduction.code, reduction.stage
        self.reduction, self.reduced, self.lane = reduction.reduction, reduction.reduced, reduction.lane
        self.lanes, self.unroll, self.border = reduction.lanes, reduction.unroll, reduction.border
        self.at, self.low, self.length = at, low, length
        self.cuts = no_cuts() if self.border is None else self.border.ranges(self.code, self.stage, at)

    def emit(self) -> None:
        """As many vectors at once as there are; then single ones, then what is left."""
        code, done = self.code, self.code.index(0)
        for unroll in (self.unroll, 1) if self.unroll > 1 else (1,):
            done = self._blocks(done, unroll)
        known = constant_of(self.length)
        if known is not None and known == constant_of(done):
            return
        left = code.sub(self.length, done)
        with code.when(code.compare("sgt", left, 0)):
            self._block(done, 1, left)

    def _blocks(self, done: SSAValue, unroll: int) -> SSAValue:
        """Full blocks of some vectors from `done` on; gives where they end."""
        code, step, known = self.code, unroll * self.lanes, constant_of(self.length)
        if known is not None and known // step * step <= (constant_of(done) or 0):
            return done
        end = code.index(known // step * step) if known is not None else code.mul(code.divide(self.length, step), step)
        first = None if constant_of(done) == 0 else code.divide(done, step)
        with code.loop(code.divide(end, step), "block", lower=first) as block:
            self._block(code.mul(block, step), unroll, None)
        return end

    def _block(self, done: SSAValue, unroll: int, left: SSAValue | None) -> None:
        """The results of some vectors; with `left`, of the first lanes of one."""
        kernel, stage, reduction = self.kernel, self.stage, self.reduction
        start, lanes = done if self.low is None else self.code.add(self.low, done), unroll * self.lanes
        sums = [accumulator(kernel, load.buffer_type, lanes) for load in reduction.accumulators]

        def begin(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            body = Body(kernel, stage, {**self.at, self.lane.last: index}, self.lane.last)
            body.run([op for op in stage.init if not isinstance(op, StoreOp)])
            return [body.value(first) for first in reduction.first]

        def finish(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            body = Body(kernel, stage, {**self.at, self.lane.last: index}, self.lane.last)
            body.values |= {store.value: value for store, value in zip(reduction.stores, old, strict=True)}
            body.run(reduction.stores)
            return list(old)

        def turn(step: Step) -> None:
            vector_turn(kernel, start, lanes, left, sums, step)

        turn(begin)
        self._reduce(list(self.reduced), self.at, turn)
        turn(finish)

    def _reduce(self, groups: list[Group], at: dict[int, SSAValue], turn: Callable[[Step], None]) -> None:
        if groups:
            axis = groups[0].last
            low, high = self.cuts.get(axis, (None, self.code.dim(groups[0].extent)))
            with self.code.loop(high, self.stage.axes[axis].value.name_hint or "i", lower=low) as index:
                self._reduce(groups[1:], {**at, axis: index}, turn)
            return
        shared = Body(self.kernel, self.stage, at, self.lane.last)
        if self.border is not None and not self.border.edges:
            shared.take(frozenset((self.border.guard.op,)))
        shared.hoist(self.stage.body, {store.buffer for store in self.stage.stores})

        def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            body, pairs = shared.at_index(index), zip(self.reduction.accumulators, old, strict=True)
            body.values |= {load.result: value for load, value in pairs}
            body.run([op for op in self.stage.body if not isinstance(op, StoreOp)])
            return [body.value(store.value) for store in self.reduction.stores]

        turn(step)


def reduce_rows(kernel: Kernel, stage: Stage, reduction: Reduction, at: Mapping[int, SSAValue]) -> None:
    """One result: all reduced axes in one sweep."""
    better = direction(stage, reduction) if suits_lanes(kernel, stage) else None
    if better is not None:
        ArgReduction(kernel, stage, reduction, better).emit(at)
        return
    accumulators = Sweep(kernel, [stage], stage.of_kind(IteratorKind.REDUCE), {0: reduction}).emit(at)
    if accumulators is not None:
        accumulators.write(accumulators.finish())

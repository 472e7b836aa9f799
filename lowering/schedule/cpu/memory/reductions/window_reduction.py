"""Windows that overlap along the lanes are separable: rows are combined first, then columns.

A window of 3 x 3 takes 3 + 3 steps instead of 9. The combined row is kept in a buffer padded with neutral elements, so
windows that exceed the data need no condition, and nothing is masked but the last store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.body import Body
from lowering.schedule.cpu.emit.groups import group_axes
from lowering.schedule.cpu.emit.guards import range_of, unneeded
from lowering.schedule.cpu.emit.kernel import Kernel, buffer_type
from lowering.schedule.cpu.emit.vectors import vector_iteration
from lowering.schedule.cpu.emit.widths import lane_count
from lowering.schedule.cpu.memory.reduction import Reduction
from lowering.schedule.cpu.memory.reductions.borders import Border, no_cuts
from lowering.schedule.cpu.memory.sweep.accumulators import accumulator
from lowering.schedule.cpu.memory.sweep.extremes import better_key, folds_as_integers, key_of, number_of
from lowering.schedule.cpu.structure.accesses import Index
from lowering.schedule.cpu.structure.stages import Stage
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import GLOBAL_SCOPE, BufferType, IteratorKind, LoopKind


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


class WindowReduction:
    """The code of a window: `prepare` before all loops, `emit` for each row of results."""

    def __init__(self, kernel: Kernel, stage: Stage, window: Window):
        self.kernel, self.code, self.stage, self.window = kernel, kernel.code, stage, window
        self.rows = [axis for axis in stage.of_kind(IteratorKind.REDUCE) if axis != window.member]
        lane = group_axes(kernel, [window.stage], [window.lane])[0]
        self.lanes = lane_count(kernel, [stage], lane)
        self.kind = type(window.reduction.combine[0])
        self.has_keys = folds_as_integers(kernel, window.reduction.combine) and window.size > 2

    def prepare(self) -> None:
        """Memory for a row, full of the number that changes nothing, and which part of it the data fills."""
        code, window = self.code, self.window
        size = window.length + window.stride * self.lanes
        scope = "local" if size.constant_value is not None else GLOBAL_SCOPE
        dtype = i32 if self.has_keys else window.reduction.accumulators[0].buffer_type.dtype
        self.row = code.value(AllocBufferOp(BufferType([size], dtype, scope=scope, align=64)), "row")
        first = self._in_row(self._first())
        with code.loop(code.dim(size), "w") as index:
            code.store(first, self.row, [index])
        bounds = () if window.border is None else window.border.edges
        axis, steps = window.lane, (1, -1)
        along = [bound.with_step(axis, steps[(bound.step(axis) or 0) < 0]) for bound in bounds]
        self.low, self.high = range_of(code, along, axis, window.length, {})

    def _in_row(self, value: SSAValue) -> SSAValue:
        """A number as the row has it: floats as integers of the same order if there are many to compare."""
        return key_of(self.kernel, value, self.kind) if self.has_keys else value

    def _first(self) -> SSAValue:
        body = Body(self.kernel, self.stage, {})
        body.run([op for op in self.stage.init if not isinstance(op, StoreOp)])
        return body.value(self.window.reduction.first[0])

    def emit(self, at: Mapping[int, SSAValue]) -> None:
        """The results of a row."""
        self._vectors(self.low, self.high, lambda start, left: self._combine_rows(at, start, left))
        results = self.code.dim(self.window.results)
        self._vectors(self.code.index(0), results, lambda start, left: self._combine_members(at, start, left))

    def _vectors(self, low: SSAValue, high: SSAValue, vector: Callable[[SSAValue, SSAValue | None], None]) -> None:
        """Whole vectors from `low` on, then what is left."""
        code = self.code
        length = code.sub(high, low)
        count = code.divide(length, self.lanes)
        with code.loop(count, "block") as block:
            vector(code.add(low, code.mul(block, self.lanes)), None)
        done = code.mul(count, self.lanes)
        left = code.sub(length, done)
        with code.when(code.compare("sgt", left, 0)):
            vector(code.add(low, done), left)

    def _combine_rows(self, at: Mapping[int, SSAValue], start: SSAValue, left: SSAValue | None) -> None:
        """A vector of columns of all rows of the windows, combined into the row in memory."""
        code, kernel, window = self.code, self.kernel, self.window
        stage, reduction = window.stage, window.reduction
        sums = self._sums(reduction.accumulators[0].buffer_type, self._first())
        cuts = no_cuts() if window.border is None else window.border.ranges(code, stage, at)

        def reduce(axes: Sequence[int], at: Mapping[int, SSAValue]) -> None:
            if axes:
                low, high = cuts.get(axes[0], (None, code.dim(stage.axes[axes[0]].extent)))
                with code.loop(high, stage.axes[axes[0]].value.name_hint or "i", lower=low) as index:
                    reduce(axes[1:], {**at, axes[0]: index})
                return
            shared = Body(kernel, stage, at, window.lane)
            if window.border is not None:
                shared.take(frozenset((window.border.guard.op,)))
            shared.hoist(stage.body, {store.buffer for store in stage.stores})

            def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
                body = shared.at_index(index)
                body.values[reduction.accumulators[0].result] = old[0]
                body.run([op for op in stage.body if not isinstance(op, StoreOp)])
                return [body.value(reduction.stores[0].value)]

            vector_iteration(kernel, start, self.lanes, left, [sums], step)

        reduce(self.rows, at)
        # Lanes that are not there have the number that changes nothing, and a mask would hold up who loads the row.
        vector_iteration(kernel, start, self.lanes, None, [sums], self._keep)

    def _keep(self, index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
        self.code.store(self._in_row(old[0]), self.row, [index])
        return old

    def _sums(self, kind: BufferType, first: SSAValue) -> SSAValue:
        """A vector of sums, with the first values."""
        sums = accumulator(self.kernel, kind, self.lanes)
        with self.code.loop(self.code.index(self.lanes), "lane", kind=LoopKind.VECTORIZED) as lane:
            self.code.store(first, sums, [lane])
        return sums

    def _combine_members(self, at: Mapping[int, SSAValue], start: SSAValue, left: SSAValue | None) -> None:
        """A vector of results, of which the first `left` are stored."""
        code, kernel, window = self.code, self.kernel, self.window
        reduction, sums = window.reduction, self._sums(buffer_type(self.row), self._in_row(self._first()))
        size = self.stage.axes[window.member].extent
        with code.loop(code.dim(size), self.stage.axes[window.member].value.name_hint or "i") as member:
            further = code.mul(member, window.dilation)

            def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
                index = code.add(code.mul(index, window.stride), further)
                element = code.load(self.row, [index])
                if self.has_keys:
                    return [better_key(kernel, self.kind, old[0], element)]
                return reduction.combined(kernel, old, [element])

            vector_iteration(kernel, start, self.lanes, None, [sums], step)

        def finish(index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
            body = Body(kernel, self.stage, {**at, window.lane: index}, window.lane)
            body.values[reduction.stores[0].value] = number_of(kernel, old[0]) if self.has_keys else old[0]
            body.run(reduction.stores)
            return old

        vector_iteration(kernel, start, self.lanes, left, [sums], finish)

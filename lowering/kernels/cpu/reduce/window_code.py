"""What the ways to compute a row of windows share: windows are separable, so rows are combined first, then columns.

A window of 3 x 3 takes 3 + 3 steps instead of 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.body import Body
from lowering.kernels.cpu.emit.groups import group_axes
from lowering.kernels.cpu.emit.guards import range_of
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.vectors import Range, vector_iteration
from lowering.kernels.cpu.emit.widths import lane_count
from lowering.kernels.cpu.reduce.borders import no_cuts
from lowering.kernels.cpu.reduce.window import Window
from lowering.kernels.cpu.structure.stages import Stage
from lowering.kernels.cpu.traversal.accumulators import accumulator
from lowering.kernels.cpu.traversal.extremes import better_key, folds_as_integers, key_of, number_of
from tir_dialect.ops.memory import StoreOp
from tir_dialect.types import BufferType, IteratorKind, LoopKind


class WindowCode:
    """The code of a window: `prepare` before all loops, then, in the ways, `emit` for each row of results."""

    def __init__(self, kernel: Kernel, stage: Stage, window: Window):
        self.kernel, self.code, self.stage, self.window = kernel, kernel.code, stage, window
        self.rows = [axis for axis in stage.of_kind(IteratorKind.REDUCE) if axis != window.member]
        lane = group_axes(kernel, [window.stage], [window.lane])[0]
        self.lanes = lane_count(kernel, [stage], lane)
        self.kind = type(window.reduction.combine[0])
        self.has_keys = folds_as_integers(kernel, window.reduction.combine) and window.size > 2
        dtype = i32 if self.has_keys else window.reduction.accumulators[0].buffer_type.dtype
        self.row_type = BufferType([self.lanes], dtype)
        """Of results of columns, which are combined to those of windows."""
        self.following: Stage | None = None
        """A map of the results of windows, which alone needs them."""

    def prepare(self) -> None:
        """Which part of a row the data fills."""
        window = self.window
        bounds = () if window.border is None else window.border.edges
        axis, steps = window.lane, (1, -1)
        along = [bound.with_step(axis, steps[(bound.step(axis) or 0) < 0]) for bound in bounds]
        self.low, self.high = range_of(self.code, along, axis, window.length, {})

    def in_row(self, value: SSAValue) -> SSAValue:
        """A number as the row has it: floats as integers of the same order if there are many to compare."""
        return key_of(self.kernel, value, self.kind) if self.has_keys else value

    def combined(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """Two numbers of the row combined."""
        if self.has_keys:
            return better_key(self.kernel, self.kind, left, right)
        return self.window.reduction.combined(self.kernel, [left], [right])[0]

    def first(self) -> SSAValue:
        """The number that changes nothing."""
        body = Body(self.kernel, self.stage, {})
        body.run([op for op in self.stage.init if not isinstance(op, StoreOp)])
        return body.value(self.window.reduction.first[0])

    def new_sums(self, kind: BufferType, first: SSAValue) -> SSAValue:
        """A vector of sums, with the first values."""
        sums = accumulator(self.kernel, kind, self.lanes)
        with self.code.loop(self.code.index(self.lanes), "lane", kind=LoopKind.VECTORIZED) as lane:
            self.code.store(first, sums, [lane])
        return sums

    def combine_rows(
        self, at: Mapping[int, SSAValue], start: SSAValue, some: Range, sums: SSAValue, as_in_row: bool = False
    ) -> None:
        """A vector of columns of all rows of the windows, some of its lanes, combined with `sums`; these are numbers of
        the data, or `as_in_row`.
        """
        code, kernel, window = self.code, self.kernel, self.window
        stage, reduction = window.stage, window.reduction
        cuts = no_cuts() if window.border is None else window.border.ranges(code, stage, at)
        left_out = {*reduction.accumulators, *reduction.combine, *stage.stores}

        def reduce(axes: Sequence[int], at: Mapping[int, SSAValue]) -> None:
            if axes:
                low, high = cuts.get(axes[0], (None, code.dim(stage.axes[axes[0]].extent)))
                name, few = stage.axes[axes[0]].value.name_hint or "i", as_in_row and axes[0] in cuts
                with code.loop(high, name, lower=low, vectorize=not few) as index:
                    reduce(axes[1:], {**at, axes[0]: index})
                return
            shared = Body(kernel, stage, at, window.lane)
            if window.border is not None:
                shared.take(frozenset((window.border.guard.op,)))
            shared.hoist(stage.body, {store.buffer for store in stage.stores})

            def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
                body = shared.at_index(index)
                body.run([op for op in stage.body if op not in left_out])
                element = body.value(reduction.sources[0])
                if as_in_row:
                    return [self.combined(old[0], self.in_row(element))]
                return reduction.combined(kernel, old, [element])

            vector_iteration(kernel, start, self.lanes, some, [sums], step)

        reduce(self.rows, at)

    def finish(self, at: Mapping[int, SSAValue], start: SSAValue, left: SSAValue | None, sums: SSAValue) -> None:
        """Stores a vector of results, or the first `left` of them."""
        kernel, window, reduction = self.kernel, self.window, self.window.reduction

        def step(index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
            (store,), value = reduction.stores, number_of(kernel, old[0]) if self.has_keys else old[0]
            stage = self.stage if self.following is None else self.following
            body = Body(kernel, stage, {**at, window.lane: index}, window.lane)
            body.values[store.value] = value
            body.values |= {load.result: value for load in stage.loads if load.buffer is store.buffer}
            body.run(reduction.stores if self.following is None else stage.body)
            return old

        vector_iteration(kernel, start, self.lanes, left, [sums], step)

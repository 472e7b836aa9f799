"""What the ways to compute a row of windows share: windows are separable, so rows are combined first, then columns.

A window of 3 x 3 takes 3 + 3 steps instead of 9.

Rows of windows through memory.

The combined row is kept in a buffer padded with neutral elements, so windows that exceed the data need no condition,
and nothing is masked but the last store.

Rows of windows in registers: two vectors of results of columns are shuffled, as AVX-512 can, and combined to as many
results of windows as these hold.

Through memory a vector would be loaded from parts of two that have just been stored. A processor forwards what is in
one store only, so it would wait for both, longer than for all else about a row of some vectors.

Which way rows of windows are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.body import Body, combined
from lowering.kernels.cpu.emit.guards import no_cuts, range_of
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.shuffles import shuffle
from lowering.kernels.cpu.emit.vectorization import Range, group_axes, lane_count, masks_are_registers, vector_iteration
from lowering.kernels.cpu.reduce.windows import Window
from lowering.kernels.cpu.structure.stages import Stage
from lowering.kernels.cpu.traversal.accumulators import accumulator, better_key, folds_as_integers, key_of, number_of
from tir_dialect.dims import ceildiv, constant
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import AllocBufferOp, StoreOp
from tir_dialect.types import GLOBAL_SCOPE, BufferType, IteratorKind, LoopKind


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
        return combined(self.kernel, self.window.reduction, [left], [right])[0]

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
                return combined(kernel, reduction, old, [element])

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


class WindowReduction(WindowCode):
    """The code of a window whose columns are combined after the row is stored."""

    def prepare(self) -> None:
        """Memory for a row, full of the number that changes nothing, and which part of it the data fills."""
        code, window = self.code, self.window
        size = window.length + window.stride * self.lanes
        scope = "local" if size.constant_value is not None else GLOBAL_SCOPE
        kind = BufferType([size], self.row_type.dtype, scope=scope, align=64)
        self.row = code.value(AllocBufferOp(kind), "row")
        first = self.in_row(self.first())
        with code.loop(code.dim(size), "w") as index:
            code.store(first, self.row, [index])
        super().prepare()

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
        sums = self.new_sums(self.window.reduction.accumulators[0].buffer_type, self.first())
        self.combine_rows(at, start, left, sums)
        # Lanes that are not there have the number that changes nothing, and a mask would hold up who loads the row.
        vector_iteration(self.kernel, start, self.lanes, None, [sums], self._keep)

    def _keep(self, index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
        self.code.store(self.in_row(old[0]), self.row, [index])
        return old

    def _combine_members(self, at: Mapping[int, SSAValue], start: SSAValue, left: SSAValue | None) -> None:
        """A vector of results, of which the first `left` are stored."""
        code, window, sums = self.code, self.window, self.new_sums(self.row_type, self.in_row(self.first()))
        size = self.stage.axes[window.member].extent
        with code.loop(code.dim(size), self.stage.axes[window.member].value.name_hint or "i") as member:
            further = code.mul(member, window.dilation)

            def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
                element = code.load(self.row, [code.add(code.mul(index, window.stride), further)])
                return [self.combined(old[0], element)]

            vector_iteration(self.kernel, start, self.lanes, None, [sums], step)
        self.finish(at, start, left, sums)


REGISTERS = 2
"""Of columns, which a shuffle takes."""


class WindowRegisters(WindowCode):
    """The code of a window whose columns are in registers."""

    def __init__(self, kernel: Kernel, stage: Stage, window: Window, one_iteration: bool = False):
        """All results of a row are those of `one_iteration`, if there is code for no others."""
        super().__init__(kernel, stage, window)
        self.one_iteration = one_iteration

    @property
    def count(self) -> int:
        """How many results an iteration has: those whose windows are in the registers."""
        return (REGISTERS * self.lanes - 1 - self.window.reach) // self.window.stride + 1

    @property
    def is_possible(self) -> bool:
        """Whether registers are shuffled and masked at will, and an iteration advances by a vector and more."""
        is_small = self.window.size <= self.lanes and byte_size(self.row_type.dtype) >= 4
        return masks_are_registers(self.kernel) and is_small and self.count * self.window.stride >= self.lanes

    @property
    def suits_long_rows(self) -> bool:
        """Whether a row of many iterations had better not go through memory: not where two iterations share many
        columns, or where it takes more than an addition to combine elements.
        """
        shared = REGISTERS * self.lanes - self.count * self.window.stride
        return isinstance(self.window.reduction.combine[0], arith.AddfOp) and 8 * shared <= REGISTERS * self.lanes

    @property
    def is_one_iteration(self) -> SSAValue:
        """Whether one iteration has all results of a row."""
        return self.code.compare("sle", self.code.dim(self.window.results), self.count)

    def emit(self, at: Mapping[int, SSAValue]) -> None:
        """The results of a row."""
        if self.one_iteration:
            self._iteration(at, self.code.index(0))
            return
        iterations = ceildiv(self.window.results, constant(self.count))
        with self.code.loop(self.code.dim(iterations), "iteration", vectorize=False) as iteration:
            self._iteration(at, self.code.mul(iteration, self.count))

    def _iteration(self, at: Mapping[int, SSAValue], first: SSAValue) -> None:
        """The results of an iteration from `first` on."""
        code, window, results = self.code, self.window, self.code.dim(self.window.results)
        columns = self._columns(at, code.mul(first, window.stride))
        left = code.minimum(code.sub(results, first), self.count)
        self._results(at, columns, 0, first, left)
        if self.count > self.lanes:
            with code.when(code.compare("sgt", left, self.lanes)):
                second = code.add(first, self.lanes)
                self._results(at, columns, self.lanes, second, code.sub(left, self.lanes))

    def _columns(self, at: Mapping[int, SSAValue], index: SSAValue) -> Sequence[SSAValue]:
        """The results of columns from an index in the row on; outside of the data the number that changes nothing."""
        code, lanes = self.code, self.lanes
        columns = [self.new_sums(self.row_type, self.in_row(self.first())) for _ in range(REGISTERS)]
        for number, sums in enumerate(columns):
            start = code.add(index, number * lanes)
            inside = code.sub(self.low, start), code.sub(self.high, start)
            with code.when(code.compare("sgt", inside[1], 0)):
                self.combine_rows(at, start, inside, sums, as_in_row=True)
        return [code.load(sums, [code.index(0)], lanes) for sums in columns]

    def _results(
        self, at: Mapping[int, SSAValue], columns: Sequence[SSAValue], before: int, first: SSAValue, left: SSAValue
    ) -> None:
        """A vector of results of an iteration, those behind so many, of which `left` are stored."""
        code, window, lanes = self.code, self.window, self.lanes
        members = [accumulator(self.kernel, self.row_type, lanes) for _ in range(window.size)]
        last = REGISTERS * lanes - 1
        for number, member in enumerate(members):
            indices = (window.stride * (before + lane) + window.dilation * number for lane in range(lanes))
            order = [min(index, last) for index in indices]  # what is beyond belongs to no result of this iteration
            code.store(shuffle(code, (columns[0], columns[1]), order), member, [code.index(0)])

        def step(index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
            total = old[0]
            for each in old[1:]:
                total = self.combined(total, each)
            return [total, *old[1:]]

        vector_iteration(self.kernel, code.index(0), lanes, None, members, step)
        self.finish(at, first, left, members[0])


@dataclass
class Windows:
    """The code of windows, of which at least one way is there; if both are, a call chooses."""

    short: WindowRegisters | None
    """The way for rows of one iteration in registers."""
    long: WindowRegisters | WindowReduction | None

    @property
    def are_in_registers(self) -> bool:
        """Whether short rows are not stored before their columns are combined."""
        return self.short is not None or isinstance(self.long, WindowRegisters)

    def prepare(self) -> None:
        """What comes before all loops."""
        for way in (self.long, self.short):
            if way is not None:
                way.prepare()

    def emit(self, at: Mapping[int, SSAValue]) -> None:
        """The results of a row."""
        ways = [way for way in (self.short, self.long) if way is not None]
        if self.short is None or len(ways) == 1:
            ways[0].emit(at)
            return
        code = self.short.code
        with code.when(self.short.is_one_iteration) as is_short:
            ways[0].emit(at)
        with code.otherwise(is_short):
            ways[1].emit(at)

    def follow(self, stage: Stage) -> None:
        """Has a map of all results computed with them."""
        for way in (self.short, self.long):
            if way is not None:
                way.following = stage

    def take_short(self, stage: Stage) -> Windows:
        """The code for short rows by itself, with a map of their results."""
        short = self.short
        if short is None:
            assert self.long is not None  # one of them is
            short = WindowRegisters(self.long.kernel, self.long.stage, self.long.window, one_iteration=True)
        short.following, self.short = stage, None
        return Windows(short, None)


def windows_of(kernel: Kernel, stage: Stage, window: Window) -> Windows:
    """The code of a window."""
    registers, memory = WindowRegisters(kernel, stage, window), WindowReduction(kernel, stage, window)
    if not registers.is_possible:
        return Windows(None, memory)
    if registers.suits_long_rows:
        return Windows(None, registers)
    return Windows(WindowRegisters(kernel, stage, window, one_iteration=True), memory)

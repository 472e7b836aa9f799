"""Stages that share rows, and short rows in blocks of as many as a vector has lanes, which hides the latency of each
row's reductions.

Each pass runs over all rows of a block before the next pass. An accumulator stays a vector until all rows have one; a
tree of shuffles then makes one vector of them, with a lane for each row.

Expensive values that are computed once per row are computed for all rows of a block at once, one row per lane: the
logarithm of a row's sum, the square root of its variance, and reciprocals of divisors.

A kernel takes rows in one of four orders: short rows in blocks, with one row in each lane (`row_blocks.py`); two rows
jammed in each pass, or the last pass of a row fused with the first pass of the next (`rows.py`); or one after the
other (`rows.py`, which chooses).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import Protocol, TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cost_model import ROW_BLOCK_MAX_ELEMENTS
from lowering.kernels.emit.accumulators import accumulator
from lowering.kernels.emit.body import Body, has_reciprocal, reciprocal
from lowering.kernels.emit.kernel import Kernel, RowBlock
from lowering.kernels.emit.loop_nest import LoopNest
from lowering.kernels.emit.vectorization import (
    AxisGroup,
    collapse_axes,
    folded_rows,
    is_power_of_two,
    masks_are_cheap,
    vector_iteration,
)
from lowering.kernels.reduce.pooling import reduction_lanes
from lowering.kernels.structure.reduction import Reduction
from lowering.kernels.structure.stages import Stage, is_heavy, shared_depth
from tir_dialect.dims import Dim, maximum, product
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.vectors import by_lane
from tir_dialect.types import BufferType, IteratorKind


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
    own = tuple(buffer for buffer in buffers if any(stage.touches(buffer) for stage in stages))
    return Row(depth, own, frozenset(buffer for buffer in own if _is_unread(buffer, passes, reductions)), passes)


def _lane_depth(kernel: Kernel, stage: Stage, reduction: Reduction) -> int:
    """How many axes are outside of the lanes of a reduction, if the lanes lie along a kept axis."""
    spatial, reduced = (stage.of_kind(kind) for kind in (IteratorKind.SPATIAL, IteratorKind.REDUCE))
    groups = [collapse_axes(kernel, [stage], axes) for axes in (spatial, reduced)]
    lane = reduction_lanes(kernel, stage, reduction, *groups, inner=False).group
    first = next((axis for axis in lane.axes if stage.extents[axis].constant_value != 1), lane.last)
    return first if lane.last in spatial else len(spatial)


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
    users = [fused for fused in passes if any(stage.touches(buffer) for stage in fused)]
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


@dataclass
class RowInvariants:
    """The row-invariant values of one stage."""

    kernel: Kernel
    stage: Stage
    depth: int
    """How many axes choose the row."""
    written: frozenset[SSAValue]
    """The buffers that the pass writes."""
    memory: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue], init=False)
    """For each value of the stage, a buffer with that of all rows."""
    reciprocals: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue], init=False)

    def __post_init__(self) -> None:
        self.once: list[Operation] = []
        for op in self.stage.body:
            if self._is_once(op):
                self.once.append(op)

    def _is_once(self, op: Operation) -> bool:
        inner = {axis.value for axis in self.stage.axes[self.depth :]}
        if op.regions or isinstance(op, StoreOp):
            return False
        operands: Sequence[SSAValue] = op.operands
        if isinstance(op, LoadOp):
            access = self.kernel.access(self.stage, op)
            moves = any(access.strides[axis].terms for axis in range(self.depth, len(self.stage.axes)))
            if moves or op.buffer in self.written:
                return False
            operands = [value for value, _ in access.computed]
        body = set(self.stage.body)
        return all(value not in inner and (value.owner in self.once or value.owner not in body) for value in operands)

    def prepare(self, at: Mapping[int, SSAValue], axis: int, start: SSAValue, left: SSAValue, lanes: int) -> None:
        """Computes the values of the first `left` of the rows from `start` on."""
        code, kept, divisors = self.kernel.code, self._kept(), self._divisors()
        if not kept and not divisors:
            return
        self.memory = {value: self._allocate(value, lanes) for value in kept}
        self.reciprocals = {value: self._allocate(value, lanes) for value in divisors}

        def step(lane: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            body = Body(self.kernel, self.stage, {**at, axis: code.add(start, lane)}, axis)
            body.run(self._ancestors({*kept, *divisors}))
            for value, memory in self.memory.items():
                code.store(body.value(value), memory, [lane])
            for value, memory in self.reciprocals.items():
                code.store(reciprocal(code, body.value(value)), memory, [lane])
            return []

        loads = [op for op in self._ancestors({*kept, *divisors}) if isinstance(op, LoadOp)]
        mask = None if self.kernel.is_of_rows(self.stage, loads) else left
        vector_iteration(self.kernel, code.index(0), lanes, mask, [], step)

    def give(self, body: Body, row: SSAValue) -> None:
        """Sets the values of a row of the block."""
        body.values |= {value: self.kernel.code.load(memory, [row]) for value, memory in self.memory.items()}
        body.reciprocals |= {value: self.kernel.code.load(memory, [row]) for value, memory in self.reciprocals.items()}

    def _allocate(self, value: SSAValue, lanes: int) -> SSAValue:
        assert isinstance(value.type, AnyFloat)  # only floats are kept
        return self.kernel.code.value(AllocBufferOp(BufferType([lanes], value.type, scope="local", align=64)), "once")

    def _kept(self) -> list[SSAValue]:
        """The results of expensive operations that elements need."""
        heavy: dict[SSAValue, None] = {}
        for op in self.once:
            if is_heavy(op) or any(operand in heavy for operand in op.operands):
                heavy.update(dict.fromkeys(op.results))
        return [value for value in heavy if isinstance(value.type, AnyFloat) and self._is_for_elements(value)]

    def _is_for_elements(self, value: SSAValue) -> bool:
        return any(use.operation in self.stage.needed and use.operation not in self.once for use in value.uses)

    def _divisors(self) -> list[SSAValue]:
        """Divisors of elements, of which reciprocals may be used."""
        found = [op for op in self.stage.body if isinstance(op, arith.DivfOp) and op not in self.once]
        once = {result for op in self.once for result in op.results}
        wanted = [op.rhs for op in found if op.rhs in self.kernel.divisors and op.lhs.owner not in self.once]
        return [value for value in dict.fromkeys(wanted) if value in once and has_reciprocal(value)]

    def _ancestors(self, values: set[SSAValue]) -> list[Operation]:
        needed, found = set(values), list[Operation]()
        for op in reversed(self.once):
            if any(result in needed for result in op.results):
                needed.update(op.operands)
                found.append(op)
        return found[::-1]


@dataclass(frozen=True)
class RowBlocks:
    """Generates a chain whose rows are blocked along the last of their axes."""

    kernel: Kernel
    row: Row
    along: AxisGroup
    """The axis of the rows of a block."""
    reductions: Mapping[Stage, Reduction]
    size: int

    @property
    def length(self) -> Dim:
        """How many elements a row has."""
        rows = (stage.extents[self.row.depth :] for items in self.row.passes for stage in items)
        return maximum(*map(product, rows))

    def suits(self) -> bool | SSAValue:
        """Whether rows are short enough and numerous enough: known now, or at run time."""
        code, limits = (
            self.kernel.code,
            ((self.length, ROW_BLOCK_MAX_ELEMENTS, "sle"), (self.along.extent, self.size // 2, "sge")),
        )
        found: list[SSAValue] = []
        for extent, limit, test in limits:
            known = extent.constant_value
            if known is None:
                found.append(code.compare(test, code.dim(extent), limit))
            elif not (known <= limit if test == "sle" else known >= limit):
                return False
        return reduce(lambda a, b: code.value(arith.AndIOp(a, b)), found) if found else True

    def emit(self, at: Mapping[int, SSAValue], low: SSAValue | None, high: SSAValue) -> None:
        """The rows from `low` to before `high`, for given values of the axes around."""
        code, size = self.kernel.code, self.size
        count = high if low is None else code.sub(high, low)
        with code.loop(code.divide(code.add(count, size - 1), size), "block") as block:
            start = code.mul(block, size)
            left = code.minimum(code.sub(count, start), size)
            start = start if low is None else code.add(low, start)
            with self._starting_at(start):
                for stages in self.row.passes:
                    self._pass(stages, at, start, left)

    @contextmanager
    def _starting_at(self, start: SSAValue):
        """In this context, memory for a row is that for all rows of the block from `start` on."""
        kernel = self.kernel
        kernel.block = RowBlock(self.along.last, kernel.code.sub(kernel.code.index(0), start))
        yield
        kernel.block = None

    def _pass(self, stages: Sequence[Stage], at: Mapping[int, SSAValue], start: SSAValue, left: SSAValue) -> None:
        code, depth, axis = self.kernel.code, self.row.depth, self.along.last
        if len(stages[0].axes) == depth:
            self._rows_at_once(stages[0], at, start, left)
            return
        found = {i: self.reductions[stage] for i, stage in enumerate(stages) if stage in self.reductions}
        written = frozenset(store.buffer for stage in stages for store in stage.stores)
        values = {stage: RowInvariants(self.kernel, stage, depth, written) for stage in stages}
        for each in values.values():
            each.prepare(at, axis, start, left, self.size)
        chunks = {
            position: accumulator(self.kernel, reduction.accumulators[0].buffer_type, self.size * self.size)
            for position, reduction in found.items()
        }
        with code.loop(left, "row", vectorize=False) as row:

            def give(body: Body, row: SSAValue = row) -> None:
                values[body.stage].give(body, row)

            nest = LoopNest(self.kernel, stages, range(depth, len(stages[0].axes)), found, unrolls=False, given=give)
            accumulators = nest.emit({**at, axis: code.add(start, row)})
            for position, chunk in chunks.items():
                assert accumulators is not None  # there is a reduction
                partial = code.load(accumulators.buffers[position][0], [code.index(0)], self.size)
                code.store(partial, chunk, [code.mul(row, self.size)])
        for position, chunk in chunks.items():
            self._epilogue(stages[position], found[position], chunk, at, start, left)

    def _epilogue(
        self,
        stage: Stage,
        reduction: Reduction,
        chunk: SSAValue,
        at: Mapping[int, SSAValue],
        start: SSAValue,
        left: SSAValue,
    ) -> None:
        """The results of all rows, one in each lane; lanes without a row hold anything."""
        kernel, code, size = self.kernel, self.kernel.code, self.size
        (combine,), (load,), (source,) = reduction.combine, reduction.accumulators, reduction.sources

        def combined(a: SSAValue, b: SSAValue) -> SSAValue:
            values = {load.result: a, source: b}
            return code.value(by_lane(combine, [values[operand] for operand in combine.operands], size))

        rows = [code.load(chunk, [code.index(row * size)], size) for row in range(size)]
        results = accumulator(kernel, load.buffer_type, size)
        code.store(folded_rows(code, rows, combined), results, [code.index(0)])
        axis = self.along.last

        def step(lane: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            body = Body(kernel, stage, {**at, axis: code.add(start, lane)}, axis)
            body.values[reduction.stores[0].value] = old[0]
            body.run(reduction.stores)
            return list(old)

        mask = None if self.kernel.is_of_rows(stage, reduction.stores) else left
        vector_iteration(kernel, code.index(0), size, mask, [results], step)

    def _rows_at_once(self, stage: Stage, at: Mapping[int, SSAValue], start: SSAValue, left: SSAValue) -> None:
        """A stage that runs once per row, with a row in each lane."""
        body = Body(self.kernel, stage, at, self.along.last)
        body.hoist(stage.body, {store.buffer for store in stage.stores})

        def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            body.at_index(index).run(stage.body)
            return []

        mask = None if self.kernel.is_of_rows(stage, stage.accesses) else left
        vector_iteration(self.kernel, start, self.size, mask, [], step)


def find_row_blocks(
    kernel: Kernel, row: Row, along: AxisGroup, reductions: Mapping[Stage, Reduction]
) -> RowBlocks | None:
    """The blocks of rows along a group of axes; `None` if a reduction is not foldable, or vector widths differ."""
    stages = [stage for items in row.passes for stage in items]
    sizes: set[int] = set()
    for items in row.passes:
        found = {i: reductions[stage] for i, stage in enumerate(items) if stage in reductions}
        if found:
            sizes.add(LoopNest(kernel, items, range(row.depth, len(items[0].axes)), found).lanes)
    foldable = all(_is_foldable(reductions[stage], stage, row.depth) for stage in stages if stage in reductions)
    if len(sizes) != 1 or not foldable or not masks_are_cheap(kernel, stages):
        return None
    size = sizes.pop()
    return RowBlocks(kernel, row, along, reductions, size) if is_power_of_two(size) and size >= 4 else None


def _is_foldable(reduction: Reduction, stage: Stage, depth: int) -> bool:
    return (
        len(reduction.combine) == len(reduction.accumulators) == 1 and len(stage.of_kind(IteratorKind.SPATIAL)) == depth
    )

"""Short rows, as many at a time as a vector has lanes, to hide the latency of each row's reductions.

Each pass runs over all rows of a block before the next begins. An accumulator stays a vector until all rows have one; a
tree of shuffles then makes one vector of them, with a lane for each row. What a row computes once, such as the
logarithm of its sum, is computed in these lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.body import Body
from lowering.kernels.cpu.emit.groups import Group
from lowering.kernels.cpu.emit.kernel import Kernel, RowBlock
from lowering.kernels.cpu.emit.transpose import folded_rows, is_power_of_two
from lowering.kernels.cpu.emit.vectors import vector_iteration
from lowering.kernels.cpu.emit.widths import masks_are_cheap
from lowering.kernels.cpu.row.row_values import RowValues
from lowering.kernels.cpu.structure.chains import Row
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from lowering.kernels.cpu.traversal.accumulators import accumulator
from lowering.kernels.cpu.traversal.sweep import Sweep
from tir_dialect.dims import Dim, maximum, product
from tir_dialect.te.emit.scalar import by_lane
from tir_dialect.types import IteratorKind

LONGEST_ROW = 256
"""Elements of a row, so that the rows of a block stay in the first-level cache; longer ones hide what they wait for."""


@dataclass(frozen=True)
class RowBlocks:
    """The code of a chain whose rows are blocked along the last of their axes."""

    kernel: Kernel
    row: Row
    along: Group
    """The axis whose neighbours are the rows of a block."""
    reductions: Mapping[Stage, Reduction]
    size: int

    @property
    def length(self) -> Dim:
        """How many elements a row has."""
        rows = (stage.extents[self.row.depth :] for items in self.row.sweeps for stage in items)
        return maximum(*map(product, rows))

    def suits(self) -> bool | SSAValue:
        """Whether rows are short, and there are some: known now, or when the kernel runs."""
        code, limits = self.kernel.code, ((self.length, LONGEST_ROW, "sle"), (self.along.extent, self.size // 2, "sge"))
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
                for stages in self.row.sweeps:
                    self._pass(stages, at, start, left)

    @contextmanager
    def _starting_at(self, start: SSAValue):
        """While code of a block is written, memory for a row is that for all rows from `start` on."""
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
        values = {stage: RowValues(self.kernel, stage, depth, written) for stage in stages}
        for each in values.values():
            each.prepare(at, axis, start, left, self.size)
        parts = {
            position: accumulator(self.kernel, reduction.accumulators[0].buffer_type, self.size * self.size)
            for position, reduction in found.items()
        }
        with code.loop(left, "row", vectorize=False) as row:

            def give(body: Body, row: SSAValue = row) -> None:
                values[body.stage].give(body, row)

            sweep = Sweep(self.kernel, stages, range(depth, len(stages[0].axes)), found, unrolls=False, given=give)
            accumulators = sweep.emit({**at, axis: code.add(start, row)})
            for position, part in parts.items():
                assert accumulators is not None  # there is a reduction
                sums = code.load(accumulators.buffers[position][0], [code.index(0)], self.size)
                code.store(sums, part, [code.mul(row, self.size)])
        for position, part in parts.items():
            self._finish(stages[position], found[position], part, at, start, left)

    def _finish(
        self,
        stage: Stage,
        reduction: Reduction,
        part: SSAValue,
        at: Mapping[int, SSAValue],
        start: SSAValue,
        left: SSAValue,
    ) -> None:
        """The results of all rows, each in its lane; rows that are not there have what memory happens to hold."""
        kernel, code, size = self.kernel, self.kernel.code, self.size
        (combine,), (load,), (source,) = reduction.combine, reduction.accumulators, reduction.sources

        def combined(a: SSAValue, b: SSAValue) -> SSAValue:
            values = {load.result: a, source: b}
            return code.value(by_lane(combine, [values[operand] for operand in combine.operands], size))

        rows = [code.load(part, [code.index(row * size)], size) for row in range(size)]
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
        """What is done once for a row, a row for each lane."""
        body = Body(self.kernel, stage, at, self.along.last)
        body.hoist(stage.body, {store.buffer for store in stage.stores})

        def step(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            body.at_index(index).run(stage.body)
            return []

        mask = None if self.kernel.is_of_rows(stage, stage.accesses) else left
        vector_iteration(self.kernel, start, self.size, mask, [], step)


def find_row_blocks(kernel: Kernel, row: Row, along: Group, reductions: Mapping[Stage, Reduction]) -> RowBlocks | None:
    """The blocks of rows along a group of axes; `None` if a reduction has no vector to fold, or vectors differ."""
    stages = [stage for items in row.sweeps for stage in items]
    sizes: set[int] = set()
    for items in row.sweeps:
        found = {i: reductions[stage] for i, stage in enumerate(items) if stage in reductions}
        if found:
            sizes.add(Sweep(kernel, items, range(row.depth, len(items[0].axes)), found).lanes)
    foldable = all(_is_foldable(reductions[stage], stage, row.depth) for stage in stages if stage in reductions)
    if len(sizes) != 1 or not foldable or not masks_are_cheap(kernel, stages):
        return None
    size = sizes.pop()
    return RowBlocks(kernel, row, along, reductions, size) if is_power_of_two(size) and size >= 4 else None


def _is_foldable(reduction: Reduction, stage: Stage, depth: int) -> bool:
    return (
        len(reduction.combine) == len(reduction.accumulators) == 1 and len(stage.of_kind(IteratorKind.SPATIAL)) == depth
    )

"""Kernels whose stages share rows, such as softmax and normalisations, in the order that suits the rows.

Two rows may be jammed, or rows pipelined.

Jammed rows: each pass runs over two rows. Latencies at the ends of a row are paid once for both, and operands that rows
have in common, such as scale and bias, are loaded once for both. This takes many registers.

Pipelined rows: the last pass over a row is fused with the first pass over the next row. The one waits for its stores,
the other for its loads, and the arithmetic of both fills the time. Passes before the first, such as a sum of a few
elements, are done for the next row before the last pass over this one. Nothing is shared between the rows, and no more
registers are needed than for two passes.

Long rows with common operands are jammed: a pass over the end of a row and the beginning of the next would evict these
operands from L1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise

from xdsl.ir import SSAValue

from lowering.kernels.cost_model import ROW_PASS_MIN_BYTES, ROW_PASS_ROWS
from lowering.kernels.emit.kernel import Kernel, RowBlock
from lowering.kernels.emit.loop_nest import LoopNest
from lowering.kernels.emit.prefetching import PrefetchedAccess, computes_much, find_prefetched_accesses
from lowering.kernels.emit.vectorization import AxisGroup, collapse_axes, masks_are_cheap, masks_are_registers
from lowering.kernels.reduce.reductions import ColumnReduction
from lowering.kernels.row.rewrites import rewrite_to_one_pass
from lowering.kernels.row.row_blocks import At, Pass, Row, RowOrder, find_row, find_row_blocks
from lowering.kernels.structure.reduction import Reduction, reduction_of
from lowering.kernels.structure.stages import Program, Stage, rewritten, work_of
from tir_dialect.dims import maximum, product
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class RowPairs:
    """The rows along a group of axes, jammed by two."""

    kernel: Kernel
    row: Row
    along: AxisGroup
    clones: Mapping[Stage, Stage]
    """For each stage its copy for the second row."""
    emit_pass: Pass

    def emit(self, at: At, low: SSAValue | None, high: SSAValue) -> None:
        """The rows from `low` to before `high`, for given values of the axes around."""
        code, axis = self.kernel.code, self.along.last
        count = high if low is None else code.sub(high, low)
        with code.loop(code.divide(code.add(count, ROW_PASS_ROWS - 1), ROW_PASS_ROWS), "pair") as pair:
            start = code.mul(pair, ROW_PASS_ROWS)
            start = start if low is None else code.add(low, start)
            following = code.add(start, 1)
            here, there = {**at, axis: start}, {**at, axis: following}
            self.kernel.block = RowBlock(axis, code.sub(code.index(0), start))
            with code.when(code.compare("slt", following, high)) as are_two:
                for stages in self.row.passes:
                    clones = [self.clones[stage] for stage in stages]
                    self.emit_pass((*stages, *clones), self.row.depth, here, dict.fromkeys(clones, there))
            with code.otherwise(are_two):
                for stages in self.row.passes:
                    self.emit_pass(stages, self.row.depth, here, {})
            self.kernel.block = None


def clone_stages(row: Row) -> Mapping[Stage, Stage]:
    """A copy of each stage of a row."""
    return {stage: replace(stage) for stages in row.passes for stage in stages}


def are_pairs_profitable(
    kernel: Kernel, row: Row, along: AxisGroup, reductions: Mapping[Stage, Reduction]
) -> bool | SSAValue:
    """Whether jamming two rows along some axes is profitable: known now, or at run time.

    All passes have to be sums, or elementwise stages that have several operands in common for all rows. One such
    operand is enough if rows are so long that a pass over two of them exceeds L1.
    """
    if not masks_are_registers(kernel):
        return False
    passes = [stages for stages in row.passes if len(stages[0].axes) > row.depth]
    if not all(
        _are_sums(stages, row.depth, reductions) or _are_elementwise(kernel, stages, reductions) for stages in passes
    ):
        return False
    last = passes[-1]
    shared = sum(_shared_operands(kernel, stage, along) for stage in last)
    if shared != 1:
        return shared > 1
    touched = sum(
        byte_size(op.buffer_type.dtype) for stage in last for op in stage.accesses if op.buffer in kernel.flat
    )
    length, limit = product(last[0].extents[row.depth :]), kernel.target.l1_bytes // (touched + ROW_PASS_MIN_BYTES)
    known = length.constant_value
    return kernel.code.compare("sge", kernel.code.dim(length), limit) if known is None else known >= limit


def _are_sums(stages: Sequence[Stage], depth: int, reductions: Mapping[Stage, Reduction]) -> bool:
    return all(stage in reductions and len(stage.of_kind(IteratorKind.SPATIAL)) == depth for stage in stages)


def _are_elementwise(kernel: Kernel, stages: Sequence[Stage], reductions: Mapping[Stage, Reduction]) -> bool:
    """Whether stages write nothing but results: only these are known to be separate for two rows."""
    written = [store.buffer for stage in stages for store in stage.stores]
    return not any(stage in reductions for stage in stages) and all(
        buffer in kernel.results or buffer in kernel.unread for buffer in written
    )


def _shared_operands(kernel: Kernel, stage: Stage, along: AxisGroup) -> int:
    """How many vectors an iteration loads that are the same for all rows."""
    accesses = [kernel.access(stage, load) for load in stage.loads if load in stage.needed]
    return sum(access.strides[-1].constant_value == 1 and not access.strides[along.last].terms for access in accesses)


@dataclass(frozen=True)
class Passes:
    """The passes over a row, in order."""

    before: Sequence[Sequence[Stage]]
    first: Sequence[Stage]
    middle: Sequence[Sequence[Stage]]
    last: Sequence[Stage]


@dataclass(frozen=True)
class RowPipeline:
    """The rows along a group of axes, each of which is finished while the next one is begun."""

    kernel: Kernel
    row: Row
    along: AxisGroup
    passes: Passes
    emit_pass: Pass

    def emit(self, at: At, low: SSAValue | None, high: SSAValue) -> None:
        """The rows from `low` to before `high`, for given values of the axes around."""
        code, axis, passes = self.kernel.code, self.along.last, self.passes
        first = code.index(0) if low is None else low
        with code.loop(high, "row", lower=low) as index:
            here, following = {**at, axis: index}, {**at, axis: code.add(index, 1)}
            with code.when(code.compare("eq", index, first)):
                self._emit((*passes.before, passes.first), here)
            self._emit(passes.middle, here)
            with code.when(code.compare("slt", following[axis], high)) as is_followed:
                self._emit(passes.before, following)
                fused = (*passes.first, *passes.last)
                self.emit_pass(fused, self.row.depth, following, dict.fromkeys(passes.last, here))
            with code.otherwise(is_followed):
                self._emit([passes.last], here)

    def _emit(self, passes: Sequence[Sequence[Stage]], at: At) -> None:
        for stages in passes:
            self.emit_pass(stages, self.row.depth, at, {})


def find_passes(kernel: Kernel, row: Row, reductions: Mapping[Stage, Reduction]) -> Passes | None:
    """The passes, if the last one stores results and the first one reduces the row; `None` otherwise."""
    last, depth = row.passes[-1], row.depth
    number = next(n for n, stages in enumerate(row.passes) if stages[0].extents == last[0].extents)
    found = Passes(row.passes[:number], row.passes[number], row.passes[number + 1 : -1], last)
    if found.first is last or len(last[0].axes) == depth or any(stage in reductions for stage in last):
        return None
    early = [stage for stages in (*found.before, found.first) for stage in stages]
    if not all(_is_of_rows(stage, reductions, depth) for stage in early):
        return None
    written = {store.buffer for stages in found.before for stage in stages for store in stage.stores}
    stages = [stage for stages in row.passes for stage in stages]
    needed = any(load.buffer in written for stage in last for load in stage.loads)
    much = any(computes_much(kernel, stage, depth) for stage in stages)
    return None if needed or much or not masks_are_cheap(kernel, stages) else found


def _is_of_rows(stage: Stage, reductions: Mapping[Stage, Reduction], depth: int) -> bool:
    """Whether a stage computes one value per row, by a reduction that lanes can do."""
    reduction = reductions.get(stage)
    if reduction is None:
        return len(stage.axes) == depth
    return bool(reduction.combine) and len(stage.of_kind(IteratorKind.SPATIAL)) == depth


@dataclass
class RowKernel:
    """Generates stages that share rows."""

    kernel: Kernel
    func: PrimFuncOp
    program: Program
    stages: Sequence[Stage]
    reductions: Mapping[Stage, Reduction]
    columns: dict[Stage, ColumnReduction] = field(default_factory=dict[Stage, ColumnReduction], init=False)
    short: dict[Stage, ColumnReduction] = field(default_factory=dict[Stage, ColumnReduction], init=False)
    """Pooling of short rows, with the stage of the next pass fused."""
    ahead: Mapping[Stage, Sequence[PrefetchedAccess]] = field(
        default_factory=dict[Stage, Sequence[PrefetchedAccess]], init=False
    )

    def emit(self, row: Row) -> None:
        """Chooses between blocks of short rows and rows one by one, and partitions the rows among threads."""
        kernel = self.kernel
        self._locate_rows(row)
        groups = collapse_axes(kernel, self.stages, range(row.depth))
        most = max(len(stage.axes) for stage in self.stages)
        work = maximum(*(work_of(stage) for stage in self.stages if len(stage.axes) == most))
        with kernel.partition(groups[0].extent, work) as chunk:
            blocks = find_row_blocks(kernel, row, groups[-1], self.reductions)
            suits = False if blocks is None else blocks.suits()
            if blocks is not None and suits is not False:
                with ExitStack() as scope:
                    branch = scope.enter_context(kernel.code.when(suits)) if isinstance(suits, SSAValue) else None
                    self._allocate_rows(row, blocks.size)
                    self._row_loops(row, groups, {}, chunk, blocks)
                if branch is not None:
                    with kernel.code.otherwise(branch):
                        self._rows_alone(row, groups, chunk)
                return
            self._rows_alone(row, groups, chunk)

    def _rows_alone(self, row: Row, groups: Sequence[AxisGroup], chunk: tuple[SSAValue, SSAValue] | None) -> None:
        """Rows in pairs, pipelined, or one after the other."""
        row = self._with_one_pass_moments(row)
        passes = find_passes(self.kernel, row, self.reductions)
        by_pairs = passes is not None and are_pairs_profitable(self.kernel, row, groups[-1], self.reductions)
        if isinstance(by_pairs, SSAValue):
            with self.kernel.code.when(by_pairs) as branch:
                self._row_loops(row, groups, {}, chunk, self._pairs(row, groups[-1]))
            with self.kernel.code.otherwise(branch):
                self._rows_one_by_one(row, groups, chunk, passes)
        elif by_pairs:
            self._row_loops(row, groups, {}, chunk, self._pairs(row, groups[-1]))
        else:
            self._rows_one_by_one(row, groups, chunk, passes)

    def _rows_one_by_one(
        self, row: Row, groups: Sequence[AxisGroup], chunk: tuple[SSAValue, SSAValue] | None, passes: Passes | None
    ) -> None:
        """Rows pipelined, if there are passes for that, or one after the other."""
        for first, *_ in row.passes:
            reduction = self.reductions.get(first)
            if reduction is not None and len(first.of_kind(IteratorKind.SPATIAL)) > row.depth:
                self.columns[first] = ColumnReduction(self.kernel, first, reduction, row.depth)
        row = self._with_elementwise_of_windows(row)
        self._allocate_rows(row, 1)
        for columns in (*self.columns.values(), *self.short.values()):
            columns.prepare()
        self.ahead = {} if passes else find_prefetched_accesses(self.kernel, row.passes, row.depth)
        pipeline = None if passes is None else RowPipeline(self.kernel, row, groups[-1], passes, self._row_part)
        self._row_loops(row, groups, {}, chunk, pipeline)

    def _pairs(self, row: Row, along: AxisGroup) -> RowPairs:
        self._allocate_rows(row, ROW_PASS_ROWS)
        clones = clone_stages(row)
        clone_reductions = {clones[stage]: each for stage, each in self.reductions.items() if stage in clones}
        self.reductions = {**self.reductions, **clone_reductions}
        return RowPairs(self.kernel, row, along, clones, self._row_part)

    def _locate_rows(self, row: Row) -> None:
        self.kernel.unread = row.unread
        for buffer in row.buffers:
            self.kernel.rows[buffer] = buffer, row.depth  # so that addresses are known before memory is allocated

    def _with_one_pass_moments(self, row: Row) -> Row:
        """The row with one pass for mean and variance instead of two. Blocks of short rows gain nothing from it."""
        known = frozenset(self.program.header)
        if not rewrite_to_one_pass(self.stages):
            return row
        self.program, self.stages = rewritten(self.func)
        self.reductions = {stage: found for stage in self.stages if (found := reduction_of(stage)) is not None}
        self.kernel.clone_ops(op for op in self.program.header if op not in known)
        self.kernel.divisors = values_of_reductions(self.stages, self.reductions, self.program)
        own = [alloc.buffer for alloc in self.program.buffers]
        joined = find_row(self.kernel, self.stages, self.reductions, own)
        assert joined is not None  # there is one still
        self._locate_rows(joined)
        return joined

    def _allocate_rows(self, row: Row, count: int) -> None:
        for buffer in row.buffers:
            if buffer not in row.unread:
                self.kernel.allocate_row(buffer, row.depth, count)

    def _with_elementwise_of_windows(self, row: Row) -> Row:
        """The row without the elementwise stages that are fused into pooling."""
        for stage, columns in self.columns.items():
            last = (
                fusible_elementwise(self.kernel, row, stage, self.reductions) if columns.can_fuse_elementwise else None
            )
            if last is None:
                continue
            short = columns.fuse_elementwise(last)
            if short is not None:
                self.short[stage] = short
                continue
            passes = tuple(fused for fused in row.passes if fused != (last,))
            row = replace(row, passes=passes, unread=row.unread | {self.reductions[stage].stores[0].buffer})
        self.kernel.unread = row.unread
        return row

    def _row_loops(
        self,
        row: Row,
        groups: Sequence[AxisGroup],
        at: Mapping[int, SSAValue],
        chunk: tuple[SSAValue, SSAValue] | None,
        order: RowOrder | None,
    ) -> None:
        if not groups:
            # All passes over a row.
            passes = iter(row.passes)
            for items in passes:
                short = self.short.get(items[0])
                if short is None:
                    self._row_part(items, row.depth, at)
                    continue
                with self.kernel.code.when(short.is_short) as is_short:
                    short.emit(at)
                with self.kernel.code.otherwise(is_short):
                    self._row_part(items, row.depth, at)
                    self._row_part(next(passes), row.depth, at)
            return
        low, high = (None, self.kernel.code.dim(groups[0].extent)) if chunk is None else chunk
        if order is not None and len(groups) == 1:
            order.emit(at, low, high)
            return
        with self.kernel.code.loop(high, "row", lower=low) as index:
            self._row_loops(row, groups[1:], {**at, groups[0].last: index}, None, order)

    def _row_part(
        self,
        stages: Sequence[Stage],
        depth: int,
        at: Mapping[int, SSAValue],
        other_rows: Mapping[Stage, Mapping[int, SSAValue]] | None = None,
    ) -> None:
        first = stages[0]
        if first in self.columns:
            self.columns[first].emit(at)
            return
        found = {i: self.reductions[stage] for i, stage in enumerate(stages) if stage in self.reductions}
        ahead = self.ahead.get(first, ())
        axes = range(depth, len(first.axes))
        accumulators = LoopNest(self.kernel, stages, axes, found, ahead, other_rows=other_rows or {}).emit(at)
        if accumulators is not None:
            accumulators.write(accumulators.finish())


def values_of_reductions(
    stages: Sequence[Stage], reductions: Mapping[Stage, Reduction], program: Program
) -> frozenset[SSAValue]:
    """The values that are computed from nothing but results of reductions of this function, and constants."""
    from_reductions = {store.buffer for reduction in reductions.values() for store in reduction.stores}
    own = {alloc.buffer for alloc in program.buffers}
    found: set[SSAValue] = set()
    for stage in stages:
        for op in stage.body:
            if isinstance(op, LoadOp):
                if op.buffer in from_reductions and op.buffer in own:
                    found.add(op.result)
            elif isinstance(op, StoreOp):
                if op.value in found:
                    from_reductions.add(op.buffer)
            elif op.operands and any(operand in found for operand in op.operands) and not op.regions:
                found.update(op.results)
    return frozenset(found)


def fusible_elementwise(kernel: Kernel, row: Row, stage: Stage, reductions: Mapping[Stage, Reduction]) -> Stage | None:
    """The elementwise stage after pooling that can be fused with it: it alone reads the results, each at its
    own index.
    """
    following = next((after for fused, after in pairwise(row.passes) if fused == (stage,)), ())
    if len(following) != 1 or following[0] in reductions:
        return None
    (last,), (store,) = following, reductions[stage].stores
    stages = [each for fused in row.passes for each in fused]
    users = [each for each in stages if any(op.buffer is store.buffer for op in each.accesses)]
    if users != [stage, last] or store.buffer not in row.buffers:
        return None
    same_elements = _is_at_its_axes(stage, store.buffer) and _is_at_its_axes(last, store.buffer)
    return last if same_elements and _has_same_loops(kernel, stage, last, row.depth) else None


def _is_at_its_axes(stage: Stage, buffer: object) -> bool:
    """Whether a stage always accesses the element of a buffer at its own axes."""
    found = [op for op in stage.accesses if op.buffer is buffer]
    indices = [(number, index) for op in found for number, index in enumerate(stage.accesses[op])]
    always = {*stage.body, *stage.init}
    return all(op in always for op in found) and all(index.is_axis(number) for number, index in indices)


def _has_same_loops(kernel: Kernel, stage: Stage, last: Stage, depth: int) -> bool:
    """Whether the loops of the stage collapse in the same way as those of the pooling."""
    axes = range(len(last.axes))
    if [*stage.of_kind(IteratorKind.SPATIAL)] != [*axes] or last.extents != stage.extents[: len(axes)]:
        return False
    inner = axes[depth:]
    alone, both = (collapse_axes(kernel, stages, inner) for stages in ([stage], [stage, last]))
    return [group.axes for group in alone] == [group.axes for group in both]

"""Unroll-and-jam of two rows, and software pipelining of rows.

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
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.kernel import Kernel, RowBlock
from lowering.kernels.cpu.emit.prefetching import computes_much
from lowering.kernels.cpu.emit.vectorization import AxisGroup, masks_are_cheap, masks_are_registers
from lowering.kernels.cpu.row.chain import At, Pass, Row
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.dims import product
from tir_dialect.dtypes import byte_size
from tir_dialect.types import IteratorKind

ROWS = 2

LEAST_BYTES = 4
"""Bytes of an element of the next row, which a fused pass reads in addition."""


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
        with code.loop(code.divide(code.add(count, ROWS - 1), ROWS), "pair") as pair:
            start = code.mul(pair, ROWS)
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
    length, limit = product(last[0].extents[row.depth :]), kernel.target.l1_bytes // (touched + LEAST_BYTES)
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

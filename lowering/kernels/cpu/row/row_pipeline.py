"""Software pipelining of rows: the last pass over a row is fused with the first one over the next row.

The one waits for its stores, the other for its loads; the arithmetic of both fills the time. What precedes the first
pass, such as a sum of a few elements, is done for the next row before this one's last pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.groups import Group
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.prefetching import computes_much
from lowering.kernels.cpu.emit.widths import masks_are_cheap
from lowering.kernels.cpu.row.row_order import At, Pass
from lowering.kernels.cpu.structure.chains import Row
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.types import IteratorKind


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
    along: Group
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
    """Passes of which the last stores results, and the first makes sums of the row; `None` if others do."""
    last, depth = row.sweeps[-1], row.depth
    number = next(n for n, stages in enumerate(row.sweeps) if stages[0].extents == last[0].extents)
    found = Passes(row.sweeps[:number], row.sweeps[number], row.sweeps[number + 1 : -1], last)
    if found.first is last or len(last[0].axes) == depth or any(stage in reductions for stage in last):
        return None
    early = [stage for stages in (*found.before, found.first) for stage in stages]
    if not all(_is_of_rows(stage, reductions, depth) for stage in early):
        return None
    written = {store.buffer for stages in found.before for stage in stages for store in stage.stores}
    stages = [stage for stages in row.sweeps for stage in stages]
    needed = any(load.buffer in written for stage in last for load in stage.loads)
    much = any(computes_much(kernel, stage, depth) for stage in stages)
    return None if needed or much or not masks_are_cheap(kernel, stages) else found


def _is_of_rows(stage: Stage, reductions: Mapping[Stage, Reduction], depth: int) -> bool:
    """Whether a stage makes numbers of a row, which lanes can do if it adds up."""
    reduction = reductions.get(stage)
    if reduction is None:
        return len(stage.axes) == depth
    return bool(reduction.combine) and len(stage.of_kind(IteratorKind.SPATIAL)) == depth

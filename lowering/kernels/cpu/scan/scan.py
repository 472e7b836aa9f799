"""Recognises scans (cumulative sums and products), and an elementwise stage that is computed from one.

```
element i = combine(element i - 1, x i) if i > 0 else x i
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cpu.emit.guards import find_guards
from lowering.kernels.cpu.structure.stages import Stage, are_equivalent
from tir_dialect.dims import constant
from tir_dialect.dtypes import is_dtype, lookup
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import IteratorKind

_NEUTRAL: dict[type[Operation], float] = {arith.AddfOp: -0.0, arith.MulfOp: 1.0, arith.AddiOp: 0, arith.MuliOp: 1}


def neutral(combine: Operation) -> FloatAttr | IntegerAttr | None:
    """The neutral element of an op, which preserves even the sign of a zero; `None` if it is not known."""
    number, kind = _NEUTRAL.get(type(combine)), combine.results[0].type if combine.results else None
    if number is None:
        return None
    if isinstance(kind, AnyFloat):
        return FloatAttr(number, kind)
    found = lookup(kind).type if kind is not None and is_dtype(kind) else None
    return IntegerAttr(int(number), found) if isinstance(found, IntegerType) else None


@dataclass(frozen=True)
class Scan:
    """A stage with a scanned axis."""

    stage: Stage
    axis: int
    branch: IfOp
    combine: Operation
    """The op that combines the previous result and the element, in the branch of all elements but the first."""
    previous: LoadOp
    element: SSAValue
    result: Stage | None = None
    """The elementwise stage that is the only reader of the scan."""

    @property
    def last(self) -> Stage:
        """The stage whose result is kept."""
        return self.result or self.stage

    @property
    def is_along_rows(self) -> bool:
        """Whether scans run along contiguous rows; otherwise adjacent elements belong to different scans."""
        return self.axis == len(self.stage.axes) - 1

    @property
    def element_ops(self) -> list[Operation]:
        """The ops that compute the element, in order, in whichever branch they are."""
        skipped = (self.previous, self.combine, self.branch)
        inner = [op for op in self.branch.then_body.block.ops if not isinstance(op, YieldOp)]
        outer = [op for op in self.stage.body if not isinstance(op, StoreOp)]
        return [op for op in (*outer, *inner) if op in self.stage.needed and op not in skipped]


def find_scan(stages: Sequence[Stage]) -> Scan | None:
    """The scan that stages are; `None` if they are anything else.

    Scans along rows are of floats, and reassociated. Adjacent columns are scanned as written.
    """
    scan = _scan_of(stages[0])
    if scan is None or len(stages) == 1:
        return scan
    return replace(scan, result=stages[1]) if len(stages) == 2 and _is_elementwise_of(scan.stage, stages[1]) else None


def _is_elementwise_of(stage: Stage, result: Stage) -> bool:
    """Whether an elementwise stage without branches reads the scan only at its own index."""
    (store,) = stage.stores
    plain = not result.init and not result.of_kind(IteratorKind.REDUCE, IteratorKind.SCAN)
    if not plain or not isinstance(store.buffer.owner, AllocBufferOp) or len(result.stores) != 1:
        return False
    reads = [load for load in result.loads if load.buffer is store.buffer]
    same = all(result.accesses[load] == stage.accesses[store] for load in reads) and result.extents == stage.extents
    written = result.stores[0].buffer
    alone = not any(load.buffer is written for load in (*stage.loads, *result.loads))
    return same and alone and written is not store.buffer and not any(op.regions for op in result.needed)


def _scan_of(stage: Stage) -> Scan | None:
    scanned, guards = stage.of_kind(IteratorKind.SCAN), find_guards(stage)
    if len(scanned) != 1 or stage.of_kind(IteratorKind.REDUCE) or len(stage.stores) != 1 or len(guards) != 1:
        return None
    (axis,), store, guard = scanned, stage.stores[0], guards[0]
    if stage.init or store.value not in guard.op.outputs or len(guard.bounds) != 1 or len(guard.op.outputs) != 1:
        return None
    bound, last = guard.bounds[0], guard.op.then_body.block.last_op
    first = [step for step in range(len(stage.axes)) if bound.moves_with(step)] == [axis] and bound.step(axis) == 1
    if not first or bound.base.constant_value != -1 or not isinstance(last, YieldOp):
        return None
    found = _combined(stage, axis, guard.op, last.values[0].owner)
    return found if found is None or found.is_along_rows or _has_lanes(found) else None


def _has_lanes(scan: Scan) -> bool:
    """Whether adjacent scans are contiguous."""
    number = len(scan.stage.axes) - 1
    return scan.stage.accesses[scan.stage.stores[0]][-1].is_axis(number)


def _combined(stage: Stage, axis: int, branch: IfOp, combine: object) -> Scan | None:
    if not isinstance(combine, Operation) or neutral(combine) is None:
        return None
    if axis == len(stage.axes) - 1 and not isinstance(combine.results[0].type, AnyFloat):
        return None
    previous = [each.owner for each in combine.operands if _is_before(stage, axis, each.owner)]
    elements = [each for each in combine.operands if not _is_before(stage, axis, each.owner)]
    loads = [load for load in stage.loads if load.buffer is stage.stores[0].buffer]
    if len(previous) != 1 or len(elements) != 1 or loads != previous or not isinstance(previous[0], LoadOp):
        return None
    first = branch.else_body.block.last_op
    if not isinstance(first, YieldOp) or not are_equivalent(stage, first.values[0], stage, elements[0]):
        return None
    return Scan(stage, axis, branch, combine, previous[0], elements[0])


def _is_before(stage: Stage, axis: int, op: object) -> bool:
    """Whether an op loads the element before the one that is stored."""
    store = stage.stores[0]
    if not isinstance(op, LoadOp) or op.buffer is not store.buffer or op not in stage.accesses:
        return False
    pairs = list(zip(stage.accesses[op], stage.accesses[store], strict=True))
    moving = [pair for pair in pairs if any(index.value is not None or index.strides[axis].terms for index in pair)]
    if len(moving) != 1 or any(a != b for a, b in pairs if (a, b) not in moving):
        return False
    ((a, b),) = moving
    return b.is_axis(axis) and a.value is None and a.strides == b.strides and a.base == b.base + constant(-1)

"""Recognises running sums and products, and the map that is made of them.

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
from lowering.kernels.cpu.structure.stages import Stage, are_twins
from tir_dialect.dims import constant
from tir_dialect.dtypes import is_dtype, lookup
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import IteratorKind

_NEUTRAL: dict[type[Operation], float] = {arith.AddfOp: -0.0, arith.MulfOp: 1.0, arith.AddiOp: 0, arith.MuliOp: 1}


def neutral(combine: Operation) -> FloatAttr | IntegerAttr | None:
    """The number that changes no other, not even the sign of a zero; `None` if it is not known."""
    number, kind = _NEUTRAL.get(type(combine)), combine.results[0].type if combine.results else None
    if number is None:
        return None
    if isinstance(kind, AnyFloat):
        return FloatAttr(number, kind)
    found = lookup(kind).type if kind is not None and is_dtype(kind) else None
    return IntegerAttr(int(number), found) if isinstance(found, IntegerType) else None


@dataclass(frozen=True)
class Scan:
    """A stage with an axis that is scanned."""

    stage: Stage
    axis: int
    branch: IfOp
    combine: Operation
    """In the branch of all elements but the first: what is before, and the element."""
    before: LoadOp
    element: SSAValue
    result: Stage | None = None
    """The map of the sums that is all that reads them."""

    @property
    def last(self) -> Stage:
        """The stage that writes what stays."""
        return self.result or self.stage

    @property
    def is_along_rows(self) -> bool:
        """Whether the elements of a scan are neighbours in memory; else those of scans side by side are."""
        return self.axis == len(self.stage.axes) - 1

    @property
    def element_ops(self) -> list[Operation]:
        """What computes the element, in order, in whichever branch it is."""
        skipped = (self.before, self.combine, self.branch)
        inner = [op for op in self.branch.then_body.block.ops if not isinstance(op, YieldOp)]
        outer = [op for op in self.stage.body if not isinstance(op, StoreOp)]
        return [op for op in (*outer, *inner) if op in self.stage.needed and op not in skipped]


def find_scan(stages: Sequence[Stage]) -> Scan | None:
    """The running sums or products that stages are; `None` if they are anything else.

    Those along rows of memory are of floats, and reassociated. Side by side they are as written.
    """
    scan = _scan_of(stages[0])
    if scan is None or len(stages) == 1:
        return scan
    return replace(scan, result=stages[1]) if len(stages) == 2 and _is_map_of(scan.stage, stages[1]) else None


def _is_map_of(stage: Stage, result: Stage) -> bool:
    """Whether a map without branches has, of what a stage writes to memory of the function, the element at its axes."""
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
    """Whether results of scans side by side are neighbours in memory."""
    number = len(scan.stage.axes) - 1
    return scan.stage.accesses[scan.stage.stores[0]][-1].is_axis(number)


def _combined(stage: Stage, axis: int, branch: IfOp, combine: object) -> Scan | None:
    if not isinstance(combine, Operation) or neutral(combine) is None:
        return None
    if axis == len(stage.axes) - 1 and not isinstance(combine.results[0].type, AnyFloat):
        return None
    before = [each.owner for each in combine.operands if _is_before(stage, axis, each.owner)]
    elements = [each for each in combine.operands if not _is_before(stage, axis, each.owner)]
    loads = [load for load in stage.loads if load.buffer is stage.stores[0].buffer]
    if len(before) != 1 or len(elements) != 1 or loads != before or not isinstance(before[0], LoadOp):
        return None
    first = branch.else_body.block.last_op
    if not isinstance(first, YieldOp) or not are_twins(stage, first.values[0], stage, elements[0]):
        return None
    return Scan(stage, axis, branch, combine, before[0], elements[0])


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

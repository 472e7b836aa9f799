"""Scans along rows: prefix sums of the lanes of a vector, to which the sum of all elements before is added.

```
element i = combine(element i - 1, x i) if i > 0 else x i
```

A vector of L lanes takes log2 L steps, each of which combines lanes with those 1, 2, 4, ... before them, so sums are
reassociated. Only the carry from one vector to the next is a dependence chain. With AVX-512 lanes before the first are
those of the vector before, so that after these steps each lane has L elements, and the result L before is the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, VectorType
from xdsl.ir import Operation, SSAValue

from lowering.schedule.cpu.emit.explicit import Explicit, Lanes
from lowering.schedule.cpu.emit.guards import find_guards
from lowering.schedule.cpu.emit.kernel import Kernel, work_of
from lowering.schedule.cpu.emit.transpose import shuffle
from lowering.schedule.cpu.emit.widths import masks_are_cheap, masks_are_registers
from lowering.schedule.cpu.structure.contraction import place_of
from lowering.schedule.cpu.structure.stages import Stage
from tir_dialect.dims import constant
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import BufferType, IteratorKind

_NEUTRAL: dict[type[Operation], float] = {arith.AddfOp: -0.0, arith.MulfOp: 1.0}


@dataclass(frozen=True)
class Scan:
    """A stage whose last axis is scanned."""

    stage: Stage
    branch: IfOp
    combine: Operation
    """In the branch of all elements but the first: what is before, and the element."""
    before: LoadOp
    element: SSAValue
    dtype: AnyFloat
    result: Stage | None = None
    """The map of the sums that is all that reads them."""

    @property
    def last(self) -> Stage:
        """The stage that writes what stays."""
        return self.result or self.stage


def find_scan(stages: Sequence[Stage]) -> Scan | None:
    """The running sums or products that stages are, along rows of memory; `None` if they are anything else."""
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
    same = all(result.places[load] == stage.places[store] for load in reads) and result.extents == stage.extents
    written = result.stores[0].buffer
    alone = not any(load.buffer is written for load in (*stage.loads, *result.loads))
    return same and alone and written is not store.buffer and not any(op.regions for op in result.needed)


def _scan_of(stage: Stage) -> Scan | None:
    axis, guards = len(stage.axes) - 1, find_guards(stage)
    if stage.of_kind(IteratorKind.SCAN) != (axis,) or stage.init or len(stage.stores) != 1 or len(guards) != 1:
        return None
    store, guard = stage.stores[0], guards[0]
    if store.value not in guard.op.outputs or len(guard.bounds) != 1 or len(guard.op.outputs) != 1:
        return None
    bound, last = guard.bounds[0], guard.op.then_body.block.last_op
    first = [step for step in range(len(stage.axes)) if bound.moves_with(step)] == [axis] and bound.step(axis) == 1
    if not first or bound.base.constant_value != -1 or not isinstance(last, YieldOp):
        return None
    return _combined(stage, guard.op, last.values[0].owner)


def _combined(stage: Stage, branch: IfOp, combine: object) -> Scan | None:
    if not isinstance(combine, arith.AddfOp | arith.MulfOp) or not isinstance(combine.result.type, AnyFloat):
        return None
    before = [each.owner for each in combine.operands if _is_before(stage, each.owner)]
    elements = [each for each in combine.operands if not _is_before(stage, each.owner)]
    loads = [load for load in stage.loads if load.buffer is stage.stores[0].buffer]
    if len(before) != 1 or len(elements) != 1 or loads != before or not isinstance(before[0], LoadOp):
        return None
    first = branch.else_body.block.last_op
    if not isinstance(first, YieldOp) or not _is_same(stage, first.values[0], elements[0]):
        return None
    return Scan(stage, branch, combine, before[0], elements[0], combine.result.type)


def _is_same(stage: Stage, a: SSAValue, b: SSAValue) -> bool:
    """Whether two values are computed in the same way from the same places."""
    left, right = a.owner, b.owner
    if a is b:
        return True
    if not isinstance(left, Operation) or type(left) is not type(right) or not isinstance(right, Operation):
        return False
    if isinstance(left, LoadOp) and isinstance(right, LoadOp):
        places = stage.places
        return left.buffer is right.buffer and left in places and places[left] == places.get(right)
    pairs = zip(left.operands, right.operands, strict=False)
    same = left.properties == right.properties and len(left.operands) == len(right.operands) and not left.regions
    return same and all(_is_same(stage, *pair) for pair in pairs)


def _is_before(stage: Stage, op: object) -> bool:
    """Whether an op loads the element before the one that is stored."""
    store, axis = stage.stores[0], len(stage.axes) - 1
    if not isinstance(op, LoadOp) or op.buffer is not store.buffer or op not in stage.places:
        return False
    pairs = list(zip(stage.places[op], stage.places[store], strict=True))
    same = all(a == b for a, b in pairs[:-1])
    a, b = pairs[-1]
    return same and b.is_axis(axis) and a.value is None and a.strides == b.strides and a.base == b.base + constant(-1)


def emit_scan(kernel: Kernel, scan: Scan) -> None:
    """The loops over rows, shared among threads, and each row."""
    stage = scan.stage
    rows = range(len(stage.axes) - 1)
    if not rows:
        _Row(kernel, scan, {}).emit()
        return
    with kernel.shared(stage.axes[0].extent, work_of(stage)) as part:
        _loops(kernel, scan, list(rows), {}, part)


def _loops(
    kernel: Kernel,
    scan: Scan,
    axes: Sequence[int],
    at: Mapping[int, SSAValue],
    part: tuple[SSAValue, SSAValue] | None,
) -> None:
    low, high = (None, kernel.code.dim(scan.stage.axes[axes[0]].extent)) if part is None else part
    with kernel.code.loop(high, "row", lower=low) as index:
        inner = {**at, axes[0]: index}
        if len(axes) == 1:
            _Row(kernel, scan, inner, kernel.code.sub(high, index)).emit()
        else:
            _loops(kernel, scan, axes[1:], inner, None)


class _Row:
    """The code of one row."""

    def __init__(self, kernel: Kernel, scan: Scan, at: Mapping[int, SSAValue], rows: SSAValue | None = None):
        """`rows` is how many are left for the loop around, with this one."""
        self.kernel, self.code, self.scan, self.at, self.rows = kernel, kernel.code, scan, at, rows
        self.axis = len(scan.stage.axes) - 1
        self.lanes = kernel.target.lanes(8 * byte_size(scan.dtype))

    @cached_property
    def neutral(self) -> SSAValue:
        """A vector of numbers that change nothing."""
        kind = VectorType(self.scan.dtype, [self.lanes])
        number = _NEUTRAL[type(self.scan.combine)]
        return self.code.value(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, [number])))

    def emit(self) -> None:
        """Whole vectors; what is left under a mask, or one by one."""
        code, lanes = self.code, self.lanes
        kept = [self._neutral_vector() for _ in range(1 + (len(self._distances) if self.slides else 0))]
        length = code.dim(self.scan.stage.axes[self.axis].extent)
        count = code.divide(length, lanes)
        with code.loop(count, "v") as turn:
            body, element = self._elements(code.mul(turn, lanes), Lanes(self.axis, lanes))
            self._store(body, self._vector(element, kept))
        self._rest(kept, code.mul(count, lanes), length)

    def _neutral_vector(self) -> SSAValue:
        kind = BufferType([self.lanes], self.scan.dtype, scope="local", align=64)
        memory = self.code.value(AllocBufferOp(kind), "carry")
        self.code.store(self.neutral, memory, [self.code.index(0)])
        return memory

    def _vector(self, element: SSAValue, kept: Sequence[SSAValue]) -> SSAValue:
        """The results of a vector, given what is kept of the one before, which is replaced."""
        code, lanes, zero = self.code, self.lanes, self.code.index(0)
        *parts, carry = kept
        if not self.slides:
            (sums, total), before = self._within(element), code.load(carry, [zero], lanes)
            code.store(self._combined(before, total), carry, [zero])
            return self._combined(before, sums)
        for distance, part in zip(self._distances, parts, strict=True):
            earlier = self._shuffled(
                code.load(part, [zero], lanes), element, [lanes - distance + n for n in range(lanes)]
            )
            code.store(element, part, [zero])
            element = self._combined(earlier, element)
        result = self._combined(code.load(carry, [zero], lanes), element)
        code.store(result, carry, [zero])
        return result

    @property
    def slides(self) -> bool:
        """Whether lanes are combined with those before them across vectors, until each has a vector's length of them:
        what all lanes of a vector give is never asked for, which saves three of twelve instructions.
        """
        return masks_are_registers(self.kernel)

    @property
    def _distances(self) -> list[int]:
        """1, 2, 4, ... of the lanes."""
        return [1 << step for step in range(self.lanes.bit_length() - 1)]

    def _rest(self, kept: Sequence[SSAValue], done: SSAValue, length: SSAValue) -> None:
        code, lanes, zero = self.code, self.lanes, self.code.index(0)
        if masks_are_cheap(self.kernel, [self.scan.stage, self.scan.last]):
            left = code.sub(length, done)
            with code.when(code.compare("sgt", left, 0)):
                body, element = self._elements(done, Lanes(self.axis, lanes, left))
                self._store_first(body, self._vector(element, kept), left, length)
            return
        carry = kept[-1]
        with code.loop(length, "e", lower=done, vectorize=False) as place:
            body, element = self._elements(place, None)
            total = self._combined(code.load(carry, [zero]), element)
            code.store(total, carry, [zero])
            self._store(body, total)

    def _store_first(self, body: Explicit, value: SSAValue, left: SSAValue, length: SSAValue) -> None:
        """What is left of a row; the first elements of the next rows get anything, until their turn comes."""
        code, rows = self.code, self.rows
        if rows is None or masks_are_registers(self.kernel) or not self._is_contiguous():
            self._store(body, value)
            return
        room = code.add(left, code.mul(code.sub(rows, 1), length))
        with code.when(code.compare("sge", room, self.lanes)) as branch:
            self._store(body, value, Lanes(self.axis, self.lanes))
        with code.otherwise(branch):
            self._store(body, value)

    def _is_contiguous(self) -> bool:
        """Whether each row of the result begins where the one before ends."""
        stage = self.scan.last
        place = place_of(stage, stage.stores[0])
        return place.strides[self.axis - 1] is stage.axes[self.axis].extent and not place.computed

    def _elements(self, start: SSAValue, lanes: Lanes | None) -> tuple[Explicit, SSAValue]:
        """What is added up, for a vector or one element."""
        scan = self.scan
        body = Explicit(self.kernel, scan.stage, {**self.at, self.axis: start}, lanes)
        skipped = (scan.before, scan.combine, scan.branch)
        inner = [op for op in scan.branch.then_body.block.ops if not isinstance(op, YieldOp)]
        outer = [op for op in scan.stage.body if not isinstance(op, StoreOp)]
        body.run([op for op in (*outer, *inner) if op in scan.stage.needed and op not in skipped])
        return body, body.widened(body.value(scan.element))

    def _within(self, sums: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Each lane combined with all lanes before it, and what all of them give, in each lane."""
        lanes, part = self.lanes, self._lanes_of_a_part
        step = 1
        while step < part:
            order = [lane if lane % part < step else lanes + lane - step for lane in range(lanes)]
            sums = self._combined(self._shuffled(self.neutral, sums, order), sums)
            step *= 2
        ends = self._shuffled(sums, sums, [lane // part * part + part - 1 for lane in range(lanes)])
        if part == lanes:
            return sums, ends
        order = [lane if lane < part else lanes + lane - part for lane in range(lanes)]
        before = self._shuffled(self.neutral, ends, order)
        others = self._shuffled(ends, ends, [(lane + part) % lanes for lane in range(lanes)])
        return self._combined(before, sums), self._combined(ends, others)

    @property
    def _lanes_of_a_part(self) -> int:
        """How many lanes steps stay in: those of half a register where it takes long to leave it (AVX2), else all."""
        halves = self.kernel.target.arch.startswith("x86") and not masks_are_registers(self.kernel)
        return min(self.lanes, 128 // (8 * byte_size(self.scan.dtype))) if halves else self.lanes

    def _shuffled(self, left: SSAValue, right: SSAValue, order: Sequence[int]) -> SSAValue:
        return shuffle(self.code, (left, right), order)

    def _combined(self, before: SSAValue, element: SSAValue) -> SSAValue:
        op = self.scan.combine
        copy = type(op).create(operands=(before, element), result_types=[element.type], properties=dict(op.properties))
        return self.code.value(copy)

    def _store(self, body: Explicit, value: SSAValue, lanes: Lanes | None = None) -> None:
        """Writes sums, or what is made of them; with other lanes than those of the body if they are given."""
        stage, (store,) = self.scan.last, self.scan.stage.stores
        last = Explicit(self.kernel, stage, body.at, lanes or body.lanes)
        last.fills_lines = True
        if self.scan.result is None:
            last.values[store.value] = value
            last.run(stage.stores)
            return
        last.values |= {load.result: value for load in stage.loads if load.buffer is store.buffer}
        last.run(stage.body)

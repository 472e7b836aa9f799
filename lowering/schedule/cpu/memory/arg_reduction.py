"""Places of extremes along a row: lanes count turns in 32 bits, and places are made of turns at the end.

A lane meets its elements in their order, so that it keeps its value unless a better one comes. Of the lanes that have
the best value of all, the first turn counts, and of its lanes the first. A lane begins with the worst value at its
first element. A row of up to a vector has but one, so that there is less to combine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import inf, nan

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, FloatAttr, IndexType, IntegerAttr, i32, i64
from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.body import Body
from lowering.schedule.cpu.emit.kernel import Kernel, buffer_type
from lowering.schedule.cpu.emit.vectors import vector_turn
from lowering.schedule.cpu.emit.widths import masks_are_cheap
from lowering.schedule.cpu.memory.accumulators import Accumulators, accumulator
from lowering.schedule.cpu.memory.extremes import extreme_of
from lowering.schedule.cpu.memory.reduction import Reduction
from lowering.schedule.cpu.structure.arithmetic import evaluated
from lowering.schedule.cpu.structure.stages import Stage
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import BufferType, IteratorKind, LoopKind

VECTORS_AT_ONCE = 4
_VALUES, _PLACES = (nan, inf, 1.0, 0.0, -1.0, -inf), (3, 5)


def direction(stage: Stage, reduction: Reduction) -> str | None:
    """How a better value compares with one, if the reduction finds the first place of the best f32 of a row."""
    reduced = stage.of_kind(IteratorKind.REDUCE)
    if len(reduction.sources) != 2 or len(reduced) != 1 or not isinstance(reduction.sources[0].type, Float32Type):
        return None
    place = reduction.sources[1].owner
    if not isinstance(place, arith.IndexCastOp) or place.input is not stage.axes[reduced[0]].value:
        return None
    found = next((found for found in ("ugt", "ult") if _finds(reduction, found)), None)
    return found if found is not None and _is_worst(reduction.first[0], found) else None


def _is_worst(first: SSAValue, better: str) -> bool:
    """Whether nothing is worse than a value, so that a lane without elements is never chosen before another."""
    value = first.owner.value if isinstance(first.owner, arith.ConstantOp) else None
    return isinstance(value, FloatAttr) and value.value.data == (-inf if better == "ugt" else inf)


def _finds(reduction: Reduction, better: str) -> bool:
    """Whether the reduction prefers what `better` says, NaN before all, and of equals the first: tried on all kinds."""
    for left, right in product(product(_VALUES, _PLACES), repeat=2):
        if left[1] == right[1]:
            continue
        known: dict[SSAValue, object] = dict(zip(reduction.sources, right, strict=True))
        known |= {load.result: value for load, value in zip(reduction.accumulators, left, strict=True)}
        if not evaluated(reduction.combine, known):
            return False
        got = tuple(known[store.value] for store in reduction.stores)
        if repr(got) != repr(_preferred(left, right, better)):
            return False
    return True


def _preferred(left: tuple[float, int], right: tuple[float, int], better: str) -> tuple[float, int]:
    sign = 1 if better == "ugt" else -1
    keys = [(each[0] == each[0], -sign * each[0] if each[0] == each[0] else 0.0, each[1]) for each in (left, right)]
    return left if keys[0] < keys[1] else right


class ArgReduction:
    """The code of one row."""

    def __init__(self, kernel: Kernel, stage: Stage, reduction: Reduction, better: str):
        self.kernel, self.code, self.stage, self.reduction, self.better = kernel, kernel.code, stage, reduction, better
        self.axis = stage.of_kind(IteratorKind.REDUCE)[0]
        self.lanes = kernel.target.lanes(32)
        self.step = self.lanes

    def emit(self, at: Mapping[int, SSAValue]) -> None:
        """The value and the place, where they belong; of an empty row the first ones stay."""
        code = self.code
        length = code.dim(self.stage.axes[self.axis].extent)
        with code.when(code.compare("sgt", length, self.lanes)) as is_long:
            self._row(at, length, self.lanes * VECTORS_AT_ONCE)
        with code.otherwise(is_long), code.when(code.compare("sgt", length, 0)) as is_short:
            self._row(at, length, self.lanes)
        with code.otherwise(is_long), code.otherwise(is_short):
            self._write(at, self._first(at))

    def _write(self, at: Mapping[int, SSAValue], results: Sequence[SSAValue]) -> None:
        Accumulators(self.kernel, [self.stage], {0: self.reduction}, 1, at).write({0: results})

    def _row(self, at: Mapping[int, SSAValue], length: SSAValue, width: int) -> None:
        """A row in turns of `width` lanes; there is but one, which is masked, if that is a single vector."""
        code, self.step = self.code, width
        body = Body(self.kernel, self.stage, at, self.axis)
        worst = self._first(at)[0]
        values = accumulator(self.kernel, self.reduction.accumulators[0].buffer_type, width)
        turns = self._integers(width)
        with code.loop(code.index(width), "lane", kind=LoopKind.VECTORIZED) as lane:
            code.store(worst, values, [lane])
            code.store(code.value(arith.ConstantOp(IntegerAttr(0, i32))), turns, [lane])
        body.hoist([op for op in self.stage.body if self._is_needed(op)], self._written)
        count = code.index(0) if width == self.lanes else code.divide(length, width)
        if width > self.lanes:
            with code.loop(count, "v") as turn:
                self._turn(body, turn, None, values, turns)
        left = code.sub(length, code.mul(count, width))
        with code.when(code.compare("sgt", left, 0)):
            self._turn(body, count, left, values, turns)
        here = body.at_index(self._place(values, turns))
        here.run([op for op in self.stage.body if self._is_needed(op)])
        # The value of the place, not the best one, which has the sign of another zero.
        self._write(at, [here.value(source) for source in self.reduction.sources])

    def _integers(self, width: int) -> SSAValue:
        return self.code.value(AllocBufferOp(BufferType([width], i32, scope="local", align=64)), "turns")

    @property
    def _written(self) -> frozenset[SSAValue]:
        return frozenset(store.buffer for store in self.stage.stores)

    def _is_needed(self, op: object) -> bool:
        """Whether an op is none of those that compare and choose, nor a store."""
        return not isinstance(op, StoreOp) and op not in self.reduction.combine and not self._is_accumulator(op)

    def _is_accumulator(self, op: object) -> bool:
        return isinstance(op, LoadOp) and op in self.reduction.accumulators

    def _first(self, at: Mapping[int, SSAValue]) -> list[SSAValue]:
        body = Body(self.kernel, self.stage, at)
        body.run([op for op in self.stage.init if not isinstance(op, StoreOp)])
        return [body.value(first) for first in self.reduction.first]

    def _turn(self, body: Body, turn: SSAValue, left: SSAValue | None, values: SSAValue, turns: SSAValue) -> None:
        code = self.code
        start, number = code.mul(turn, self.step), code.value(arith.IndexCastOp(turn, i32))

        def step(lane: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
            here = body.at_index(code.add(start, lane))
            here.run([op for op in self.stage.body if self._is_needed(op)])
            value = here.value(self.reduction.sources[0])
            is_better = code.value(arith.CmpfOp(value, old[0], self.better))
            is_number = code.value(arith.CmpfOp(old[0], old[0], "ord"))
            takes = code.value(arith.AndIOp(is_better, is_number))
            return [code.select(takes, value, old[0]), code.select(takes, number, old[1])]

        vector_turn(self.kernel, code.index(0), self.step, left, [values, turns], step)

    def _place(self, values: SSAValue, turns: SSAValue) -> SSAValue:
        """The first place of the best value of all lanes."""
        code = self.code
        best = self._folded(values, arith.MaximumfOp if self.better == "ugt" else arith.MinimumfOp)
        if self.step == self.lanes:  # There is but one turn.
            return self._first_lane(lambda lane: self._is_best(code.load(values, [lane]), best))
        none = code.value(arith.ConstantOp(IntegerAttr(-1, i32)))
        with code.loop(code.index(self.step), "lane", kind=LoopKind.VECTORIZED) as lane:
            is_best = self._is_best(code.load(values, [lane]), best)
            code.store(code.select(is_best, code.load(turns, [lane]), none), turns, [lane])
        first = self._folded(turns, arith.MinUIOp)
        lane = self._first_lane(lambda lane: code.compare("eq", code.load(turns, [lane]), first))
        return code.add(code.mul(self._as_index(first), self.step), lane)

    def _is_best(self, value: SSAValue, best: SSAValue) -> SSAValue:
        is_best, is_nan = (arith.CmpfOp(value, *test) for test in ((best, "oeq"), (value, "uno")))
        return self.code.either(self.code.value(is_best), self.code.value(is_nan))

    def _first_lane(self, holds: Callable[[SSAValue], SSAValue]) -> SSAValue:
        """The number of the first lane for which something holds, as there is one."""
        code, lanes = self.code, self._integers(self.step)
        none = code.value(arith.ConstantOp(IntegerAttr(-1, i32)))
        with code.loop(code.index(self.step), "lane", kind=LoopKind.VECTORIZED) as lane:
            number = code.value(arith.IndexCastOp(lane, i32))
            code.store(code.select(holds(lane), number, none), lanes, [lane])
        return self._as_index(self._folded(lanes, arith.MinUIOp))

    def _as_index(self, value: SSAValue) -> SSAValue:
        return self.code.value(arith.IndexCastOp(self.code.value(arith.ExtUIOp(value, i64)), IndexType()))

    def _folded(self, buffer: SSAValue, kind: type[arith.MaximumfOp | arith.MinimumfOp | arith.MinUIOp]) -> SSAValue:
        """One value of all lanes: halves are combined until one is left."""
        code, width = self.code, self.step
        if kind is not arith.MinUIOp and self.kernel.target.arch.startswith("x86"):
            return extreme_of(self.kernel, buffer, kind)
        while width > 1:
            width //= 2
            half = accumulator(self.kernel, buffer_type(buffer), width)
            with code.loop(code.index(width), "lane", kind=LoopKind.VECTORIZED) as lane:
                pair = code.load(buffer, [lane]), code.load(buffer, [code.add(lane, width)])
                code.store(code.value(kind(*pair)), half, [lane])
            buffer = half
        return code.load(buffer, [code.index(0)])


def suits_lanes(kernel: Kernel, stage: Stage) -> bool:
    """Whether the machine has vectors, and masks for the last of a row."""
    return kernel.target.lanes(32) >= 8 and masks_are_cheap(kernel, [stage])

"""Places of extremes along a row: lanes count turns in 32 bits, and places are made of turns at the end.

A lane meets its elements in their order, so that it keeps its value unless a better one comes; which of equal elements
is the first is asked when lanes are combined. A lane begins with the worst value at its first element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import inf, nan

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, IntegerAttr, i32, i64
from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.body import Body
from lowering.schedule.cpu.emit.kernel import Kernel
from lowering.schedule.cpu.emit.vectors import vector_turn
from lowering.schedule.cpu.emit.widths import masks_are_cheap
from lowering.schedule.cpu.memory.accumulators import Accumulators, accumulator
from lowering.schedule.cpu.memory.reduction import Reduction
from lowering.schedule.cpu.structure.arithmetic import evaluated
from lowering.schedule.cpu.structure.stages import Stage
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import BufferType, IteratorKind, LoopKind

VECTORS_AT_ONCE = 2
_VALUES, _PLACES = (nan, inf, 1.0, 0.0, -1.0, -inf), (3, 5)


def direction(stage: Stage, reduction: Reduction) -> str | None:
    """How a better value compares with one, if the reduction finds the first place of the best f32 of a row."""
    reduced = stage.of_kind(IteratorKind.REDUCE)
    if len(reduction.sources) != 2 or len(reduced) != 1 or not isinstance(reduction.sources[0].type, Float32Type):
        return None
    place = reduction.sources[1].owner
    if not isinstance(place, arith.IndexCastOp) or place.input is not stage.axes[reduced[0]].value:
        return None
    return next((found for found in ("ugt", "ult") if _finds(reduction, found)), None)


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
        self.step = self.lanes * VECTORS_AT_ONCE

    def emit(self, at: Mapping[int, SSAValue]) -> None:
        """The value and the place, where they belong."""
        code = self.code
        body = Body(self.kernel, self.stage, at, self.axis)
        first = self._first(at)
        values = accumulator(self.kernel, self.reduction.accumulators[0].buffer_type, self.step)
        turns = code.value(AllocBufferOp(BufferType([self.step], i32, scope="local", align=64)), "turns")
        with code.loop(code.index(self.step), "lane", kind=LoopKind.VECTORIZED) as lane:
            code.store(first[0], values, [lane])
            code.store(code.value(arith.ConstantOp(IntegerAttr(0, i32))), turns, [lane])
        body.hoist([op for op in self.stage.body if self._is_needed(op)], self._written)
        length = code.dim(self.stage.axes[self.axis].extent)
        count = code.divide(length, self.step)
        with code.loop(count, "v") as turn:
            self._turn(body, turn, None, values, turns)
        left = code.sub(length, code.mul(count, self.step))
        with code.when(code.compare("sgt", left, 0)):
            self._turn(body, count, left, values, turns)
        self._finish(at, values, turns, length, first)

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

    def _finish(
        self,
        at: Mapping[int, SSAValue],
        values: SSAValue,
        turns: SSAValue,
        length: SSAValue,
        first: Sequence[SSAValue],
    ) -> None:
        """Lanes are combined as the reduction says; of an empty row the first place stays."""
        code = self.code
        places = accumulator(self.kernel, self.reduction.accumulators[1].buffer_type, self.step)
        is_empty = code.compare("eq", length, 0)
        with code.loop(code.index(self.step), "lane", kind=LoopKind.VECTORIZED) as lane:
            turn = code.value(arith.ExtUIOp(code.load(turns, [lane]), i64))
            factor = code.value(arith.ConstantOp(IntegerAttr(self.step, i64)))
            scaled = code.value(arith.MuliOp(turn, factor))
            place = code.value(arith.AddiOp(scaled, code.value(arith.IndexCastOp(lane, i64))))
            code.store(code.select(is_empty, first[1], place), places, [lane])
        accumulators = Accumulators(self.kernel, [self.stage], {0: self.reduction}, self.step, at)
        accumulators.buffers[0] = [values, places]
        accumulators.write(accumulators.finish())


def suits_lanes(kernel: Kernel, stage: Stage) -> bool:
    """Whether the machine has vectors, and masks for the last of a row."""
    return kernel.target.lanes(32) >= 8 and masks_are_cheap(kernel, [stage])

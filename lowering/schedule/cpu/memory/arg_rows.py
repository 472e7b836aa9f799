"""The first place of the best f32 of a row.

Of some vectors, the best of each lane meets the best before; a lane counts in 32 bits at which turn that was. Of the
lanes that have the best value of all, the first turn counts, and its elements are looked at once more. A lane begins
with the worst value at its first turn. Comparisons pass over NaN, which is noticed for pairs of elements; of a row that
has some, the turns are gone through again for the first of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import nan

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, IntegerType, f32, i32, i64
from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.body import Body
from lowering.schedule.cpu.emit.kernel import Kernel, buffer_type
from lowering.schedule.cpu.memory.accumulators import Accumulators, accumulator
from lowering.schedule.cpu.memory.reduction import Reduction
from lowering.schedule.cpu.structure.stages import Stage
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.lanes import CompareOp, FirstLaneOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import IteratorKind, LoopKind

VECTORS_AT_ONCE = 4


class ArgReduction:
    """The code of one row; `better` says how a better value compares with one."""

    def __init__(self, kernel: Kernel, stage: Stage, reduction: Reduction, better: str):
        self.kernel, self.code, self.stage, self.reduction, self.better = kernel, kernel.code, stage, reduction, better
        self.axis = stage.of_kind(IteratorKind.REDUCE)[0]
        self.lanes = kernel.target.lanes(32)
        self.width = self.lanes * VECTORS_AT_ONCE
        self.ops = [op for op in stage.body if not isinstance(op, StoreOp) and op not in reduction.combine]
        self.ops = [op for op in self.ops if not (isinstance(op, LoadOp) and op in reduction.accumulators)]

    def emit(self, at: Mapping[int, SSAValue]) -> None:
        """The value and the place, where they belong; of an empty row the first ones stay."""
        code = self.code
        length, body = code.dim(self.stage.axes[self.axis].extent), Body(self.kernel, self.stage, at, self.axis)
        body.hoist(self.ops, frozenset(store.buffer for store in self.stage.stores))
        first = self._first(at)
        with code.when(code.compare("sgt", length, self.lanes)) as is_long:
            _LongRow(self, body, length, first[0]).emit()
        with code.otherwise(is_long), code.when(code.compare("sgt", length, 0)) as is_short:
            self._vector(body, length, first[0])
        with code.otherwise(is_long), code.otherwise(is_short):
            self._write(at, first)

    def _first(self, at: Mapping[int, SSAValue]) -> list[SSAValue]:
        body = Body(self.kernel, self.stage, at)
        body.run([op for op in self.stage.init if not isinstance(op, StoreOp)])
        return [body.value(first) for first in self.reduction.first]

    def _write(self, at: Mapping[int, SSAValue], results: Sequence[SSAValue]) -> None:
        Accumulators(self.kernel, [self.stage], {0: self.reduction}, 1, at).write({0: results})

    def write_place(self, body: Body, place: SSAValue) -> None:
        """The place, and the value that is there: zeros that are equal may differ in their signs."""
        here = body.at_index(place)
        here.run(self.ops)
        self._write(body.at, [here.value(source) for source in self.reduction.sources])

    def _vector(self, body: Body, length: SSAValue, worst: SSAValue) -> None:
        """A row that is not longer than a vector."""
        code = self.code
        buffer = self.values(body, code.index(0), length, worst, self.lanes)
        values = code.load(buffer, [code.index(0)], self.lanes)
        best = code.splat(self.folded(buffer, self.lanes, self.better_one), self.lanes)
        number, fault = (self.first_lane(values, *test) for test in (("oeq", best), ("uno", values)))
        self.write_place(body, code.select(code.compare("slt", fault, self.lanes), fault, number))

    # Parts of the code.

    def value_at(self, body: Body, index: SSAValue, is_there: SSAValue | None, worst: SSAValue) -> SSAValue:
        """An element, the worst value if it is not there."""
        branch = None if is_there is None else IfOp(is_there, result_types=[f32])
        if branch is None:
            return self._element(body, index)
        self.code.emit(branch)
        with self.code.inside(branch.then_body.block):
            self.code.emit(YieldOp(self._element(body, index)))
        with self.code.inside(branch.else_body.block):
            self.code.emit(YieldOp(worst))
        return branch.outputs[0]

    def _element(self, body: Body, index: SSAValue) -> SSAValue:
        here = body.at_index(index)
        here.run(self.ops)
        return here.value(self.reduction.sources[0])

    def values(self, body: Body, start: SSAValue, left: SSAValue, worst: SSAValue, count: int) -> SSAValue:
        """Memory with `count` elements, of which `left` are there."""
        code = self.code
        buffer = self.memory(count, f32, "values")
        with code.loop(code.index(count), "lane", kind=LoopKind.VECTORIZED) as lane:
            is_there = code.compare("slt", lane, left)
            code.store(self.value_at(body, code.add(start, lane), is_there, worst), buffer, [lane])
        return buffer

    def memory(self, count: int, dtype: AnyFloat | IntegerType, name: str) -> SSAValue:
        """Memory that LLVM keeps in registers."""
        return self.code.alloc([count], dtype, name, scope="local")

    def folded(self, buffer: SSAValue, width: int, combine: Callable[[SSAValue, SSAValue], SSAValue]) -> SSAValue:
        """One value of all lanes: halves are combined until one is left."""
        code, kind = self.code, buffer_type(buffer)
        while width > 1:
            width //= 2
            half = accumulator(self.kernel, kind, width)
            with code.loop(code.index(width), "lane", kind=LoopKind.VECTORIZED) as lane:
                pair = code.load(buffer, [lane]), code.load(buffer, [code.add(lane, width)])
                code.store(combine(*pair), half, [lane])
            buffer = half
        return code.load(buffer, [code.index(0)])

    def better_one(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """The better of two numbers."""
        return self.code.select(self.code.value(arith.CmpfOp(left, right, self.better)), left, right)

    def first_lane(self, values: SSAValue, test: str, other: SSAValue) -> SSAValue:
        """The number of the first lane of a vector for which a comparison holds."""
        return self.code.value(FirstLaneOp(self.code.value(CompareOp(test, values, other))))


class _LongRow:
    """The code of a row of more than a vector."""

    def __init__(self, reduction: ArgReduction, body: Body, length: SSAValue, worst: SSAValue):
        self.parts, self.code, self.body, self.length, self.worst = reduction, reduction.code, body, length, worst
        self.lanes, self.width = reduction.lanes, reduction.width
        self.best, self.faults = (reduction.memory(self.lanes, f32, name) for name in ("best", "faults"))
        self.turns = reduction.memory(self.lanes, i32, "turns")
        self.peak = reduction.memory(1, f32, "peak")
        self.none = self._integer(-1)

    def _integer(self, value: int) -> SSAValue:
        return self.code.value(arith.ConstantOp(IntegerAttr(value, i32)))

    def emit(self) -> None:
        """Finds the turn, then the element, and writes the place."""
        code, parts, zero = self.code, self.parts, self.code.index(0)
        with code.loop(code.index(self.lanes), "lane", kind=LoopKind.VECTORIZED) as lane:
            code.store(self.worst, self.best, [lane])
            code.store(code.number(0.0, f32), self.faults, [lane])
            code.store(self._integer(0), self.turns, [lane])
        self._all_turns(self._meet)
        code.store(parts.folded(self.best, self.lanes, parts.better_one), self.peak, [zero])
        peak = code.load(self.peak, [zero])
        with code.loop(code.index(self.lanes), "lane", kind=LoopKind.VECTORIZED) as lane:
            is_best = code.value(arith.CmpfOp(code.load(self.best, [lane]), peak, "oeq"))
            code.store(code.select(is_best, code.load(self.turns, [lane]), self.none), self.turns, [lane])
        faults = code.load(self.faults, [zero], self.lanes)
        with code.when(code.compare("slt", parts.first_lane(faults, "uno", faults), self.lanes)):
            self._look_for_nan()
        first = parts.folded(self.turns, self.lanes, lambda left, right: code.value(arith.MinUIOp(left, right)))
        first = code.value(arith.IndexCastOp(code.value(arith.ExtUIOp(first, i64)), IndexType()))
        start = code.mul(first, self.width)
        parts.write_place(self.body, code.add(start, self._lane_of(start)))

    def _all_turns(self, turn: Callable[[SSAValue, SSAValue | None], None]) -> None:
        code = self.code
        count = code.divide(self.length, self.width)
        with code.loop(count, "v") as number:
            turn(number, None)
        left = code.sub(self.length, code.mul(count, self.width))
        with code.when(code.compare("sgt", left, 0)):
            turn(count, left)

    def _elements(self, turn: SSAValue, left: SSAValue | None, lane: SSAValue) -> list[SSAValue]:
        """A lane's elements of a turn."""
        code, start = self.code, self.code.mul(turn, self.width)
        found: list[SSAValue] = []
        for number in range(VECTORS_AT_ONCE):
            place = code.add(lane, number * self.lanes)
            is_there = None if left is None else code.compare("slt", place, left)
            found.append(self.parts.value_at(self.body, code.add(start, place), is_there, self.worst))
        return found

    def _meet(self, turn: SSAValue, left: SSAValue | None) -> None:
        """A turn's best values against the best before."""
        code = self.code
        number = code.value(arith.IndexCastOp(turn, i32))
        with code.loop(code.index(self.lanes), "lane", kind=LoopKind.VECTORIZED) as lane:
            elements = self._elements(turn, left, lane)
            new, old = reduce(self.parts.better_one, elements), code.load(self.best, [lane])
            is_better = code.value(arith.CmpfOp(new, old, self.parts.better))
            code.store(code.select(is_better, new, old), self.best, [lane])
            code.store(code.select(is_better, number, code.load(self.turns, [lane])), self.turns, [lane])
            faults = code.load(self.faults, [lane])
            code.store(code.select(self._are_numbers(elements), faults, code.number(nan, f32)), self.faults, [lane])

    def _are_numbers(self, elements: Sequence[SSAValue]) -> SSAValue:
        code = self.code
        pairs = zip(elements[::2], elements[1::2], strict=True)
        tests = [code.value(arith.CmpfOp(*pair, "ord")) for pair in pairs]
        return reduce(lambda left, right: code.value(arith.AndIOp(left, right)), tests)

    def _look_for_nan(self) -> None:
        """The first turn of each lane that has a NaN."""
        code = self.code
        code.store(code.number(nan, f32), self.peak, [code.index(0)])
        with code.loop(code.index(self.lanes), "lane", kind=LoopKind.VECTORIZED) as lane:
            code.store(self.none, self.turns, [lane])

        def look(turn: SSAValue, left: SSAValue | None) -> None:
            number = code.value(arith.IndexCastOp(turn, i32))
            with code.loop(code.index(self.lanes), "lane", kind=LoopKind.VECTORIZED) as lane:
                are_numbers = self._are_numbers(self._elements(turn, left, lane))
                turns = code.load(self.turns, [lane])
                earlier = code.value(arith.MinUIOp(turns, number))
                code.store(code.select(are_numbers, turns, earlier), self.turns, [lane])

        self._all_turns(look)

    def _lane_of(self, start: SSAValue) -> SSAValue:
        """The first of a turn's elements that is the best, or NaN."""
        code, zero = self.code, self.code.index(0)
        left = code.sub(self.length, start)
        buffer = self.parts.values(self.body, start, left, self.worst, self.width)
        values = code.load(buffer, [zero], self.width)
        peak = code.splat(code.load(self.peak, [zero]), self.width)
        is_best, is_nan = CompareOp("oeq", values, peak), CompareOp("uno", values, values)
        return code.value(FirstLaneOp(code.either(code.value(is_best), code.value(is_nan))))

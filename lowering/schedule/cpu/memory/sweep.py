"""One run over some axes for several stages at once: elements are computed and stored, or gathered in accumulators.

The innermost loop goes along vectors; its last, incomplete vector is masked, or its elements are taken one by one where
the machine cannot mask. Long code is written once: there every vector is masked. Reductions keep several accumulators
of a vector each, so that additions need not wait for each other; these are combined at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from lowering.schedule.cpu.emit.ahead import Ahead, Asked
from lowering.schedule.cpu.emit.body import Body, number_like
from lowering.schedule.cpu.emit.groups import Group, group_axes, lane_group
from lowering.schedule.cpu.emit.kernel import Kernel, is_heavy
from lowering.schedule.cpu.emit.vectors import vector_turn
from lowering.schedule.cpu.emit.widths import lane_count, masks_are_cheap, registers_of_a_turn
from lowering.schedule.cpu.memory.accumulators import Accumulators
from lowering.schedule.cpu.memory.middles import Middle, find_middle
from lowering.schedule.cpu.memory.reduction import Reduction
from lowering.schedule.cpu.memory.shared_vectors import SharedVectors, find_shared_vectors
from lowering.schedule.cpu.structure.places import Place
from lowering.schedule.cpu.structure.stages import Stage
from tir_dialect.ops.memory import StoreOp

LEAST_DIVISOR, GREATEST_DIVISOR = 2.0**-126, 2.0**126
"""Between these the reciprocal of an f32, and the product with it, loses at most the last bit."""

LONG = 64
"""More ops for an element take so long that a mask costs nothing beside them, but twice as long to compile if they are
written twice."""


@dataclass
class Sweep:
    """Stages that run over the same axes, each of which is a map or reduces along all of them."""

    kernel: Kernel
    stages: Sequence[Stage]
    axes: Sequence[int]
    reductions: Mapping[int, Reduction] = field(default_factory=dict[int, Reduction])
    """By the number of the stage."""
    ahead: Sequence[Ahead] = ()
    """What is asked for on the way."""
    unrolls: bool = True
    """Whether a row has several vectors of sums, as one by itself needs in order not to wait for them."""
    given: Callable[[Body], None] | None = None
    """Tells a stage at a row what is known of the row."""

    def __post_init__(self) -> None:
        self._asked: list[Asked] = []
        self.code = self.kernel.code
        self.groups = group_axes(self.kernel, self.stages, self.axes)
        self.lane = lane_group(self.kernel, self.stages, self.groups) if self.groups else None
        splits = all(reduction.combine for reduction in self.reductions.values())
        self.middle: Middle | None = None
        if self.lane is not None and not self.reductions:
            self.middle = find_middle(self.kernel, self.stages, self.lane.last)
        left_out = frozenset[Operation]() if self.middle is None else self.middle.left_out(self.kernel)
        self.shared = self._shared()
        lanes = lane_count(self.kernel, self.stages, self.lane, left_out) if self.lane is not None and splits else 1
        self.lanes = self.shared.lanes if self.shared is not None else lanes if lanes > 1 else 1
        self.registers = 1
        if self.lane is not None and not self.reductions and self.shared is None and self.middle is None:
            self.registers = registers_of_a_turn(
                self.kernel, self.stages, self.lane, self.lanes, has_rows=len(self.groups) > 1 or min(self.axes) > 0
            )
            self.lanes *= self.registers
        light = not any(is_heavy(op) for stage in self.stages for op in stage.needed)
        self.unroll = 4 if self.unrolls and self.reductions and light and self.lanes > 1 else 1

    def _shared(self) -> SharedVectors | None:
        """The loads that share elements, of a map by itself whose branches are all in its lanes."""
        alone = len(self.stages) == 1 and not self.reductions and self.given is None and self.middle is None
        return find_shared_vectors(self.kernel, self.stages[0], self.lane) if alone and self.lane is not None else None

    @property
    def width(self) -> int:
        """How many elements a turn has: parts of a row begin at multiples."""
        return self.lanes if self.shared is None else self.lanes * self.shared.width

    @property
    def outermost(self) -> Group | None:
        """The group whose loop is around all others."""
        others = [group for group in self.groups if group is not self.lane]
        return others[0] if others else self.lane

    def emit(self, at: Mapping[int, SSAValue], part: tuple[SSAValue, SSAValue] | None = None) -> Accumulators | None:
        """The loops, for given values of the axes around; `part` is the range of the outermost group."""
        accumulators = self.accumulators(at) if self.reductions else None
        if accumulators is not None:
            accumulators.start()
        self._loops([group for group in self.groups if group is not self.lane], dict(at), part, accumulators)
        return accumulators

    def accumulators(self, at: Mapping[int, SSAValue]) -> Accumulators:
        """Room for the results of all reductions, for given values of the axes around."""
        return Accumulators(self.kernel, self.stages, self.reductions, self.lanes, at)

    def _loops(
        self,
        groups: Sequence[Group],
        at: dict[int, SSAValue],
        part: tuple[SSAValue, SSAValue] | None,
        accumulators: Accumulators | None,
    ) -> None:
        if not groups:
            self._innermost(at, part, accumulators)
            return
        low, high = (None, self.code.dim(groups[0].extent)) if part is None else part
        with self.code.loop(high, self._name(groups[0]), lower=low) as index:
            self._loops(groups[1:], {**at, groups[0].last: index}, None, accumulators)

    def _name(self, group: Group) -> str:
        return self.stages[0].axes[group.last].value.name_hint or "i"

    def _innermost(
        self,
        at: Mapping[int, SSAValue],
        part: tuple[SSAValue, SSAValue] | None,
        accumulators: Accumulators | None,
    ) -> None:
        axis = None if self.lane is None else self.lane.last
        row = max(at, default=0)
        self._asked = [each.start(self.kernel, at, row) for each in self.ahead]
        written = {store.buffer for stage in self.stages for store in stage.stores}
        if self.middle is not None:
            self._ends_and_middle(self.middle, at, part)
            return
        bodies = [Body(self.kernel, stage, at, axis) for stage in self.stages]
        for body in bodies:
            if self.given is not None:
                self.given(body)
            body.hoist(body.stage.body, written)
        with self._reciprocals(bodies) as variants:
            for _ in variants:
                self._along(bodies, part, accumulators)

    def _ends_and_middle(
        self, middle: Middle, at: Mapping[int, SSAValue], part: tuple[SSAValue, SSAValue] | None
    ) -> None:
        """Vectors where branches are taken, elements one by one elsewhere."""
        code, stage = self.code, middle.stage
        written = {store.buffer for store in stage.stores}
        first, end = middle.range(self.kernel, at, part)
        low, high = (code.index(0), code.dim(stage.axes[middle.axis].extent)) if part is None else part
        inner, outer = (Body(self.kernel, stage, at, middle.axis) for _ in range(2))
        inner.take(middle.branches)
        inner.hoist(stage.body, written)
        self._along([inner], (first, end), None)
        outer.hoist(stage.body, written)
        for begin, stop in ((low, first), (end, high)):
            with code.loop(stop, "e", lower=begin, vectorize=False) as index:
                outer.at_index(index).run(stage.body)

    @contextmanager
    def _reciprocals(self, bodies: Sequence[Body]) -> Generator[Generator[None]]:
        """Twice what follows if divisors of the row might have no reciprocal: with products, and with divisions."""
        unsafe = [value for body in bodies for value in body.unsafe_divisors]

        def variants() -> Generator[None]:
            if not unsafe:
                yield
                return
            with self.code.when(self._are_normal(unsafe)) as branch:
                yield
            for body in bodies:
                body.multiply = False
            with self.code.otherwise(branch):
                yield

        yield variants()

    def _are_normal(self, divisors: Sequence[SSAValue]) -> SSAValue:
        code, result = self.code, None
        for value in divisors:
            low, high = (
                code.value(arith.ConstantOp(number_like(end, value))) for end in (LEAST_DIVISOR, GREATEST_DIVISOR)
            )
            # A divisor that comes of a sum of positive numbers; any other is divided by.
            for test in (arith.CmpfOp(value, low, "oge"), arith.CmpfOp(value, high, "ole")):
                one = code.value(test)
                result = one if result is None else code.value(arith.AndIOp(result, one))
        assert result is not None
        return result

    # Along the vectors.

    def _along(
        self,
        bodies: Sequence[Body],
        part: tuple[SSAValue, SSAValue] | None,
        accumulators: Accumulators | None,
    ) -> None:
        code = self.code
        sums = [] if accumulators is None else accumulators.all
        if self.lane is None:
            self._step(bodies, None, [])
            return
        low, high = (None, code.dim(self.lane.extent)) if part is None else part
        length = high if low is None else code.sub(high, low)
        if self._is_written_once(length, sums):
            self._masked_turns(bodies, low, length)
            return
        done: SSAValue = code.index(0)
        if accumulators is not None and self.unroll > 1:
            done = self._wide_turns(bodies, low, length, accumulators)
        done = self._turns(bodies, low, length, done, self.width, sums)
        if self.registers > 1 and not masks_are_cheap(self.kernel, self.stages):
            done = self._turns(bodies, low, length, done, self.lanes // self.registers, sums)
        self._rest(bodies, low, high, length, done, sums)

    def _wide_turns(
        self, bodies: Sequence[Body], low: SSAValue | None, length: SSAValue, accumulators: Accumulators
    ) -> SSAValue:
        """Turns of several vectors, each with accumulators of its own, if the row is so long; gives where they end."""
        code, known, step = self.code, constant_of(length), self.lanes * self.unroll
        if known is not None and known < step:
            return code.index(0)
        end = code.index(known // step * step) if known is not None else code.mul(code.divide(length, step), step)
        with ExitStack() as scope:
            if known is None:
                scope.enter_context(code.when(code.compare("sgt", end, 0)))
            wide = replace(accumulators, width=step)
            wide.start()
            self._turns(bodies, low, length, code.index(0), step, wide.all)
            accumulators.take(wide, are_first=len(self.groups) == 1)
        return end

    def _is_written_once(self, length: SSAValue, sums: Sequence[SSAValue]) -> bool:
        """Whether all turns go under a mask: long code, of whose turns the last may be incomplete."""
        known = constant_of(length)
        rests = known is None or (known > self.lanes and known % self.lanes > 0)
        is_long = sum(len(stage.needed) for stage in self.stages) > LONG
        return is_long and rests and self.lanes > 1 and not sums and masks_are_cheap(self.kernel, self.stages)

    def _masked_turns(self, bodies: Sequence[Body], low: SSAValue | None, length: SSAValue) -> None:
        code = self.code
        with code.loop(code.divide(code.add(length, self.width - 1), self.width), "v", long=True) as turn:
            done = code.mul(turn, self.width)
            start = done if low is None else code.add(low, done)
            self._ask(start, self.lanes)
            self._turn(bodies, start, self.lanes, code.sub(length, done), ())

    def _ask(self, start: SSAValue, count: int) -> None:
        for each in self._asked:
            each.ask(self.code, start, count)

    def _turns(
        self,
        bodies: Sequence[Body],
        low: SSAValue | None,
        length: SSAValue,
        done: SSAValue,
        step: int,
        sums: Sequence[SSAValue],
    ) -> SSAValue:
        """Full turns of `step` elements from `done` on; gives where they end."""
        code, known = self.code, constant_of(length)
        if step == 1 or (known is not None and known // step * step <= (constant_of(done) or 0)):
            return done
        end = code.index(known // step * step) if known is not None else code.mul(code.divide(length, step), step)
        first = None if constant_of(done) == 0 else code.divide(done, step)
        with code.loop(code.divide(end, step), "v", lower=first) as turn:
            start = code.mul(turn, step)
            start = start if low is None else code.add(low, start)
            self._ask(start, step)
            self._turn(bodies, start, step, None, sums)
        return end

    def _rest(
        self,
        bodies: Sequence[Body],
        low: SSAValue | None,
        high: SSAValue,
        length: SSAValue,
        done: SSAValue,
        sums: Sequence[SSAValue],
    ) -> None:
        """What is left for less than a vector."""
        code, known = self.code, constant_of(length)
        if known is not None and known == constant_of(done):
            return
        start = done if low is None else code.add(low, done)
        if self.lanes == 1 or (not masks_are_cheap(self.kernel, self.stages) and not sums):
            with code.loop(high, "e", lower=start, vectorize=False) as index:
                vector_turn(self.kernel, index, 1, None, sums, partial(self._step, bodies))
            return
        left = code.sub(length, done)
        if self.registers > 2:
            self._single_registers(bodies, start, left)
            return
        with code.when(code.compare("sgt", left, 0)):
            self._turn(bodies, start, self.lanes, left, sums)

    def _single_registers(self, bodies: Sequence[Body], start: SSAValue, left: SSAValue) -> None:
        """The first `left` elements, less than a turn, one register at a time: that is less code than a turn is."""
        code, lanes = self.code, self.lanes // self.registers
        with code.loop(code.divide(code.add(left, lanes - 1), lanes), "rest") as number:
            done = code.mul(number, lanes)
            self._turn(bodies, code.add(start, done), lanes, code.sub(left, done), ())

    def _turn(
        self, bodies: Sequence[Body], start: SSAValue, step: int, left: SSAValue | None, sums: Sequence[SSAValue]
    ) -> None:
        """The elements from `start` on: all of a turn, or the first `left`."""
        if self.shared is None:
            vector_turn(self.kernel, start, step, left, sums, partial(self._step, bodies))
        else:
            self.shared.emit(bodies[0], start, left)

    def _step(self, bodies: Sequence[Body], index: SSAValue | None, sums: Sequence[SSAValue]) -> list[SSAValue]:
        """All stages at one place; later ones get what earlier ones have just computed."""
        forwarded: dict[tuple[SSAValue, Place], SSAValue] = {}
        old, new = iter(sums), list[SSAValue]()
        for position, body in enumerate(bodies):
            here = body if index is None else body.at_index(index)
            here.forwarded = forwarded
            reduction = self.reductions.get(position)
            if reduction is None:
                here.run(body.stage.body)
                continue
            here.values |= {load.result: next(old) for load in reduction.accumulators}
            here.run([op for op in body.stage.body if not isinstance(op, StoreOp)])
            new += [here.value(store.value) for store in reduction.stores]
        return new


def constant_of(value: SSAValue) -> int | None:
    """The number that an index is, if it is a constant."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None

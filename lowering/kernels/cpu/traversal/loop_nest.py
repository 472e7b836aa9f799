"""One traversal of some axes for several stages at once: elements are computed and stored, or accumulated.

The innermost loop advances by vectors (`vector_loop.py`). Reductions keep several vector accumulators each, to hide the
latency of additions; these are combined at the end.

Multiplication by reciprocals instead of division by a row-invariant divisor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cpu.emit.blocked_accumulation import MOST, in_blocks, iterations_of_block, with_and_without_blocks
from lowering.kernels.cpu.emit.body import Body, number_like
from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.guards import Middle, find_middle
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.prefetching import FarRow, PrefetchedAccess, PrefetchedRow, far_rows
from lowering.kernels.cpu.emit.vectorization import (
    Group,
    group_axes,
    lane_count,
    lane_group,
    masks_are_cheap,
    registers_per_iteration,
)
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import Stage, is_heavy
from lowering.kernels.cpu.traversal.accumulators import Accumulators
from lowering.kernels.cpu.traversal.shuffled_loads import SharedVectors, find_shared_vectors
from lowering.kernels.cpu.traversal.vector_loop import IterationShape, Row, Step
from tir_dialect.dims import Dim, ceildiv, constant, minimum, product

REGISTERS_OF_SEVERAL_ROWS = 4
"""Of each row of maps in an iteration: the next one's loads wait where addresses are like those of its last stores."""


@dataclass
class Sweep:
    """Stages that run over the same axes, each of which is a map or reduces along all of them."""

    kernel: Kernel
    stages: Sequence[Stage]
    axes: Sequence[int]
    reductions: Mapping[int, Reduction] = field(default_factory=dict[int, Reduction])
    """By the number of the stage."""
    ahead: Sequence[PrefetchedAccess] = ()
    """What is asked for on the way."""
    unrolls: bool = True
    """Whether a row has several vectors of sums, as one by itself needs in order not to wait for them."""
    given: Callable[[Body], None] | None = None
    """Tells a stage at a row what is known of the row."""
    elsewhere: Mapping[Stage, Mapping[int, SSAValue]] = field(default_factory=dict[Stage, Mapping[int, SSAValue]])
    """Values of axes around for stages that are at another row than the others."""

    asks: bool = False
    """Whether sums ask for later elements of operands that are larger than the caches."""

    def __post_init__(self) -> None:
        self._is_long = True
        """Whether loops inside the outermost one go in blocks."""
        self._far: list[FarRow] = []
        self._prefetched: list[PrefetchedRow] = []
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
            has_rows = len(self.groups) > 1 or min(self.axes) > 0
            usual = registers_per_iteration(self.kernel, self.stages, self.lane, self.lanes, has_rows)
            self.registers = REGISTERS_OF_SEVERAL_ROWS if self.elsewhere else usual
            self.lanes *= self.registers
        self.unroll = self._unroll() if self.lanes > 1 else 1

    def _unroll(self) -> int:
        """How many vectors of sums there are, to hide the latency of additions: beside the last pass over another row,
        whose values and factors need registers too, sums take a quarter of them; those of several rows half.
        """
        light = not any(is_heavy(op) for stage in self.stages for op in stage.needed)
        if not self.unrolls or not self.reductions or not (light or self.elsewhere):
            return 1
        sums = sum(len(reduction.stores) for reduction in self.reductions.values())
        part = 2 if len(self.reductions) == len(self.stages) else 4
        fits = 4 * sums <= self.kernel.target.vector_registers // part
        return 4 if fits or not self.elsewhere else 2

    def _shared(self) -> SharedVectors | None:
        """The loads that share elements, of a map by itself whose branches are all in its lanes."""
        alone = len(self.stages) == 1 and not self.reductions and self.given is None and self.middle is None
        return find_shared_vectors(self.kernel, self.stages[0], self.lane) if alone and self.lane is not None else None

    @property
    def width(self) -> int:
        """How many elements an iteration has: parts of a row begin at multiples."""
        return self.lanes if self.shared is None else self.lanes * self.shared.width

    @property
    def outer(self) -> Sequence[Group]:
        """The groups whose loops are around that of the lanes, from outside."""
        return [group for group in self.groups if group is not self.lane]

    @property
    def outermost(self) -> Group | None:
        """The group whose loop is around all others."""
        return self.outer[0] if self.outer else self.lane

    def emit(self, at: Mapping[int, SSAValue], *parts: tuple[SSAValue, SSAValue] | None) -> Accumulators | None:
        """The loops, for given values of the axes around; `parts` are the ranges of the outermost groups."""
        accumulators = self.accumulators(at) if self.reductions else None
        if accumulators is not None:
            accumulators.start()
        if self.middle is not None and self.middle.is_the_same:
            self.middle.range(self.kernel, {}, None)  # Made here, it is at hand in all rows.
        self._is_long = True
        if accumulators is None or not accumulators.round or not self.outer:
            self._loops([*self.outer], dict(at), parts, accumulators)
        else:
            self._loops_in_blocks(at, parts, accumulators)
        return accumulators

    def _loops_in_blocks(
        self,
        at: Mapping[int, SSAValue],
        parts: Sequence[tuple[SSAValue, SSAValue] | None],
        accumulators: Accumulators,
    ) -> None:
        """The loops, inner ones without blocks where they are short."""
        spare = [constant(MOST) - product((*(group.extent for group in self.outer[1:]), self._sums_of_row))]
        if self.lane is not None:
            spare.append(constant(MOST * self.lanes * self.unroll) - self.lane.extent)

        def emit(is_long: bool) -> None:
            self._is_long = is_long
            self._loops([*self.outer], dict(at), parts, accumulators)

        with_and_without_blocks(self.code, spare, emit)

    def accumulators(self, at: Mapping[int, SSAValue]) -> Accumulators:
        """Room for the results of all reductions, for given values of the axes around."""
        return Accumulators(self.kernel, self.stages, self.reductions, self.lanes, at, self.elsewhere)

    def _loops(
        self,
        groups: Sequence[Group],
        at: dict[int, SSAValue],
        parts: Sequence[tuple[SSAValue, SSAValue] | None],
        accumulators: Accumulators | None,
    ) -> None:
        part = parts[0] if parts else None
        if not groups:
            self._innermost(at, part, accumulators)
            return

        def run(low: SSAValue | None, high: SSAValue) -> None:
            with self.code.loop(high, self._name(groups[0]), lower=low) as index:
                self._loops(groups[1:], {**at, groups[0].last: index}, parts[1:], accumulators)

        bounds = (None, self.code.dim(groups[0].extent)) if part is None else part
        is_outermost = len(groups) == len(self.outer)
        if accumulators is None or not accumulators.round or not (is_outermost or self._is_long):
            run(*bounds)
            return
        inner = [*(group.extent for group in groups[1:]), self._sums_of_row]
        in_blocks(self.code, bounds, run, accumulators.totals, iterations_of_block(inner))

    @property
    def _sums_of_row(self) -> Dim:
        """How many numbers an accumulator takes at most of a row along the lanes."""
        if self.lane is None:
            return constant(1)
        vectors = ceildiv(self.lane.extent, constant(self.lanes))
        return minimum(vectors, constant(self.unroll + 1)) if self.unroll > 1 else vectors

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
        self._prefetched = [each.start(self.kernel, at, row) for each in self.ahead]
        if self.asks and axis is not None and self.unroll > 1:
            self._far = [far for stage in self.stages for far in far_rows(self.kernel, stage, at, axis)]
        # Who reads a result of a reduction here reads that of another row, which is there before.
        maps = [stage for number, stage in enumerate(self.stages) if number not in self.reductions]
        written = {store.buffer for stage in maps for store in stage.stores}
        if self.middle is not None:
            self._ends_and_middle(self.middle, at, part)
            return
        bodies = [Body(self.kernel, stage, {**at, **self.elsewhere.get(stage, {})}, axis) for stage in self.stages]
        for body in bodies:
            body.fills_lines = True
            if self.given is not None:
                self.given(body)
            body.hoist(body.stage.body, {*written, *(store.buffer for store in body.stage.stores)})
        for _ in with_reciprocals(self.code, bodies):
            self._along(bodies, part, accumulators)

    def _ends_and_middle(
        self, middle: Middle, at: Mapping[int, SSAValue], part: tuple[SSAValue, SSAValue] | None
    ) -> None:
        """Vectors where branches are taken, elements one by one elsewhere.

        What is the same for all elements of a part is only there if the part has elements: it may be loaded.
        """
        code, stage = self.code, middle.stage
        first, end = middle.range(self.kernel, at, part)
        low, high = (code.index(0), code.dim(stage.axes[middle.axis].extent)) if part is None else part
        written = {store.buffer for store in stage.stores}
        # the addresses of results are those of all parts
        Body(self.kernel, stage, at, middle.axis).hoist(stage.stores, written)
        for is_middle, begin, stop in ((True, first, end), (False, low, first), (False, end, high)):
            if begin is stop:
                continue
            body = Body(self.kernel, stage, at, middle.axis)
            body.fills_lines = is_middle
            if is_middle or len(middle.branches) == 1:  # elsewhere, some of several may be taken
                body.take(middle.branches, holds=is_middle)
            with code.when(code.compare("slt", begin, stop)):
                body.hoist(stage.body, written)
                if is_middle:
                    self._along([body], (begin, stop), None)
                    continue
                with code.loop(stop, "e", lower=begin, vectorize=False) as index:
                    body.at_index(index).run(stage.body)

    def _along(
        self,
        bodies: Sequence[Body],
        part: tuple[SSAValue, SSAValue] | None,
        accumulators: Accumulators | None,
    ) -> None:
        step = Step(bodies, self.reductions)
        if self.lane is None:
            step(None, [])
            return
        low, high = (None, self.code.dim(self.lane.extent)) if part is None else part
        masks = masks_are_cheap(self.kernel, self.stages)
        shape = IterationShape(self.lanes, self.registers, self.width, self.unroll, masks)
        row = Row(
            self.kernel,
            step,
            shape,
            self.shared,
            self._prefetched,
            low,
            high,
            self._far,
            len(self.groups) == 1,
            self._is_long,
        )
        row.emit(accumulators)


LEAST_DIVISOR, GREATEST_DIVISOR = 2.0**-126, 2.0**126
"""Between these the reciprocal of an f32, and the product with it, loses at most the last bit."""


def with_reciprocals(code: Code, bodies: Sequence[Body]) -> Iterator[None]:
    """Where to emit the row: twice if divisors might have no reciprocal, with products, and with divisions."""
    unsafe = [value for body in bodies for value in body.unsafe_divisors]
    if not unsafe:
        yield
        return
    with code.when(_are_normal(code, unsafe)) as branch:
        yield
    for body in bodies:
        body.multiply = False
    with code.otherwise(branch):
        yield


def _are_normal(code: Code, divisors: Sequence[SSAValue]) -> SSAValue:
    tests: list[SSAValue] = []
    for value in divisors:
        low, high = (code.value(arith.ConstantOp(number_like(end, value))) for end in (LEAST_DIVISOR, GREATEST_DIVISOR))
        # A divisor that comes of a sum of positive numbers; any other is divided by.
        tests += [code.value(arith.CmpfOp(value, low, "oge")), code.value(arith.CmpfOp(value, high, "ole"))]
    result = tests[0]
    for test in tests[1:]:
        result = code.both(result, test)
    return result

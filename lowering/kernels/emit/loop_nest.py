"""A loop nest over some axes for one or more fused stages, which store elements or accumulate them.

The innermost loop advances by vectors (`vector_loop.py`). Reductions keep several vector accumulators, to hide the
latency of additions; these are combined at the end. Divisions by a row-invariant divisor become multiplications by its
reciprocal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cost_model import SEVERAL_ROWS_VECTORS, SUM_BLOCK_STEPS
from lowering.kernels.emit.accumulators import Accumulators, in_blocks, iterations_of_block, with_and_without_blocks
from lowering.kernels.emit.body import Body, number_like
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.guards import Interior, find_interior
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.emit.prefetching import DistantPrefetch, PrefetchedAccess, PrefetchedRow, distant_prefetches
from lowering.kernels.emit.vector_loop import IterationShape, Step, VectorLoop, plan_shuffled_loads
from lowering.kernels.emit.vectorization import (
    AxisGroup,
    choose_lane_axes,
    collapse_axes,
    lane_count,
    masks_are_cheap,
    registers_per_iteration,
)
from lowering.kernels.structure.reduction import Reduction
from lowering.kernels.structure.stages import Stage, is_heavy
from tir_dialect.dims import Dim, ceildiv, constant, minimum, product


@dataclass
class LoopNest:
    """A loop nest of stages that run over the same axes; each is elementwise or reduces along all of them."""

    kernel: Kernel
    stages: Sequence[Stage]
    axes: Sequence[int]
    reductions: Mapping[int, Reduction] = field(default_factory=dict[int, Reduction])
    """By the number of the stage."""
    ahead: Sequence[PrefetchedAccess] = ()
    """Prefetches of each iteration."""
    unrolls: bool = True
    """Whether a row has several vector accumulators, which a row by itself needs to hide the latency of additions."""
    given: Callable[[Body], None] | None = None
    """Sets the known row-invariant values of a stage."""
    other_rows: Mapping[Stage, Mapping[int, SSAValue]] = field(default_factory=dict[Stage, Mapping[int, SSAValue]])
    """For stages at another row than the others, the values of the axes around."""

    prefetches: bool = False
    """Whether reductions prefetch operands that are larger than the caches."""

    def __post_init__(self) -> None:
        self._is_long = True
        """Whether loops inside the outermost one have blocked accumulation."""
        self._distant: list[DistantPrefetch] = []
        self._prefetched: list[PrefetchedRow] = []
        self.code = self.kernel.code
        self.groups = collapse_axes(self.kernel, self.stages, self.axes)
        self.lane = choose_lane_axes(self.kernel, self.stages, self.groups) if self.groups else None
        splits = all(reduction.combine for reduction in self.reductions.values())
        self.interior: Interior | None = None
        if self.lane is not None and not self.reductions:
            self.interior = find_interior(self.kernel, self.stages, self.lane.last)
        excluded_ops = frozenset[Operation]() if self.interior is None else self.interior.excluded_ops(self.kernel)
        # Loads that are shuffled, of a single elementwise stage without row-invariant values or an
        # interior.
        alone = len(self.stages) == 1 and not self.reductions and self.given is None and self.interior is None
        self.shuffled = (
            plan_shuffled_loads(self.kernel, self.stages[0], self.lane) if alone and self.lane is not None else None
        )
        lanes = lane_count(self.kernel, self.stages, self.lane, excluded_ops) if self.lane is not None and splits else 1
        self.lanes = self.shuffled.lanes if self.shuffled is not None else lanes if lanes > 1 else 1
        self.registers = 1
        if self.lane is not None and not self.reductions and self.shuffled is None and self.interior is None:
            has_rows = len(self.groups) > 1 or min(self.axes) > 0
            usual = registers_per_iteration(self.kernel, self.stages, self.lane, self.lanes, has_rows)
            self.registers = SEVERAL_ROWS_VECTORS if self.other_rows else usual
            self.lanes *= self.registers
        self.unroll = self._unroll() if self.lanes > 1 else 1

    def _unroll(self) -> int:
        """The number of vector accumulators, to hide the latency of additions. Beside a pass over another row,
        whose values need registers too, they take a quarter of the registers; those of several rows take half.
        """
        light = not any(is_heavy(op) for stage in self.stages for op in stage.needed)
        if not self.unrolls or not self.reductions or not (light or self.other_rows):
            return 1
        accumulators = sum(len(reduction.stores) for reduction in self.reductions.values())
        chunk = 2 if len(self.reductions) == len(self.stages) else 4
        fits = 4 * accumulators <= self.kernel.target.vector_registers // chunk
        return 4 if fits or not self.other_rows else 2

    @property
    def width(self) -> int:
        """Elements of an iteration: ranges of a row begin at multiples."""
        return self.lanes if self.shuffled is None else self.lanes * self.shuffled.width

    @property
    def outer(self) -> Sequence[AxisGroup]:
        """The groups whose loops are around that of the lanes, from outside."""
        return [group for group in self.groups if group is not self.lane]

    @property
    def outermost(self) -> AxisGroup | None:
        """The group of the outermost loop."""
        return self.outer[0] if self.outer else self.lane

    def emit(self, at: Mapping[int, SSAValue], *chunks: tuple[SSAValue, SSAValue] | None) -> Accumulators | None:
        """The loops, for given values of the axes around; `parts` are the ranges of the outermost groups."""
        accumulators = self.accumulators(at) if self.reductions else None
        if accumulators is not None:
            accumulators.start()
        if self.interior is not None and self.interior.is_uniform:
            self.interior.range(self.kernel, {}, None)  # computed here, the range is available in all rows
        self._is_long = True
        if accumulators is None or not accumulators.round or not self.outer:
            self._loops([*self.outer], dict(at), chunks, accumulators)
        else:
            self._loops_in_blocks(at, chunks, accumulators)
        return accumulators

    def _loops_in_blocks(
        self,
        at: Mapping[int, SSAValue],
        chunks: Sequence[tuple[SSAValue, SSAValue] | None],
        accumulators: Accumulators,
    ) -> None:
        """The loops; inner ones have blocked accumulation only where they are long."""
        spare = [constant(SUM_BLOCK_STEPS) - product((*(group.extent for group in self.outer[1:]), self._sums_of_row))]
        if self.lane is not None:
            spare.append(constant(SUM_BLOCK_STEPS * self.lanes * self.unroll) - self.lane.extent)

        def emit(is_long: bool) -> None:
            self._is_long = is_long
            self._loops([*self.outer], dict(at), chunks, accumulators)

        with_and_without_blocks(self.code, spare, emit)

    def accumulators(self, at: Mapping[int, SSAValue]) -> Accumulators:
        """The accumulators of all reductions, for given values of the axes around."""
        return Accumulators(self.kernel, self.stages, self.reductions, self.lanes, at, self.other_rows)

    def _loops(
        self,
        groups: Sequence[AxisGroup],
        at: dict[int, SSAValue],
        chunks: Sequence[tuple[SSAValue, SSAValue] | None],
        accumulators: Accumulators | None,
    ) -> None:
        chunk = chunks[0] if chunks else None
        if not groups:
            self._innermost(at, chunk, accumulators)
            return

        def run(low: SSAValue | None, high: SSAValue) -> None:
            with self.code.loop(high, self.stages[0].axes[groups[0].last].value.name_hint or "i", lower=low) as index:
                self._loops(groups[1:], {**at, groups[0].last: index}, chunks[1:], accumulators)

        bounds = (None, self.code.dim(groups[0].extent)) if chunk is None else chunk
        is_outermost = len(groups) == len(self.outer)
        if accumulators is None or not accumulators.round or not (is_outermost or self._is_long):
            run(*bounds)
            return
        inner = [*(group.extent for group in groups[1:]), self._sums_of_row]
        in_blocks(self.code, bounds, run, accumulators.totals, iterations_of_block(inner))

    @property
    def _sums_of_row(self) -> Dim:
        """How many elements an accumulator takes of a row at most."""
        if self.lane is None:
            return constant(1)
        vectors = ceildiv(self.lane.extent, constant(self.lanes))
        return minimum(vectors, constant(self.unroll + 1)) if self.unroll > 1 else vectors

    def _innermost(
        self,
        at: Mapping[int, SSAValue],
        chunk: tuple[SSAValue, SSAValue] | None,
        accumulators: Accumulators | None,
    ) -> None:
        axis = None if self.lane is None else self.lane.last
        row = max(at, default=0)
        self._prefetched = [each.start(self.kernel, at, row) for each in self.ahead]
        if self.prefetches and axis is not None and self.unroll > 1:
            self._distant = [
                distant for stage in self.stages for distant in distant_prefetches(self.kernel, stage, at, axis)
            ]
        # A stage that reads a result of a reduction here reads that of another row, which is complete.
        elementwise = [stage for number, stage in enumerate(self.stages) if number not in self.reductions]
        written = {store.buffer for stage in elementwise for store in stage.stores}
        if self.interior is not None:
            self._edges_and_interior(self.interior, at, chunk)
            return
        bodies = [Body(self.kernel, stage, {**at, **self.other_rows.get(stage, {})}, axis) for stage in self.stages]
        for body in bodies:
            body.fills_cache_lines = True
            if self.given is not None:
                self.given(body)
            body.hoist(body.stage.body, {*written, *(store.buffer for store in body.stage.stores)})
        for _ in with_reciprocals(self.code, bodies):
            self._along(bodies, chunk, accumulators)

    def _edges_and_interior(
        self, interior: Interior, at: Mapping[int, SSAValue], chunk: tuple[SSAValue, SSAValue] | None
    ) -> None:
        """Vectors in the interior, elements one by one at the edges.

        Invariant loads are hoisted only if a range is not empty, since their addresses may be invalid otherwise.
        """
        code, stage = self.code, interior.stage
        first, end = interior.range(self.kernel, at, chunk)
        low, high = (code.index(0), code.dim(stage.axes[interior.axis].extent)) if chunk is None else chunk
        written = {store.buffer for store in stage.stores}
        # the addresses of results are common to all ranges
        Body(self.kernel, stage, at, interior.axis).hoist(stage.stores, written)
        for is_interior, begin, stop in ((True, first, end), (False, low, first), (False, end, high)):
            if begin is stop:
                continue
            body = Body(self.kernel, stage, at, interior.axis)
            body.fills_cache_lines = is_interior
            if is_interior or len(interior.branches) == 1:  # at the edges some of several branches may be taken
                body.assume(interior.branches, holds=is_interior)
            with code.when(code.compare("slt", begin, stop)):
                body.hoist(stage.body, written)
                if is_interior:
                    self._along([body], (begin, stop), None)
                    continue
                with code.loop(stop, "e", lower=begin, vectorize=False) as index:
                    body.at_index(index).run(stage.body)

    def _along(
        self,
        bodies: Sequence[Body],
        chunk: tuple[SSAValue, SSAValue] | None,
        accumulators: Accumulators | None,
    ) -> None:
        step = Step(bodies, self.reductions)
        if self.lane is None:
            step(None, [])
            return
        low, high = (None, self.code.dim(self.lane.extent)) if chunk is None else chunk
        masks = masks_are_cheap(self.kernel, self.stages)
        shape = IterationShape(self.lanes, self.registers, self.width, self.unroll, masks)
        row = VectorLoop(
            self.kernel,
            step,
            shape,
            self.shuffled,
            self._prefetched,
            low,
            high,
            self._distant,
            len(self.groups) == 1,
            self._is_long,
        )
        row.emit(accumulators)


LEAST_DIVISOR, GREATEST_DIVISOR = 2.0**-126, 2.0**126
"""Between these the reciprocal of an f32, and the product with it, is accurate to the last bit."""


def with_reciprocals(code: Code, bodies: Sequence[Body]) -> Iterator[None]:
    """Where to emit the row: twice if a divisor may have no normal reciprocal, with multiplications and with
    divisions.
    """
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
        # Sums of positive values pass this test; for anything else there is the version with divisions.
        tests += [code.value(arith.CmpfOp(value, low, "oge")), code.value(arith.CmpfOp(value, high, "ole"))]
    result = tests[0]
    for test in tests[1:]:
        result = code.both(result, test)
    return result

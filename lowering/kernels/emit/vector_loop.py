"""The vectorised loop over a row: iterations of whole vectors, and a remainder.

The last, incomplete vector is masked, or its elements are done one by one where the target has no masks. Long code is
emitted once: then every vector is masked. Reductions have iterations of several vectors with separate accumulators, to
hide the latency of additions.

If an iteration has vectors of several rows, everything is computed before anything is stored. Operands that rows have
in common are loaded once. No load waits for a store to another row at an address that is equal modulo 4 KiB.

Loads such as `x[i // 3]` or `x[i mod 2, i // 2]` are contiguous loads, shuffled in registers. If an axis occurs in
quotients and remainders by constants, there is a group size such that each member reads consecutive elements in
consecutive groups: a run. Each run is loaded once, contiguously. An iteration covers as many elements as are both whole
vectors and whole groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import lcm
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cost_model import (
    LONG_BODY_OPS,
    LOOP_MAX_OPS,
    LOOP_MAX_VECTORS,
    SHUFFLE_MAX_GROUP,
    SHUFFLE_MAX_RUNS,
    SUM_BLOCK_STEPS,
)
from lowering.kernels.emit.accumulators import Accumulators, accumulator, in_blocks
from lowering.kernels.emit.body import Body
from lowering.kernels.emit.guards import unneeded
from lowering.kernels.emit.kernel import Kernel, non_temporal_from
from lowering.kernels.emit.prefetching import DistantPrefetch, PrefetchedRow
from lowering.kernels.emit.vectorization import AxisGroup, lane_count, shuffle, vector_iteration
from lowering.kernels.structure.reduction import Reduction
from lowering.kernels.structure.stages import AffineAccess, Stage, linear_parts
from tir_dialect.analysis.dependence import Dependence
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim, FloorDivAtom, ModAtom, constant, product, symbol
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import BufferType

Run: TypeAlias = tuple[Dim, tuple[tuple[SSAValue, Dim], ...]]
"""Where a run begins: an expression over the axes, and computed values with their strides."""


@dataclass(frozen=True)
class ShuffledLoad:
    """A load of which every group of lanes reads one element of each run."""

    load: LoadOp
    order: tuple[int, ...]
    """The run of each member of a group."""

    @property
    def members(self) -> int:
        """The size of a group."""
        return len(self.order)

    @property
    def runs(self) -> tuple[int, ...]:
        """The first member of each run."""
        return tuple(self.order.index(run) for run in range(max(self.order) + 1))


def find_shuffled_loads(kernel: Kernel, stage: Stage, axis: int) -> tuple[ShuffledLoad, ...]:
    """The shuffled loads of an elementwise stage with lanes along an axis, outside of branches."""
    if axis not in stage.pinned:
        return ()
    finder = _Finder(kernel, stage, axis)
    found = [finder.find(op) for op in stage.body if isinstance(op, LoadOp)]
    return tuple(each for each in found if each is not None)


def uniform_ops(stage: Stage, axis: int) -> frozenset[Operation]:
    """The ops of a stage whose results do not depend on an axis."""
    lane = stage.axes[axis].value
    varies = Dependence(lambda argument: argument is lane)
    return frozenset(op for op in stage.body if op.results and not varies.of(op.results[0]))


def index_ops(load: LoadOp) -> frozenset[Operation]:
    """The ops that compute a load's indices."""
    found: set[Operation] = set()
    pending = list(load.indices)
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and op not in found:
            found.add(op)
            pending += op.operands
    return frozenset(found)


def index_only_ops(stage: Stage, reads: Sequence[ShuffledLoad]) -> frozenset[Operation]:
    """The ops that only compute indices of shuffled loads."""
    return unneeded(stage, frozenset(read.load for read in reads))


class _Finder:
    """Analyses the loads of one stage."""

    def __init__(self, kernel: Kernel, stage: Stage, axis: int):
        self.kernel, self.stage, self.axis = kernel, stage, axis
        self.space = IndexSpace(stage.block)
        self.names = [self.space.variable(each.value).dim.as_symbol or "" for each in stage.axes]
        lane, self.written = stage.axes[axis].value, {store.buffer for store in stage.stores}
        self.varies = Dependence(
            lambda argument: argument is lane,
            loads=lambda load: (lane,) if load.buffer in self.written else load.operands,
        )

    def find(self, load: LoadOp) -> ShuffledLoad | None:
        """The runs of a load; `None` if it has none."""
        if load in self.stage.wholes or load.buffer in self.written:
            return None
        dims = [self.space.dim_of(index) for index in load.indices]
        members = lcm(*(number for dim in dims if dim is not None for number in _divisors(dim, self.names[self.axis])))
        if not 1 < members <= SHUFFLE_MAX_GROUP:
            return None
        runs = [self._run(load, dims, members, member) for member in range(members)]
        different = list(dict.fromkeys(runs))
        if None in runs or len(different) > SHUFFLE_MAX_RUNS:
            return None
        return ShuffledLoad(load, tuple(different.index(run) for run in runs))

    def _run(self, load: LoadOp, dims: Sequence[Dim | None], members: int, member: int) -> Run | None:
        """The run of a member; `None` if its elements are not contiguous."""
        first, stride, name = constant(0), constant(0), self.names[self.axis]
        computed: list[tuple[SSAValue, Dim]] = []
        for index, dim, step in zip(load.indices, dims, self.kernel.steps(load), strict=True):
            if dim is None:
                computed.append((index, step))
                continue
            chunks = linear_parts(dim.substitute({name: members * symbol(name) + member}), [name])
            if chunks is None:
                return None
            first, stride = first + chunks[0] * step, stride + chunks[1][0] * step
        if any(self.varies.of(index) for index, _ in computed):
            return None
        stride = self.kernel.known_strides.get(stride, stride)
        return (first, tuple(computed)) if stride.constant_value == 1 else None


def _divisors(dim: Dim, name: str) -> Iterator[int]:
    """The constants by which expressions with a symbol are divided."""
    for atom in (atom for _, monomial in dim.terms for atom, _ in monomial if name in atom.symbols):
        if isinstance(atom, FloorDivAtom | ModAtom) and atom.denominator.constant_value is not None:
            yield atom.denominator.constant_value
            yield from _divisors(atom.numerator, name)


@dataclass
class ShuffledLoads:
    """The shuffled loads of an elementwise stage, for the iterations along an axis."""

    kernel: Kernel
    stage: Stage
    lanes: int
    reads: Sequence[ShuffledLoad]
    skipped: frozenset[Operation]
    """The ops that no vector needs, since they only compute indices."""

    @property
    def width(self) -> int:
        """Vectors of an iteration."""
        # Of each of several runs a vector is loaded, not a scalar.
        return lcm(self.lanes, *(read.members * min(len(read.runs), 2) for read in self.reads)) // self.lanes

    def emit(self, body: Body, start: SSAValue, left: SSAValue | None) -> None:
        """An iteration from `start` on: all its elements, or the first `left`."""
        code, lanes = self.kernel.code, self.lanes
        tiles: dict[SSAValue, SSAValue] = {read.load.result: self._tile(body, read, start, left) for read in self.reads}
        for number in range(self.width):
            done = number * lanes
            with ExitStack() as scope:
                if left is not None and number:
                    scope.enter_context(code.when(code.compare("sgt", left, done)))
                rest = None if left is None else code.sub(left, done)
                self._vector(body, code.add(start, done), rest, tiles, done)

    def _vector(
        self, body: Body, start: SSAValue, left: SSAValue | None, tiles: Mapping[SSAValue, SSAValue], done: int
    ) -> None:
        code = self.kernel.code
        values: dict[SSAValue, SSAValue] = {}

        def before(lane: SSAValue) -> None:
            # Unmasked, so that LLVM keeps the tile in registers.
            values.update((result, code.load(tile, [code.add(lane, done)])) for result, tile in tiles.items())

        def step(index: SSAValue, accumulators: Sequence[SSAValue]) -> Sequence[SSAValue]:
            here = body.at_index(index)
            here.set_values(values, self.skipped)
            here.run(self.stage.body)
            return ()

        vector_iteration(self.kernel, start, self.lanes, left, (), step, before)

    def _tile(self, body: Body, read: ShuffledLoad, start: SSAValue, left: SSAValue | None) -> SSAValue:
        """A buffer with the values of a load for an iteration, which LLVM keeps in registers."""
        code, dtype = self.kernel.code, read.load.buffer_type.dtype
        runs = [self._run(body, read, first, start, left) for first in read.runs]
        kind = BufferType([self.width * self.lanes], dtype, scope="local", align=64)
        tile = code.value(AllocBufferOp(kind), "tile")
        for number in range(self.width):
            code.store(self._interleaved(read, runs, number), tile, [code.index(number * self.lanes)])
        return tile

    def _run(self, body: Body, read: ShuffledLoad, first: int, start: SSAValue, left: SSAValue | None) -> SSAValue:
        """The elements of a run for an iteration; in the last iteration only those that exist."""
        code, count, memory = self.kernel.code, self._elements(read), self.kernel.memory(read.load)
        here = body.at_index(code.add(start, first))
        makers = index_ops(read.load)
        here.run([op for op in self.stage.body if op in makers])
        index = here.index(read.load)
        if count == 1:
            return code.splat(code.load(memory, [index]), self.lanes)
        if left is None:
            return code.load(memory, [index], count)
        needed = code.divide(code.add(left, read.members - 1 - first), read.members)
        return code.load(memory, [index], count, code.leading(needed, count))

    def _elements(self, read: ShuffledLoad) -> int:
        """Elements of each run in an iteration."""
        return self.width * self.lanes // read.members

    def _interleaved(self, read: ShuffledLoad, runs: Sequence[SSAValue], number: int) -> SSAValue:
        """Vector `number` of an iteration: elements of the runs, interleaved."""
        code, lanes, count = self.kernel.code, self.lanes, self._elements(read)
        if count == 1:
            return runs[0]
        elements = [divmod(number * lanes + lane, read.members) for lane in range(lanes)]
        picks = [(group, read.order[member]) for group, member in elements]
        pair = runs[0], runs[min(1, len(runs) - 1)]
        value = shuffle(code, pair, [group + count * min(run, 1) for group, run in picks])
        for more in range(2, len(runs)):
            wide = shuffle(code, (runs[more], runs[more]), [group for group, _ in picks])
            value = shuffle(code, (value, wide), [lane + lanes * (picks[lane][1] == more) for lane in range(lanes)])
        return value


def plan_shuffled_loads(kernel: Kernel, stage: Stage, lane: AxisGroup) -> ShuffledLoads | None:
    """The shuffled loads of a stage with lanes along a group, if there are some and iterations are not too long."""
    reads = find_shuffled_loads(kernel, stage, lane.last)
    if not reads:
        return None
    skipped = index_only_ops(stage, reads)
    lanes = lane_count(kernel, [stage], lane, skipped | uniform_ops(stage, lane.last))
    found = ShuffledLoads(kernel, stage, lanes, reads, skipped)
    code = found.width * (len(stage.needed - skipped) + sum(len(read.runs) for read in reads))
    return found if found.lanes > 1 and found.width <= LOOP_MAX_VECTORS and code <= LOOP_MAX_OPS else None


@dataclass(frozen=True)
class Step:
    """All stages of a loop body, for one vector; later stages use what earlier ones have just computed."""

    bodies: Sequence[Body]
    reductions: Mapping[int, Reduction]
    """By the number of the stage."""

    @property
    def rows(self) -> int:
        """At how many rows the stages are."""
        return len({tuple(body.at.values()) for body in self.bodies})

    def __call__(self, index: SSAValue | None, accumulators: Sequence[SSAValue]) -> list[SSAValue]:
        """Emits the vector, or the row-invariant stages; maps old accumulators to new ones."""
        old, new = iter(accumulators), list[SSAValue]()
        for position, here in enumerate(self._at(index)):
            reduction = self.reductions.get(position)
            if reduction is None:
                here.run(here.stage.body)
                continue
            here.values |= {load.result: next(old) for load in reduction.accumulators}
            here.run([op for op in here.stage.body if not isinstance(op, StoreOp)])
            new += [here.value(store.value) for store in reduction.stores]
        return new

    def values_of(self, index: SSAValue, late: Sequence[tuple[Body, StoreOp]]) -> list[SSAValue]:
        """Emits the vector without some stores; returns the values for these."""
        found = dict(zip(self.bodies, self._at(index), strict=True))
        for body, here in found.items():
            here.run([op for op in here.stage.body if (body, op) not in late])
        return [found[body].value(store.value) for body, store in late]

    def _at(self, index: SSAValue | None) -> Iterator[Body]:
        """The bodies for a vector; stages of one row forward stored values to each other."""
        forwarded: dict[tuple[SSAValue, ...], dict[tuple[SSAValue, AffineAccess], SSAValue]] = {}
        for body in self.bodies:
            here = body if index is None else body.at_index(index)
            here.forwarded = forwarded.setdefault(tuple(body.at.values()), {})
            yield here


def emit_rows(kernel: Kernel, step: Step, start: SSAValue, lanes: int, left: SSAValue | None) -> None:
    """Elementwise stages of several rows from an element on, for all lanes or the first `left` of them."""
    code = kernel.code
    stores = [(body, store) for body in step.bodies for store in body.stage.stores if store.buffer in kernel.results]
    kept = [accumulator(kernel, store.buffer_type, lanes) for _, store in stores]

    def compute(index: SSAValue, old: Sequence[SSAValue]) -> list[SSAValue]:
        return step.values_of(index, stores)

    def write(fills_cache_lines: bool) -> None:
        for (body, store), memory in zip(stores, kept, strict=True):
            _write(kernel, body, store, memory, (start, lanes, left), fills_cache_lines)

    vector_iteration(kernel, start, lanes, left, kept, compute)
    # One branch for all stores: LLVM would sink computations into later branches, where their loads wait.
    least = non_temporal_from(kernel, stores[0][0].stage, stores[0][1]) if left is None else None
    if least is None:
        write(fills_cache_lines=False)
        return
    kind = stores[0][1].buffer_type
    size = code.dim(product(kind.shape) * byte_size(kind.dtype))
    with code.when(code.compare("sge", size, least)) as branch:
        write(fills_cache_lines=True)
    with code.otherwise(branch):
        write(fills_cache_lines=False)


def _write(
    kernel: Kernel,
    body: Body,
    store: StoreOp,
    memory: SSAValue,
    vector: tuple[SSAValue, int, SSAValue | None],
    fills_cache_lines: bool,
) -> None:
    """Stores the values of a row."""

    def write(index: SSAValue, old: Sequence[SSAValue]) -> Sequence[SSAValue]:
        here = body.at_index(index)
        here.fills_cache_lines = fills_cache_lines
        here.values[store.value] = old[0]
        here.run([store])
        return old

    start, lanes, left = vector
    vector_iteration(kernel, start, lanes, left, [memory], write)


@dataclass(frozen=True)
class IterationShape:
    """The shape of an iteration."""

    lanes: int
    """Elements of a vector, which may fill several registers."""

    registers: int
    """How many registers a vector fills."""

    width: int
    """Elements of an iteration."""

    unroll: int
    """Vectors of a wide iteration, each with its own accumulator."""

    masks: bool
    """Whether a masked vector costs little."""


@dataclass(frozen=True)
class VectorLoop:
    """A row, or the range of it from `low` on."""

    kernel: Kernel
    step: Step
    shape: IterationShape
    shuffled: ShuffledLoads | None
    prefetched: Sequence[PrefetchedRow]
    """Prefetches of each iteration."""
    low: SSAValue | None
    high: SSAValue
    distant: Sequence[DistantPrefetch]
    """Prefetches of wide iterations."""
    is_first: bool
    """Whether the accumulators still have their initial values."""
    is_long: bool
    """Whether accumulators may take too many elements along the row, so that accumulation is blocked."""

    def emit(self, accumulators: Accumulators | None) -> None:
        """The iterations, which update the accumulators.

        Rows that may be short have a version without blocked accumulation.
        """
        code = self.kernel.code
        length = self.high if self.low is None else code.sub(self.high, self.low)
        may_be_short = accumulators is not None and accumulators.round and constant_of(length) is None
        if not (may_be_short and self.is_long and self.is_first):
            self._emit(accumulators)
            return
        with code.when(code.compare("sle", length, SUM_BLOCK_STEPS * self.shape.lanes * self.shape.unroll)) as branch:
            replace(self, is_long=False).emit(accumulators)
        with code.otherwise(branch):
            self._emit(accumulators)

    def _emit(self, accumulators: Accumulators | None) -> None:
        code, shape = self.kernel.code, self.shape
        partial = [] if accumulators is None else accumulators.all
        length = self.high if self.low is None else code.sub(self.high, self.low)
        # Whether all iterations are masked: for long code whose last iteration may be incomplete.
        known, lanes = constant_of(length), self.shape.lanes
        rests = known is None or (known > lanes and known % lanes > 0)
        is_long = sum(len(body.stage.needed) for body in self.step.bodies) > LONG_BODY_OPS
        if is_long and rests and lanes > 1 and not partial and self.shape.masks:
            self._masked_iterations(length)
            return
        done: SSAValue = code.index(0)
        if accumulators is not None and shape.unroll > 1:
            done = self._wide_iterations(length, accumulators)
        done = self._iterations(length, done, shape.width, accumulators)
        if shape.registers > 1 and not shape.masks:
            done = self._iterations(length, done, shape.lanes // shape.registers, accumulators)
        self._rest(length, done, accumulators)

    def _from(self, done: SSAValue) -> SSAValue:
        """The index of the element after so many."""
        return done if self.low is None else self.kernel.code.add(self.low, done)

    def _end(self, length: SSAValue, step: int) -> SSAValue:
        """Where full iterations of `step` elements end."""
        code, known = self.kernel.code, constant_of(length)
        return code.index(known // step * step) if known is not None else code.mul(code.divide(length, step), step)

    def _wide_iterations(self, length: SSAValue, accumulators: Accumulators) -> SSAValue:
        """Iterations of several vectors with separate accumulators, if the row is long enough; returns where
        they end.
        """
        code, known, step = self.kernel.code, constant_of(length), self.shape.lanes * self.shape.unroll
        if known is not None and known < step:
            return code.index(0)
        end = self._end(length, step)
        with ExitStack() as scope:
            if known is None:
                scope.enter_context(code.when(code.compare("sgt", end, 0)))
            wide = replace(accumulators, width=step)
            wide.start()
            self._iterations(length, code.index(0), step, wide)
            accumulators.absorb(wide, are_first=self.is_first)
        return end

    def _masked_iterations(self, length: SSAValue) -> None:
        code, width = self.kernel.code, self.shape.width
        with code.loop(code.divide(code.add(length, width - 1), width), "v") as iteration:
            done = code.mul(iteration, width)
            start = self._from(done)
            self._prefetch(start, self.shape.lanes)
            self._iteration(start, self.shape.lanes, code.sub(length, done), ())

    def _prefetch(self, start: SSAValue, count: int) -> None:
        for each in self.prefetched:
            each.prefetch(self.kernel.code, start, count)

    def _iterations(self, length: SSAValue, done: SSAValue, step: int, accumulators: Accumulators | None) -> SSAValue:
        """Full iterations of `step` elements from `done` on; returns where they end."""
        code, known = self.kernel.code, constant_of(length)
        if step == 1 or (known is not None and known // step * step <= (constant_of(done) or 0)):
            return done
        end = self._end(length, step)
        first = None if constant_of(done) == 0 else code.divide(done, step)
        partial = [] if accumulators is None else accumulators.all

        def run(lower: SSAValue | None, upper: SSAValue) -> None:
            with code.loop(upper, "v", lower=lower) as iteration:
                start = self._from(code.mul(iteration, step))
                self._prefetch(start, step)
                for each in self.distant if step > self.shape.width else ():
                    each.prefetch(code, start, step)
                self._iteration(start, step, None, partial)

        is_long = known is None or known // step > SUM_BLOCK_STEPS
        self._in_blocks((first, code.divide(end, step)), run, accumulators if is_long else None)
        return end

    def _in_blocks(
        self,
        bounds: tuple[SSAValue | None, SSAValue],
        run: Callable[[SSAValue | None, SSAValue], None],
        accumulators: Accumulators | None,
    ) -> None:
        """A loop that may add many elements to accumulators; after wide iterations few are left."""
        few = accumulators is not None and accumulators.width == self.shape.lanes and self.shape.unroll > 1
        if accumulators is None or few or not self.is_long or not accumulators.round:
            run(*bounds)
        else:
            in_blocks(self.kernel.code, bounds, run, accumulators.totals, constant(SUM_BLOCK_STEPS))

    def _rest(self, length: SSAValue, done: SSAValue, accumulators: Accumulators | None) -> None:
        """The remainder, which is less than a vector."""
        code, known = self.kernel.code, constant_of(length)
        partial = [] if accumulators is None else accumulators.all
        if known is not None and known == constant_of(done):
            return
        start = self._from(done)
        if self.shape.lanes == 1 or (not self.shape.masks and not partial):

            def run(lower: SSAValue | None, upper: SSAValue) -> None:
                with code.loop(upper, "e", lower=lower, vectorize=False) as index:
                    vector_iteration(self.kernel, index, 1, None, partial, self.step)

            self._in_blocks((start, self.high), run, accumulators)
            return
        left = code.sub(length, done)
        if self.shape.registers > 2:
            self._single_registers(start, left)
            return
        with code.when(code.compare("sgt", left, 0)):
            self._iteration(start, self.shape.lanes, left, partial)

    def _single_registers(self, start: SSAValue, left: SSAValue) -> None:
        """The first `left` elements of an incomplete iteration, one register at a time, which is less code."""
        code, lanes = self.kernel.code, self.shape.lanes // self.shape.registers
        with code.loop(code.divide(code.add(left, lanes - 1), lanes), "rest") as number:
            done = code.mul(number, lanes)
            self._iteration(code.add(start, done), lanes, code.sub(left, done), ())

    def _iteration(self, start: SSAValue, step: int, left: SSAValue | None, accumulators: Sequence[SSAValue]) -> None:
        """The elements from `start` on: all of an iteration, or the first `left`."""
        if self.shuffled is None:
            if self.step.rows > 1 and not accumulators:
                emit_rows(self.kernel, self.step, start, step, left)
            else:
                vector_iteration(self.kernel, start, step, left, accumulators, self.step)
        else:
            self.shuffled.emit(self.step.bodies[0], start, left)


def constant_of(value: SSAValue) -> int | None:
    """The value of an index, if it is a constant."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None

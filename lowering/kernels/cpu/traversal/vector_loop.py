"""The vectorised loop over a row: iterations of whole vectors, and a remainder.

The last, incomplete vector is masked, or its elements are done one by one where the target has no masks. Long code is
emitted once: then every vector is masked. Reductions have iterations of several vectors with separate accumulators, to
hide the latency of additions.

If an iteration has vectors of several rows, everything is computed before anything is stored. Operands that rows have
in common are loaded once. No load waits for a store to another row at an address that is equal modulo 4 KiB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.body import Body
from lowering.kernels.cpu.emit.kernel import Kernel, non_temporal_from
from lowering.kernels.cpu.emit.prefetching import DistantPrefetch, PrefetchedRow
from lowering.kernels.cpu.emit.vectorization import vector_iteration
from lowering.kernels.cpu.structure.reduction import Reduction
from lowering.kernels.cpu.structure.stages import AffineAccess
from lowering.kernels.cpu.traversal.accumulators import MOST, Accumulators, accumulator, in_blocks
from lowering.kernels.cpu.traversal.shuffled_loads import ShuffledLoads
from tir_dialect.dims import constant, product
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import StoreOp


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


LONG = 64
"""Above so many ops per element a mask costs nothing in comparison, but two copies take twice as long to compile."""


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
        with code.when(code.compare("sle", length, MOST * self.shape.lanes * self.shape.unroll)) as branch:
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
        is_long = sum(len(body.stage.needed) for body in self.step.bodies) > LONG
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

        is_long = known is None or known // step > MOST
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
            in_blocks(self.kernel.code, bounds, run, accumulators.totals, constant(MOST))

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

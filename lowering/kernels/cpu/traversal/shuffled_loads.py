"""Loads such as `x[i // 3]` or `x[i mod 2, i // 2]`: contiguous loads, shuffled in registers.

If an axis occurs in quotients and remainders by constants, there is a group size such that each member reads
consecutive elements in consecutive groups: a run. Each run is loaded once, contiguously. An iteration covers as many
elements as are both whole vectors and whole groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import lcm
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from lowering.kernels.cpu.emit.body import Body
from lowering.kernels.cpu.emit.guards import unneeded
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.shuffles import shuffle
from lowering.kernels.cpu.emit.vectorization import AxisGroup, lane_count, vector_iteration
from lowering.kernels.cpu.structure.stages import Stage, linear_parts
from tir_dialect.analysis.dependence import Dependence
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim, FloorDivAtom, ModAtom, constant, symbol
from tir_dialect.ops.memory import AllocBufferOp, LoadOp
from tir_dialect.types import BufferType

Run: TypeAlias = tuple[Dim, tuple[tuple[SSAValue, Dim], ...]]
"""Where a run begins: an expression over the axes, and computed values with their strides."""

MAX_RUNS, MAX_GROUP = 8, 256


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
        if not 1 < members <= MAX_GROUP:
            return None
        runs = [self._run(load, dims, members, member) for member in range(members)]
        different = list(dict.fromkeys(runs))
        if None in runs or len(different) > MAX_RUNS:
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


MAX_VECTORS, MAX_OPS = 16, 128
"""Vectors of an iteration, and ops in them, at most."""


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
    return found if found.lanes > 1 and found.width <= MAX_VECTORS and code <= MAX_OPS else None

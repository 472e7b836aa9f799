"""Loads whose neighbours along an axis share elements, as `x[i // 3]`, or alternate between lines, as `x[i mod 2, i //
2]`.

Where an axis occurs in an address in quotients and remainders by constants, there is a group size such that, of
consecutive groups, each member reads consecutive elements: a line.

Vectors of loads that share elements: each line is loaded once, contiguously, and shuffled in registers.

An iteration covers as many elements as are both whole vectors and whole groups of members.
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
from lowering.kernels.cpu.emit.vectorization import Group, lane_count, vector_iteration
from lowering.kernels.cpu.structure.accesses import linear_parts
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.analysis.dependence import Dependence
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.dims import Dim, FloorDivAtom, ModAtom, constant, symbol
from tir_dialect.ops.memory import AllocBufferOp, LoadOp
from tir_dialect.types import BufferType

Line: TypeAlias = tuple[Dim, tuple[tuple[SSAValue, Dim], ...]]
"""Where the elements of one begin: an expression over the axes, and values of another kind with their strides."""

MOST_LINES, MOST_MEMBERS = 8, 256


@dataclass(frozen=True)
class SharedElements:
    """A load along an axis whose every group of members reads one element of each line."""

    load: LoadOp
    order: tuple[int, ...]
    """The line of each member."""

    @property
    def members(self) -> int:
        """How many neighbours are a group."""
        return len(self.order)

    @property
    def lines(self) -> tuple[int, ...]:
        """The first member of each line."""
        return tuple(self.order.index(line) for line in range(max(self.order) + 1))


def find_shared_elements(kernel: Kernel, stage: Stage, axis: int) -> tuple[SharedElements, ...]:
    """Such loads of a map with lanes along an axis, of those that are made in any case."""
    if axis not in stage.pinned:
        return ()
    finder = _Finder(kernel, stage, axis)
    found = [finder.find(op) for op in stage.body if isinstance(op, LoadOp)]
    return tuple(each for each in found if each is not None)


def same_in_all(stage: Stage, axis: int) -> frozenset[Operation]:
    """The ops of a stage whose results do not depend on an axis."""
    lane = stage.axes[axis].value
    varies = Dependence(lambda argument: argument is lane)
    return frozenset(op for op in stage.body if op.results and not varies.of(op.results[0]))


def index_ops(load: LoadOp) -> frozenset[Operation]:
    """The ops that a load's indices are computed by."""
    found: set[Operation] = set()
    pending = list(load.indices)
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and op not in found:
            found.add(op)
            pending += op.operands
    return frozenset(found)


def only_for_indices(stage: Stage, reads: Sequence[SharedElements]) -> frozenset[Operation]:
    """The ops that only compute indices of such loads."""
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

    def find(self, load: LoadOp) -> SharedElements | None:
        """The lines of a load; `None` if it has none."""
        if load in self.stage.wholes or load.buffer in self.written:
            return None
        dims = [self.space.dim_of(index) for index in load.indices]
        members = lcm(*(number for dim in dims if dim is not None for number in _divisors(dim, self.names[self.axis])))
        if not 1 < members <= MOST_MEMBERS:
            return None
        lines = [self._line(load, dims, members, member) for member in range(members)]
        different = list(dict.fromkeys(lines))
        if None in lines or len(different) > MOST_LINES:
            return None
        return SharedElements(load, tuple(different.index(line) for line in lines))

    def _line(self, load: LoadOp, dims: Sequence[Dim | None], members: int, member: int) -> Line | None:
        """Where a member of the first group reads; `None` if those of the next ones do not read the next elements."""
        first, stride, name = constant(0), constant(0), self.names[self.axis]
        computed: list[tuple[SSAValue, Dim]] = []
        for index, dim, step in zip(load.indices, dims, self.kernel.steps(load), strict=True):
            if dim is None:
                computed.append((index, step))
                continue
            parts = linear_parts(dim.substitute({name: members * symbol(name) + member}), [name])
            if parts is None:
                return None
            first, stride = first + parts[0] * step, stride + parts[1][0] * step
        if any(self.varies.of(index) for index, _ in computed):
            return None
        stride = self.kernel.settled.get(stride, stride)
        return (first, tuple(computed)) if stride.constant_value == 1 else None


def _divisors(dim: Dim, name: str) -> Iterator[int]:
    """The constants by which anything with a symbol is divided."""
    for atom in (atom for _, monomial in dim.terms for atom, _ in monomial if name in atom.symbols):
        if isinstance(atom, FloorDivAtom | ModAtom) and atom.denominator.constant_value is not None:
            yield atom.denominator.constant_value
            yield from _divisors(atom.numerator, name)


MOST_VECTORS, MOST_CODE = 16, 128
"""So many vectors, and ops in them, are written out at most."""


@dataclass
class SharedVectors:
    """The vectors of such loads of a map, for the iterations along an axis."""

    kernel: Kernel
    stage: Stage
    lanes: int
    reads: Sequence[SharedElements]
    skipped: frozenset[Operation]
    """The ops that no vector needs, since they only compute the indices of such loads."""

    @property
    def width(self) -> int:
        """How many vectors an iteration has."""
        # Of each of several lines a vector is read, not a number.
        return lcm(self.lanes, *(read.members * min(len(read.lines), 2) for read in self.reads)) // self.lanes

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
            # All lanes, so that LLVM keeps tiles in registers: it does not where a mask is used.
            values.update((result, code.load(tile, [code.add(lane, done)])) for result, tile in tiles.items())

        def step(index: SSAValue, sums: Sequence[SSAValue]) -> Sequence[SSAValue]:
            here = body.at_index(index)
            here.give(values, self.skipped)
            here.run(self.stage.body)
            return ()

        vector_iteration(self.kernel, start, self.lanes, left, (), step, before)

    def _tile(self, body: Body, read: SharedElements, start: SSAValue, left: SSAValue | None) -> SSAValue:
        """A buffer with what a load gives for an iteration, which LLVM keeps in registers."""
        code, dtype = self.kernel.code, read.load.buffer_type.dtype
        lines = [self._line(body, read, first, start, left) for first in read.lines]
        kind = BufferType([self.width * self.lanes], dtype, scope="local", align=64)
        tile = code.value(AllocBufferOp(kind), "tile")
        for number in range(self.width):
            code.store(self._mixed(read, lines, number), tile, [code.index(number * self.lanes)])
        return tile

    def _line(self, body: Body, read: SharedElements, first: int, start: SSAValue, left: SSAValue | None) -> SSAValue:
        """What an iteration reads of the line of a member; the last one only what its elements need."""
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

    def _elements(self, read: SharedElements) -> int:
        """How many elements of each line an iteration has."""
        return self.width * self.lanes // read.members

    def _mixed(self, read: SharedElements, lines: Sequence[SSAValue], number: int) -> SSAValue:
        """Vector `number` of an iteration: elements of the lines, interleaved."""
        code, lanes, count = self.kernel.code, self.lanes, self._elements(read)
        if count == 1:
            return lines[0]
        elements = [divmod(number * lanes + lane, read.members) for lane in range(lanes)]
        picks = [(group, read.order[member]) for group, member in elements]
        pair = lines[0], lines[min(1, len(lines) - 1)]
        value = shuffle(code, pair, [group + count * min(line, 1) for group, line in picks])
        for more in range(2, len(lines)):
            wide = shuffle(code, (lines[more], lines[more]), [group for group, _ in picks])
            value = shuffle(code, (value, wide), [lane + lanes * (picks[lane][1] == more) for lane in range(lanes)])
        return value


def find_shared_vectors(kernel: Kernel, stage: Stage, lane: Group) -> SharedVectors | None:
    """The vectors of a map with lanes along a group, if loads share elements there and iterations are not too long."""
    reads = find_shared_elements(kernel, stage, lane.last)
    if not reads:
        return None
    skipped = only_for_indices(stage, reads)
    lanes = lane_count(kernel, [stage], lane, skipped | same_in_all(stage, lane.last))
    found = SharedVectors(kernel, stage, lanes, reads, skipped)
    code = found.width * (len(stage.needed - skipped) + sum(len(read.lines) for read in reads))
    return found if found.lanes > 1 and found.width <= MOST_VECTORS and code <= MOST_CODE else None

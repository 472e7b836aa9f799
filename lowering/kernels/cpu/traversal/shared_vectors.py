"""Vectors of loads that share elements: each line is loaded once, contiguously, and shuffled in registers.

An iteration covers as many elements as are both whole vectors and whole groups of members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import lcm

from xdsl.ir import Operation, SSAValue

from lowering.kernels.cpu.emit.body import Body
from lowering.kernels.cpu.emit.groups import Group
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.transpose import shuffle
from lowering.kernels.cpu.emit.vectors import vector_iteration
from lowering.kernels.cpu.emit.widths import lane_count
from lowering.kernels.cpu.structure.stages import Stage
from lowering.kernels.cpu.traversal.shared_elements import (
    SharedElements,
    find_shared_elements,
    index_ops,
    only_for_indices,
    same_in_all,
)
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.types import BufferType

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

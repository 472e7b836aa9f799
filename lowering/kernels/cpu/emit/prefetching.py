"""Prefetching during the pass over a row: the operands of the next row, and the destination of this row's result.

A compute-bound pass over a row leaves the memory idle that other passes wait for. So does a reduction over a row that
has just been read, since it reads from L1.

Bands of a few rows of a matrix that are read side by side, and what is asked for of the next band meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.kernel import Kernel, buffer_type, streamed_from
from lowering.kernels.cpu.structure.stages import Access, Stage, is_heavy
from tir_dialect.dims import product
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.target import LINE_BYTES
from tir_dialect.types import IteratorKind

AHEAD_BYTES = 4096
"""Later lines are so far away."""

PART_OF_L2 = 32
"""Rows of light passes are asked for if they fit such a part of the second-level cache: longer ones would be gone."""


@dataclass(frozen=True)
class PrefetchedRow:
    """A row of memory that is prefetched line by line."""

    memory: SSAValue
    start: SSAValue
    """The index of its first element."""
    factor: SSAValue | None
    """0 where the row turns out to be too long, or not to come into a cache, so that its first line stands for all."""

    def prefetch(self, code: Code, start: SSAValue, count: int) -> None:
        """Asks for so many elements from `start` on."""
        line = max(1, LINE_BYTES // byte_size(buffer_type(self.memory).dtype))
        for further in range(0, count, line):
            index = code.add(start, further)
            index = index if self.factor is None else code.mul(index, self.factor)
            code.prefetch(self.memory, [code.add(self.start, index)], 1)


@dataclass(frozen=True)
class FarRow:
    """A row of memory of which later lines are asked for, if the buffer is larger than the caches.

    Prefetchers follow loads of parts of lines better than those of whole lines, which take up to a tenth longer.
    """

    memory: SSAValue
    start: SSAValue
    """The index of its first element."""
    is_far: SSAValue

    def prefetch(self, code: Code, start: SSAValue, count: int) -> None:
        """Asks for so many elements a page behind those from `start` on; the next row may begin there."""
        size = byte_size(buffer_type(self.memory).dtype)
        with code.when(self.is_far):
            for further in range(0, count, max(1, LINE_BYTES // size)):
                index = code.add(code.add(self.start, start), AHEAD_BYTES // size + further)
                code.prefetch(self.memory, [index], 2)


def far_rows(kernel: Kernel, stage: Stage, at: Mapping[int, SSAValue], lane: int) -> list[FarRow]:
    """What a stage loads along a lane for values of the other axes, where a vector is a whole line."""
    if kernel.target.vector_bits < 8 * LINE_BYTES:
        return []
    code, written, found = kernel.code, {store.buffer for store in stage.stores}, list[FarRow]()
    for load in stage.loads:
        access = kernel.access(stage, load)
        is_row = access.strides[lane].constant_value == 1 and not access.computed
        if is_row and load in stage.needed and load.buffer not in written and load.buffer not in kernel.rows:
            start = code.linear(access.base, [(value, access.strides[axis]) for axis, value in at.items()])
            found.append(FarRow(kernel.memory(load), start, is_far(kernel, load)))
    return found


def is_far(kernel: Kernel, load: LoadOp, part: int = 1) -> SSAValue:
    """Whether a buffer is larger than such a part of the last-level cache, so that it comes from memory."""
    room = kernel.target.l3_bytes // part // byte_size(load.buffer_type.dtype)
    return kernel.code.compare("sgt", kernel.code.dim(product(load.buffer_type.shape)), room)


@dataclass(frozen=True)
class PrefetchedAccess:
    """An access of another pass, contiguous along the row, to memory of the caller."""

    stage: Stage
    op: Access
    longest: int | None
    """So many elements are asked for at most."""

    def start(self, kernel: Kernel, at: Mapping[int, SSAValue], row: int) -> PrefetchedRow:
        """What is asked for: the row that is read next, or the one written now."""
        access, code = kernel.access(self.stage, self.op), kernel.code
        further = access.base if isinstance(self.op, StoreOp) else access.base + access.strides[row]
        start = code.linear(further, [(index, access.strides[n]) for n, index in at.items()])
        return PrefetchedRow(kernel.memory(self.op), start, self._factor(kernel))

    def _factor(self, kernel: Kernel) -> SSAValue | None:
        code, length = kernel.code, self.stage.extents[-1]
        least = streamed_from(kernel, self.stage, self.op) if isinstance(self.op, StoreOp) else None
        conditions: list[SSAValue] = []
        if self.longest is not None and length.constant_value is None:
            conditions.append(code.compare("sle", code.dim(length), self.longest))
        if least is not None:
            size = product(self.op.buffer_type.shape) * byte_size(self.op.buffer_type.dtype)
            conditions.append(code.compare("slt", code.dim(size), least))
        if not conditions:
            return None
        is_wanted = reduce(code.both, conditions)
        return code.select(is_wanted, code.index(1), code.index(0))


def prefetched_accesses(
    kernel: Kernel, sweeps: Sequence[Sequence[Stage]], depth: int
) -> Mapping[Stage, Sequence[PrefetchedAccess]]:
    """What one pass asks for, by its first stage: what the first pass reads and the last one writes.

    It is a pass that computes much; or one that reduces a row again, which is in the first-level cache.
    """
    passes = _whole_passes(sweeps, depth)
    heavy = [stages for stages in passes if any(computes_much(kernel, s, depth) for s in stages)]
    again = [stages for stages in passes[1:] if all(s.of_kind(IteratorKind.REDUCE) for s in stages)]
    if len(passes) < 2 or not (heavy or again):
        return {}
    asking, found = (heavy or again)[0], list[PrefetchedAccess]()
    for stages, kind in ((passes[0], False), (passes[-1], True)):
        if stages is not asking:
            accesses = [(s, op) for s in stages for op in s.accesses if isinstance(op, StoreOp) == kind]
            found += [
                PrefetchedAccess(*access, None if heavy else _longest_row(kernel, access[1])) for access in accesses
            ]
    return {asking[0]: [each for each in found if _is_row(kernel, each, depth)]}


def _whole_passes(sweeps: Sequence[Sequence[Stage]], depth: int) -> Sequence[Sequence[Stage]]:
    """The passes over all elements of a row, not what is done once for it, or with its first elements."""
    along = [stages for stages in sweeps if len(stages[0].axes) > depth]
    return [stages for stages in along if stages[0].extents == along[-1][0].extents]


def _longest_row(kernel: Kernel, op: Access) -> int:
    return kernel.target.l2_bytes // PART_OF_L2 // byte_size(op.buffer_type.dtype)


def computes_much(kernel: Kernel, stage: Stage, depth: int) -> bool:
    """Whether a stage computes much for each element, and not only for a row."""
    moving: set[SSAValue] = {axis.value for axis in stage.axes[depth:]}
    for op in stage.body:
        access = kernel.access(stage, op) if isinstance(op, LoadOp) else None
        if any(operand in moving for operand in op.operands) or (
            access and any(s.terms for s in access.strides[depth:])
        ):
            if is_heavy(op) and not (isinstance(op, arith.DivfOp) and op.rhs in kernel.divisors):
                return True
            moving.update(op.results)
    return False


def _is_row(kernel: Kernel, ahead: PrefetchedAccess, depth: int) -> bool:
    """Whether an access goes along a row of memory that is not the row's own, and every row has another."""
    access, length = kernel.access(ahead.stage, ahead.op), ahead.stage.extents[-1].constant_value
    along = len(ahead.stage.axes) == depth + 1 and access.strides[depth].constant_value == 1
    fits = ahead.longest is None or length is None or length <= ahead.longest
    own = ahead.op.buffer in kernel.rows
    return along and fits and not own and bool(access.strides[depth - 1].terms) and not access.computed


BAND = 8
"""Rows that are read side by side: as many streams as the machine follows."""

PART_OF_L3 = 2
"""A matrix that takes more than such a part of the last-level cache comes from memory, for the most part."""


@dataclass(frozen=True)
class NextBand:
    """The elements in the next band of rows, for matrices that come from memory.

    Prefetchers follow a row to the end of a page, and begin anew in the next band. What is asked for is in the
    second-level cache when its turn comes; what is asked for in the first one instead takes slots of loads.
    """

    kernel: Kernel
    stage: Stage
    loads: Sequence[LoadOp]
    rows: int
    lane: int
    """The axes along rows and lanes."""

    @staticmethod
    def of(kernel: Kernel, stage: Stage, data: Iterable[LoadOp], rows: int, lane: int) -> NextBand | None:
        """The data that lies along rows; `None` if none does, or a vector is not a whole line of the cache."""
        if kernel.target.vector_bits < 8 * LINE_BYTES:
            return None
        moving: list[LoadOp] = []
        for load in data:
            access = kernel.access(stage, load)
            along = access.strides[lane].constant_value == 1 and access.strides[rows].terms
            if along and not access.computed and load in stage.needed and load.buffer not in kernel.rows:
                moving.append(load)
        return NextBand(kernel, stage, moving, rows, lane) if moving else None

    def ask(self, at: Mapping[int, SSAValue], start: SSAValue, count: int) -> None:
        """Asks for so many elements from `start` on, in the row of this one's number in the next band."""
        code = self.kernel.code
        for load in self.loads:
            access, memory = self.kernel.access(self.stage, load), self.kernel.memory(load)
            line = max(1, LINE_BYTES // byte_size(load.buffer_type.dtype))
            with code.when(self._is_wanted(load)):
                base = access.base + BAND * access.strides[self.rows]
                there = code.linear(base, [(value, access.strides[axis]) for axis, value in at.items()])
                for further in range(0, count, line):
                    code.prefetch(memory, [code.add(code.add(there, start), further)], 2)

    def _is_wanted(self, load: LoadOp) -> SSAValue:
        """Whether the matrix comes from memory, and a band of it has room in the second-level cache."""
        code, size = self.kernel.code, byte_size(load.buffer_type.dtype)
        step = self.kernel.access(self.stage, load).strides[self.rows]
        fits = code.compare("sle", code.dim(step), self.kernel.target.l2_bytes // BAND // size)
        return code.both(is_far(self.kernel, load, PART_OF_L3), fits)

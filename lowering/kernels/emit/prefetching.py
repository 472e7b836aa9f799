"""Software prefetches during a pass over a row: operands of the next row, and the memory of this row's result.

A compute-bound pass over a row leaves the memory idle that other passes wait for. So does a reduction over a row that
has just been read, since it reads from L1.

A matrix that is read in narrow bands of rows prefetches the next band.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import BAND_ROWS, L3_PART, ROW_PREFETCH_BYTES, ROW_PREFETCH_L2_PART
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Kernel, buffer_type, non_temporal_from
from lowering.kernels.structure.stages import Access, Stage, is_heavy
from tir_dialect.dims import product
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.target import LINE_BYTES
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class PrefetchedRow:
    """A row of memory that is prefetched."""

    memory: SSAValue
    start: SSAValue
    """The index of its first element."""
    factor: SSAValue | None
    """0 if the row is too long at run time, or is written by non-temporal stores: then its first line stands
    for all.
    """

    def prefetch(self, code: Code, start: SSAValue, count: int) -> None:
        """Prefetches so many elements from `start` on."""
        cache_line = max(1, LINE_BYTES // byte_size(buffer_type(self.memory).dtype))
        for further in range(0, count, cache_line):
            index = code.add(start, further)
            index = index if self.factor is None else code.mul(index, self.factor)
            code.prefetch(self.memory, [code.add(self.start, index)], 1)


@dataclass(frozen=True)
class DistantPrefetch:
    """A row that is prefetched at a distance if its buffer is larger than the caches.

    Hardware prefetchers follow loads of parts of cache lines better than those of whole lines, which take up to a tenth
    longer.
    """

    memory: SSAValue
    start: SSAValue
    """The index of its first element."""
    exceeds_l3: SSAValue

    def prefetch(self, code: Code, start: SSAValue, count: int) -> None:
        """Prefetches so many elements a page after those from `start` on; the next row may begin there."""
        size = byte_size(buffer_type(self.memory).dtype)
        with code.when(self.exceeds_l3):
            for further in range(0, count, max(1, LINE_BYTES // size)):
                index = code.add(code.add(self.start, start), ROW_PREFETCH_BYTES // size + further)
                code.prefetch(self.memory, [index], 2)


def distant_prefetches(kernel: Kernel, stage: Stage, at: Mapping[int, SSAValue], lane: int) -> list[DistantPrefetch]:
    """The loads of a stage along the lanes, if a vector is a whole cache line."""
    if kernel.target.vector_bits < 8 * LINE_BYTES:
        return []
    code, written, found = kernel.code, {store.buffer for store in stage.stores}, list[DistantPrefetch]()
    for load in stage.loads:
        access = kernel.access(stage, load)
        is_row = access.strides[lane].constant_value == 1 and not access.computed
        if is_row and load in stage.needed and load.buffer not in written and load.buffer not in kernel.rows:
            start = code.linear(access.base, [(value, access.strides[axis]) for axis, value in at.items()])
            found.append(DistantPrefetch(kernel.memory(load), start, exceeds_l3(kernel, load)))
    return found


def exceeds_l3(kernel: Kernel, load: LoadOp, chunk: int = 1) -> SSAValue:
    """Whether a buffer is larger than such a fraction of L3, so that it comes from memory."""
    room = kernel.target.l3_bytes // chunk // byte_size(load.buffer_type.dtype)
    return kernel.code.compare("sgt", kernel.code.dim(product(load.buffer_type.shape)), room)


@dataclass(frozen=True)
class PrefetchedAccess:
    """An access of another pass, contiguous along the row, to memory of the caller."""

    stage: Stage
    op: Access
    longest: int | None
    """Rows with more elements are not prefetched."""

    def start(self, kernel: Kernel, at: Mapping[int, SSAValue], row: int) -> PrefetchedRow:
        """The prefetch of the row that is read next, or of the one written now."""
        access, code = kernel.access(self.stage, self.op), kernel.code
        further = access.base if isinstance(self.op, StoreOp) else access.base + access.strides[row]
        start = code.linear(further, [(index, access.strides[n]) for n, index in at.items()])
        return PrefetchedRow(kernel.memory(self.op), start, self._factor(kernel))

    def _factor(self, kernel: Kernel) -> SSAValue | None:
        code, length = kernel.code, self.stage.extents[-1]
        least = non_temporal_from(kernel, self.stage, self.op) if isinstance(self.op, StoreOp) else None
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


def find_prefetched_accesses(
    kernel: Kernel, passes: Sequence[Sequence[Stage]], depth: int
) -> Mapping[Stage, Sequence[PrefetchedAccess]]:
    """The prefetches of one pass, by its first stage: what the first pass reads and the last one writes.

    It is a compute-bound pass, or one that reduces a row once more, which is in L1.
    """
    # The passes over all elements of a row, not over a part of it.
    along = [stages for stages in passes if len(stages[0].axes) > depth]
    passes = [stages for stages in along if stages[0].extents == along[-1][0].extents]
    heavy = [stages for stages in passes if any(computes_much(kernel, s, depth) for s in stages)]
    again = [stages for stages in passes[1:] if all(s.of_kind(IteratorKind.REDUCE) for s in stages)]
    if len(passes) < 2 or not (heavy or again):
        return {}
    asking, found = (heavy or again)[0], list[PrefetchedAccess]()
    for stages, kind in ((passes[0], False), (passes[-1], True)):
        if stages is not asking:
            accesses = [(s, op) for s in stages for op in s.accesses if isinstance(op, StoreOp) == kind]
            found += [
                PrefetchedAccess(
                    *access,
                    None
                    if heavy
                    else (kernel.target.l2_bytes // ROW_PREFETCH_L2_PART // byte_size(access[1].buffer_type.dtype)),
                )
                for access in accesses
            ]
    return {asking[0]: [each for each in found if _is_row(kernel, each, depth)]}


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
    """Whether an access goes along a row of memory of the caller, which differs from row to row."""
    access, length = kernel.access(ahead.stage, ahead.op), ahead.stage.extents[-1].constant_value
    along = len(ahead.stage.axes) == depth + 1 and access.strides[depth].constant_value == 1
    fits = ahead.longest is None or length is None or length <= ahead.longest
    own = ahead.op.buffer in kernel.rows
    return along and fits and not own and bool(access.strides[depth - 1].terms) and not access.computed


@dataclass(frozen=True)
class NextBand:
    """Prefetches of the next band of rows, for matrices that come from memory.

    Hardware prefetchers follow a row to the end of a page, and begin anew in the next band. Prefetches go to L2: those
    to L1 would occupy slots of loads.
    """

    kernel: Kernel
    stage: Stage
    loads: Sequence[LoadOp]
    rows: int
    lane: int
    """The axes along rows and lanes."""

    @staticmethod
    def of(kernel: Kernel, stage: Stage, data: Iterable[LoadOp], rows: int, lane: int) -> NextBand | None:
        """The loads along rows; `None` if there are none, or a vector is no whole cache line."""
        if kernel.target.vector_bits < 8 * LINE_BYTES:
            return None
        moving: list[LoadOp] = []
        for load in data:
            access = kernel.access(stage, load)
            along = access.strides[lane].constant_value == 1 and access.strides[rows].terms
            if along and not access.computed and load in stage.needed and load.buffer not in kernel.rows:
                moving.append(load)
        return NextBand(kernel, stage, moving, rows, lane) if moving else None

    def prefetch(self, at: Mapping[int, SSAValue], start: SSAValue, count: int) -> None:
        """Prefetches so many elements from `start` on, in the row of the next band."""
        code = self.kernel.code
        for load in self.loads:
            access, memory = self.kernel.access(self.stage, load), self.kernel.memory(load)
            cache_line = max(1, LINE_BYTES // byte_size(load.buffer_type.dtype))
            with code.when(self._is_wanted(load)):
                base = access.base + BAND_ROWS * access.strides[self.rows]
                there = code.linear(base, [(value, access.strides[axis]) for axis, value in at.items()])
                for further in range(0, count, cache_line):
                    code.prefetch(memory, [code.add(code.add(there, start), further)], 2)

    def _is_wanted(self, load: LoadOp) -> SSAValue:
        """Whether the matrix comes from memory, and a band of it fits in L2."""
        code, size = self.kernel.code, byte_size(load.buffer_type.dtype)
        step = self.kernel.access(self.stage, load).strides[self.rows]
        fits = code.compare("sle", code.dim(step), self.kernel.target.l2_bytes // BAND_ROWS // size)
        return code.both(exceeds_l3(self.kernel, load, L3_PART), fits)

"""The function that is being emitted: its memory, and how its loops are partitioned among threads.

Results that are too large for the caches, which are written past them.

How much work a task should have, and how units of work are distributed over tasks.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IndexType, i32
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.routines import NO_ROUTINES, Routines
from lowering.kernels.cpu.structure.accesses import AffineAccess, affine_access
from lowering.kernels.cpu.structure.padding import Padding
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum, product
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.calls import CallExternOp
from tir_dialect.ops.flatten import FlattenOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.target import Target
from tir_dialect.types import BufferType, LoopKind, buffer_type, row_major_strides

ELEMENTS_PER_TASK = 32768
"""So many elements of simple arithmetic take some ten microseconds; to wake a thread for less does not pay."""


@dataclass(frozen=True)
class RowBlock:
    """Rows side by side, of which memory for a row holds all."""

    axis: int
    """That of the rows."""
    back: SSAValue
    """What leads from the number of a row to its row in the block: the first row's, negative."""


@dataclass
class Kernel:
    """What the emitters of one function share."""

    code: Code
    target: Target
    values: dict[SSAValue, SSAValue]
    """The values of the new function for those of the old one."""
    routines: Routines = NO_ROUTINES
    """Functions that its code may call."""
    divisors: frozenset[SSAValue] = frozenset()
    """Values that come of a reduction: a row may be multiplied by the reciprocal of one."""
    results: frozenset[SSAValue] = frozenset()
    """Parameters that are written and never read."""
    unread: frozenset[SSAValue] = frozenset()
    """Buffers that nobody reads from memory, since all their readers have the value at hand."""
    elided_padding: dict[SSAValue, Padding] = field(default_factory=dict[SSAValue, Padding])
    """Buffers that are not made, since who reads them reads what they would be made of."""
    padded: dict[SSAValue, Padding] = field(default_factory=dict[SSAValue, Padding])
    """Buffers that are made, of data with zeros around it."""
    flat: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    rows: dict[SSAValue, tuple[SSAValue, int]] = field(default_factory=dict[SSAValue, tuple[SSAValue, int]])
    """Memory for one row of a buffer, and how many leading dimensions it leaves out."""
    block: RowBlock | None = None
    """The rows that are computed side by side."""
    settled: Mapping[Dim, Dim] = field(default_factory=dict[Dim, Dim])
    """Values of strides that are known where code is being written."""

    def repeat(self, ops: Iterable[Operation]) -> None:
        """Makes constants and dimensions of the old function."""
        for op in ops:
            self.code.emit(op.clone(value_mapper=self.values))

    def make_flat(self, buffer: SSAValue) -> None:
        """Makes the view through which a buffer is accessed, before all loops."""
        self.flat[buffer] = self.code.value(FlattenOp(self.values[buffer]), buffer.name_hint)

    def allocate(self, alloc: AllocBufferOp) -> None:
        """Makes a buffer of the old function, whole."""
        self.values[alloc.buffer] = self.code.value(AllocBufferOp(alloc.buffer_type), alloc.buffer.name_hint)
        self.make_flat(alloc.buffer)

    def allocate_row(self, buffer: SSAValue, depth: int, rows: int = 1) -> None:
        """Makes memory for the part of a buffer that one row uses, or several side by side, chosen by `depth` axes."""
        kind, left_out = buffer_type(buffer), depth if rows == 1 else depth - 1
        size = product((*kind.shape[depth:], constant(rows)))
        scope = "local" if size.constant_value is not None else kind.scope
        alloc = AllocBufferOp(BufferType([size], kind.dtype, scope=scope, align=64))
        self.rows[buffer] = self.code.value(alloc, buffer.name_hint), left_out

    def memory(self, op: LoadOp | StoreOp) -> SSAValue:
        """The buffer of one dimension that an access of the old function is to."""
        row = self.rows.get(op.buffer)
        return self.flat[op.buffer] if row is None else row[0]

    def access(self, stage: Stage, op: LoadOp | StoreOp) -> AffineAccess:
        """Where in `memory` an access is."""
        found = self._access(stage, op)
        if not self.settled:
            return found
        return replace(found, strides=tuple(self.settled.get(stride, stride) for stride in found.strides))

    def _access(self, stage: Stage, op: LoadOp | StoreOp) -> AffineAccess:
        if op.buffer not in self.rows and op in stage.wholes:
            return stage.wholes[op]
        return affine_access(stage.accesses[op], self.steps(op), len(stage.axes))

    def steps(self, op: LoadOp | StoreOp) -> tuple[Dim, ...]:
        """How far apart neighbours along each dimension of an access are in `memory`."""
        kind, row = op.buffer_type, self.rows.get(op.buffer)
        if row is None:
            return tuple(kind.strides)
        return (*(constant(0),) * row[1], *row_major_strides(kind.shape[row[1] :]))

    def is_of_rows(self, stage: Stage, ops: Iterable[LoadOp | StoreOp]) -> bool:
        """Whether accesses that move with the rows of a block are to its own memory, which has all its rows.

        What a row that is not there leaves in it is read by nobody; and a mask would cost more than it saves, for what
        is stored under one has to reach the cache before it is loaded. Floats only: no number of these traps.
        """
        axis = -1 if self.block is None else self.block.axis
        return all(
            (op.buffer in self.rows and isinstance(op.buffer_type.dtype, AnyFloat))
            or not self.access(stage, op).strides[axis].terms
            for op in ops
        )

    def tasks(self, work: Dim) -> Dim:
        """How many threads have enough to do, of so many elements: at least one, at most all."""
        worthwhile = floordiv(work, constant(self.least_work(ELEMENTS_PER_TASK)))
        return maximum(minimum(worthwhile, constant(self.target.cores)), constant(1))

    def least_work(self, usual: int) -> int:
        """The least work for which a thread is woken."""
        return max(1, usual * self.target.schedule.task_percent // 100)

    @contextmanager
    def shared(self, extent: Dim, work: Dim, step: int = 1) -> Generator[tuple[SSAValue, SSAValue] | None]:
        """The part of the range `0 <= i < extent` that a thread has, from a multiple of `step`; or `None`."""
        code, tasks = self.code, self.tasks(work)
        if tasks.constant_value == 1 or extent.constant_value in (0, 1):
            yield None
            return
        height = step * maximum(ceildiv(extent, step * tasks), constant(1))
        with code.loop(code.dim(ceildiv(extent, height)), "task", kind=LoopKind.PARALLEL) as task:
            low = code.mul(task, code.dim(height))
            yield low, code.minimum(code.dim(extent), code.add(low, code.dim(height)))

    @contextmanager
    def shared_by_parts(
        self, outer: Dim | None, inner: Dim, work: Dim, step: int
    ) -> Generator[tuple[tuple[SSAValue, SSAValue] | None, tuple[SSAValue, SSAValue] | None]]:
        """The parts of two ranges, of loops inside each other, that a thread has: of the inner one, from a multiple of
        `step`, all but where there are fewer values of the outer one, if there is one, than threads.
        """
        code, tasks = self.code, self.tasks(work)
        enough = outer is None or (outer.constant_value or 0) >= self.target.cores
        if outer is None or tasks.constant_value == 1 or enough:
            with self.shared(inner if outer is None else outer, work, step if outer is None else 1) as part:
                yield (None, part) if outer is None else (part, None)
            return
        parts = ceildiv(tasks, maximum(outer, constant(1)))
        height, width = (
            maximum(ceildiv(outer, tasks), constant(1)),
            step * maximum(ceildiv(inner, step * parts), constant(1)),
        )
        across = ceildiv(inner, width)
        with code.loop(code.dim(ceildiv(outer, height) * across), "task", kind=LoopKind.PARALLEL) as task:
            first = code.mul(code.divide(task, code.dim(across)), code.dim(height))
            low = code.mul(code.remainder(task, code.dim(across)), code.dim(width))
            yield (
                (first, code.minimum(code.dim(outer), code.add(first, code.dim(height)))),
                (low, code.minimum(code.dim(inner), code.add(low, code.dim(width)))),
            )


PART_OF_L3 = 2
"""Of a result of such a part of the last-level cache, little is left there when it is read, for what is read and
written beside it; so it is faster to leave it out of all caches."""


def streamed_from(kernel: Kernel, stage: Stage, op: StoreOp) -> int | None:
    """From how many bytes of its result on a store goes past the caches; `None` if it never does.

    Its loops write line after line: a line that is left before it is full would go to memory in parts.
    """
    if op.buffer not in kernel.results or not kernel.target.arch.startswith("x86"):
        return None
    least, extents = kernel.target.l3_bytes // PART_OF_L3, [each.constant_value for each in op.buffer_type.shape]
    known = [extent for extent in extents if extent is not None]
    if len(known) == len(extents) and prod(known) * byte_size(op.buffer_type.dtype) < least:
        return None
    indices = stage.accesses[op]
    in_order = len(indices) == len(stage.axes) and all(index.is_axis(axis) for axis, index in enumerate(indices))
    return least if in_order else None


@contextmanager
def shared_units(code: Code, units: Dim, tasks: Dim, whole: bool = False) -> Generator[tuple[SSAValue, SSAValue]]:
    """What a task does with its units, which are the numbers from the first value to before the second.

    With `whole` there are no more tasks than threads: what lies side by side in memory stays together.
    """
    count = at_most_threads(code, tasks) if whole else code.dim(tasks)
    alone, all_units = tasks.constant_value == 1, code.dim(units)
    with code.loop(count, "task", kind=LoopKind.SERIAL if alone else LoopKind.PARALLEL) as task:
        lower = code.divide(code.mul(task, all_units), count)
        upper = code.divide(code.mul(code.add(task, 1), all_units), count)
        yield lower, upper


def at_most_threads(code: Code, tasks: Dim) -> SSAValue:
    """So many tasks, or as many as there are threads in a call."""
    if tasks.constant_value == 1:
        return code.dim(tasks)
    threads = code.emit(CallExternOp("relax_max_threads", (), i32)).results[0]
    return code.minimum(code.dim(tasks), code.value(arith.IndexCastOp(threads, IndexType())))

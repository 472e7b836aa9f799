"""The function that is being generated: its memory, the partition of its loops among threads, and the routines that it
shares with other kernels.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod

from typing_extensions import override
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, ModuleOp, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import SymbolTable

from lowering.kernels.cost_model import NON_TEMPORAL_L3_PART, TASK_ELEMENTS
from lowering.kernels.emit.code import Code
from lowering.kernels.structure.padding import Padding
from lowering.kernels.structure.stages import AffineAccess, Stage, affine_access
from lowering.locations import named_location
from tir_dialect.dims import Dim, ceildiv, constant, floordiv, maximum, minimum, product, symbol
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.blocks import FlattenOp
from tir_dialect.ops.calls import ROUTINE, CallExternOp, CallOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.target import Target
from tir_dialect.types import BufferType, LoopKind, buffer_type, row_major_strides


class Routine(ABC):
    """The definition of a routine. Equal values are one function, which only allocates `local` memory."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Its kind and shape, for readers."""

    @abstractmethod
    def sizes(self) -> Sequence[str]:
        """The names of its sizes, in the order of a call."""

    @abstractmethod
    def buffers(self) -> Mapping[str, BufferType]:
        """Its buffers, in the order of a call, with types over the sizes and the lengths of `flat` ones."""

    @abstractmethod
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        """Generates the body, for the values of its sizes and its buffers."""

    @property
    def name(self) -> str:
        """The label, and a digest of the whole definition."""
        return f"{self.label}.{hashlib.sha256(repr(self).encode()).hexdigest()[:12]}"

    def signature(self) -> tuple[Sequence[str], Mapping[str, BufferType]]:
        """The sizes, followed by the lengths of flat buffers, and the buffers."""
        buffers = self.buffers()
        return [*self.sizes(), *(_length(name) for name, kind in buffers.items() if kind.rank == 1)], buffers


def flat(dtype: AnyFloat | IntegerType, *names: str) -> dict[str, BufferType]:
    """One-dimensional buffers whose lengths are arguments of each call."""
    return {name: BufferType([symbol(_length(name))], dtype) for name in names}


def _length(name: str) -> str:
    return f"{name}_room"


@dataclass(frozen=True)
class Routines:
    """The routines of a module."""

    module: ModuleOp | None = None
    """The module of the routines; without one, they are inlined."""

    def call(self, code: Code, routine: Routine, sizes: Sequence[SSAValue], buffers: Sequence[SSAValue]) -> None:
        """Calls a routine, whose buffers have the types that it declares for these sizes."""
        shapes = [SSAValue.get(buffer, type=BufferType).type.shape for buffer in buffers]
        sizes = [*sizes, *(code.dim(shape[0]) for shape in shapes if len(shape) == 1)]
        if self.module is None:
            _write(routine, code, sizes, buffers)
            return
        name, outside = f"{ROUTINE}{routine.name}", _outside.get()
        if SymbolTable.lookup_symbol(self.module, name) is None:
            if outside is None:
                self.module.body.block.add_op(_function(routine).clone())
            else:
                outside.routines[name] = routine
        code.emit(CallOp(name, sizes, buffers, unchecked=True))


NO_ROUTINES = Routines()


@dataclass(frozen=True, eq=False)
class _Outside(Mapping[str, PrimFuncOp]):
    """Functions by name, each generated when it is looked up: a build may have its object already."""

    routines: dict[str, Routine] = field(default_factory=dict[str, Routine])

    @override
    def __getitem__(self, name: str) -> PrimFuncOp:
        return _function(self.routines[name])

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self.routines)

    @override
    def __len__(self) -> int:
        return len(self.routines)


_outside: ContextVar[_Outside | None] = ContextVar("outside", default=None)


@contextmanager
def outside_modules() -> Generator[Mapping[str, PrimFuncOp]]:
    """Modules that are scheduled meanwhile get no routines; yields them by name. They must not be changed.

    Copies of them would take longer than the rest of a schedule that calls some.
    """
    found = _Outside()
    token = _outside.set(found)
    try:
        yield found
    finally:
        _outside.reset(token)


def routines_for(function: PrimFuncOp) -> Routines:
    """The routines of the module that a function is in."""
    module = function.parent_op()
    return Routines(module if isinstance(module, ModuleOp) else None)


@lru_cache(maxsize=256)
def _function(routine: Routine) -> PrimFuncOp:
    sizes, buffers = routine.signature()
    parameters: list[tuple[str, Attribute]] = list(buffers.items())
    function = PrimFuncOp(f"{ROUTINE}{routine.name}", sizes, parameters, visibility="private")
    params = function.body.block.args
    function.location = named_location(function.sym_name.data)
    code = Code(function.body.block, function.location)
    _write(routine, code, params[: len(sizes)], params[len(sizes) :])
    return function


def _write(routine: Routine, code: Code, sizes: Sequence[SSAValue], buffers: Sequence[SSAValue]) -> None:
    names, kinds = routine.signature()
    routine.write(code, dict(zip(names, sizes, strict=True)), dict(zip(kinds, buffers, strict=True)))


@dataclass(frozen=True)
class RowBlock:
    """A block of adjacent rows, all of which are in the memory for rows."""

    axis: int
    """The axis of the rows."""
    offset: SSAValue
    """The negative index of the first row, which maps the index of a row to its index in the block."""


@dataclass
class Kernel:
    """What the generators of one function share."""

    code: Code
    target: Target
    values: dict[SSAValue, SSAValue]
    """The values of the new function for those of the old one."""
    routines: Routines = NO_ROUTINES
    """Functions that the code may call."""
    divisors: frozenset[SSAValue] = frozenset()
    """Results of reductions: rows may be multiplied by their reciprocals instead of divided."""
    results: frozenset[SSAValue] = frozenset()
    """Parameters that are written and never read."""
    unread: frozenset[SSAValue] = frozenset()
    """Buffers that need no memory, since all their readers have the value in registers."""
    elided_padding: dict[SSAValue, Padding] = field(default_factory=dict[SSAValue, Padding])
    """Padding stages that are not computed, since their readers read the data without padding."""
    padded: dict[SSAValue, Padding] = field(default_factory=dict[SSAValue, Padding])
    """Buffers of data with zeros around it."""
    flat: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    rows: dict[SSAValue, tuple[SSAValue, int]] = field(default_factory=dict[SSAValue, tuple[SSAValue, int]])
    """Memory for one row of a buffer, and how many leading dimensions it omits."""
    block: RowBlock | None = None
    """The block of rows that is computed, if there is one."""
    known_strides: Mapping[Dim, Dim] = field(default_factory=dict[Dim, Dim])
    """Values of strides that are known where code is being generated."""

    def clone_ops(self, ops: Iterable[Operation]) -> None:
        """Clones constants and dimensions of the old function."""
        for op in ops:
            self.code.emit(op.clone(value_mapper=self.values))

    def make_flat(self, buffer: SSAValue) -> None:
        """Creates the flat view through which a buffer is accessed, before all loops."""
        self.flat[buffer] = self.code.value(FlattenOp(self.values[buffer]), buffer.name_hint)

    def allocate(self, alloc: AllocBufferOp) -> None:
        """Allocates a buffer of the old function."""
        self.values[alloc.buffer] = self.code.value(AllocBufferOp(alloc.buffer_type), alloc.buffer.name_hint)
        self.make_flat(alloc.buffer)

    def allocate_row(self, buffer: SSAValue, depth: int, rows: int = 1) -> None:
        """Allocates memory for one row of a buffer, or for some rows, chosen by `depth` axes."""
        kind, left_out = buffer_type(buffer), depth if rows == 1 else depth - 1
        size = product((*kind.shape[depth:], constant(rows)))
        scope = "local" if size.constant_value is not None else kind.scope
        alloc = AllocBufferOp(BufferType([size], kind.dtype, scope=scope, align=64))
        self.rows[buffer] = self.code.value(alloc, buffer.name_hint), left_out

    def memory(self, op: LoadOp | StoreOp) -> SSAValue:
        """The flat buffer of an access of the old function."""
        row = self.rows.get(op.buffer)
        return self.flat[op.buffer] if row is None else row[0]

    def access(self, stage: Stage, op: LoadOp | StoreOp) -> AffineAccess:
        """The address of an access in `memory`."""
        if op.buffer not in self.rows and op in stage.wholes:
            found = stage.wholes[op]
        else:
            found = affine_access(stage.accesses[op], self.steps(op), len(stage.axes))
        if not self.known_strides:
            return found
        return replace(found, strides=tuple(self.known_strides.get(stride, stride) for stride in found.strides))

    def steps(self, op: LoadOp | StoreOp) -> tuple[Dim, ...]:
        """The strides of the dimensions of an access in `memory`."""
        kind, row = op.buffer_type, self.rows.get(op.buffer)
        if row is None:
            return tuple(kind.strides)
        return (*(constant(0),) * row[1], *row_major_strides(kind.shape[row[1] :]))

    def is_of_rows(self, stage: Stage, ops: Iterable[LoadOp | StoreOp]) -> bool:
        """Whether accesses that move with the rows of a block are to its own memory, which has room for all rows.

        Then lanes without a row need no mask. A mask would cost more than it saves, since a masked store is not
        forwarded to a load. Floats only: their arithmetic does not trap.
        """
        axis = -1 if self.block is None else self.block.axis
        return all(
            (op.buffer in self.rows and isinstance(op.buffer_type.dtype, AnyFloat))
            or not self.access(stage, op).strides[axis].terms
            for op in ops
        )

    def tasks(self, work: Dim) -> Dim:
        """How many threads have enough work of so many elements: at least one, at most all."""
        worthwhile = floordiv(work, constant(self.least_work(TASK_ELEMENTS)))
        return maximum(minimum(worthwhile, constant(self.target.cores)), constant(1))

    def least_work(self, usual: int) -> int:
        """The least work for which a thread is woken."""
        return max(1, usual * self.target.schedule.task_percent // 100)

    @contextmanager
    def partition(self, extent: Dim, work: Dim, step: int = 1) -> Generator[tuple[SSAValue, SSAValue] | None]:
        """Partitions the range `0 <= i < extent` among threads, in multiples of `step`; yields a thread's
        range, or `None` for all.
        """
        code, tasks = self.code, self.tasks(work)
        if tasks.constant_value == 1 or extent.constant_value in (0, 1):
            yield None
            return
        chunk = step * maximum(ceildiv(extent, step * tasks), constant(1))
        with code.loop(code.dim(ceildiv(extent, chunk)), "task", kind=LoopKind.PARALLEL) as task:
            low = code.mul(task, code.dim(chunk))
            yield low, code.minimum(code.dim(extent), code.add(low, code.dim(chunk)))

    @contextmanager
    def partition_2d(
        self, outer: Dim | None, inner: Dim, work: Dim, step: int
    ) -> Generator[tuple[tuple[SSAValue, SSAValue] | None, tuple[SSAValue, SSAValue] | None]]:
        """Partitions two nested ranges among threads, the inner one in multiples of `step`. The inner range is
        split only if the outer one, if there is one, has fewer iterations than there are threads.
        """
        code, tasks = self.code, self.tasks(work)
        enough = outer is None or (outer.constant_value or 0) >= self.target.cores
        if outer is None or tasks.constant_value == 1 or enough:
            with self.partition(inner if outer is None else outer, work, step if outer is None else 1) as k_slice:
                yield (None, k_slice) if outer is None else (k_slice, None)
            return
        chunks = ceildiv(tasks, maximum(outer, constant(1)))
        chunk, inner_chunk = (
            maximum(ceildiv(outer, tasks), constant(1)),
            step * maximum(ceildiv(inner, step * chunks), constant(1)),
        )
        across = ceildiv(inner, inner_chunk)
        with code.loop(code.dim(ceildiv(outer, chunk) * across), "task", kind=LoopKind.PARALLEL) as task:
            first = code.mul(code.divide(task, code.dim(across)), code.dim(chunk))
            low = code.mul(code.remainder(task, code.dim(across)), code.dim(inner_chunk))
            yield (
                (first, code.minimum(code.dim(outer), code.add(first, code.dim(chunk)))),
                (low, code.minimum(code.dim(inner), code.add(low, code.dim(inner_chunk)))),
            )


def non_temporal_from(kernel: Kernel, stage: Stage, op: StoreOp) -> int | None:
    """The size of its result, in bytes, from which on a store is non-temporal; `None` if it never is.

    The loops have to write whole cache lines in order: incomplete lines would go to memory in several writes.
    """
    if op.buffer not in kernel.results or not kernel.target.arch.startswith("x86"):
        return None
    least, extents = (
        kernel.target.l3_bytes // NON_TEMPORAL_L3_PART,
        [each.constant_value for each in op.buffer_type.shape],
    )
    known = [extent for extent in extents if extent is not None]
    if len(known) == len(extents) and prod(known) * byte_size(op.buffer_type.dtype) < least:
        return None
    indices = stage.accesses[op]
    in_order = len(indices) == len(stage.axes) and all(index.is_axis(axis) for axis, index in enumerate(indices))
    return least if in_order else None


@contextmanager
def shared_units(code: Code, units: Dim, tasks: Dim, whole: bool = False) -> Generator[tuple[SSAValue, SSAValue]]:
    """Partitions work units among tasks; yields the range of units of a task.

    With `whole` there are no more tasks than threads, so that adjacent memory stays with one thread.
    """
    count = at_most_threads(code, tasks) if whole else code.dim(tasks)
    alone, all_units = tasks.constant_value == 1, code.dim(units)
    with code.loop(count, "task", kind=LoopKind.SERIAL if alone else LoopKind.PARALLEL) as task:
        lower = code.divide(code.mul(task, all_units), count)
        upper = code.divide(code.mul(code.add(task, 1), all_units), count)
        yield lower, upper


def at_most_threads(code: Code, tasks: Dim) -> SSAValue:
    """The number of tasks, limited by the number of threads in a call."""
    if tasks.constant_value == 1:
        return code.dim(tasks)
    threads = code.emit(CallExternOp("relax_max_threads", (), i32)).results[0]
    return code.minimum(code.dim(tasks), code.value(arith.IndexCastOp(threads, IndexType())))

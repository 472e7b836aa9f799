"""The regions of buffers that a block reads and writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, VectorType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from tir_dialect.analysis.index_space import IndexSpace, Variable, extremes
from tir_dialect.analysis.structure import is_defined_inside, root_buffer
from tir_dialect.dims import Dim, constant, maximum, minimum
from tir_dialect.ops.blocks import BlockOp, BufferViewOp, MatchBufferOp, ReadsOp, RegionOp, WritesOp
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class AxisRange:
    """The indices `lower <= index < lower + extent` of one dimension."""

    lower: Dim
    extent: Dim

    def __str__(self) -> str:
        return str(self.lower) if self.extent.constant_value == 1 else f"{self.lower} to {self.lower + self.extent}"


@dataclass(frozen=True)
class Region:
    """A box of elements of a buffer; it may reach outside where accesses are guarded."""

    buffer: SSAValue
    axes: tuple[AxisRange, ...]

    def __str__(self) -> str:
        return f"%{self.buffer.name_hint or ''}[{', '.join(map(str, self.axes))}]"


@dataclass(frozen=True)
class BlockRegions:
    """What a block touches, one region per buffer, in order of first access.

    The ends are expressions over the symbols of the function and those that stand for the iterators of the block, and
    of blocks around it; `iterators` has the symbol of each iterator of the block, and `space` knows all of them.
    """

    reads: tuple[Region, ...]
    writes: tuple[Region, ...]
    iterators: Mapping[BlockArgument, Dim]
    space: IndexSpace


def block_regions(block: BlockOp) -> BlockRegions:
    """The regions that `block` declares, else the least boxes that contain what it accesses.

    An index that is no expression of iterators and loop variables stands for the whole dimension, and so does every
    dimension of a buffer that is passed to a call. Buffers that are allocated inside do not count, and in a block with
    `tir.init` neither do reads of what the block updates.
    """
    finder = _RegionFinder(block)
    iterators = {iterator.value: finder.space.variable(iterator.value).dim for iterator in block.iterators}
    reads, writes = finder.find()
    if block.init is not None:
        updated = {region.buffer for region in writes}
        reads = tuple(region for region in reads if region.buffer not in updated)
    declared_reads = finder.declared(ReadsOp)
    declared_writes = finder.declared(WritesOp)
    return BlockRegions(declared_reads or reads, declared_writes or writes, iterators, finder.space)


def tile_of(loop: ForOp) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """The regions that one round of a loop reads and writes, as expressions over its variable and those around it.

    They are the least boxes, as of a block.
    """
    return _RegionFinder(loop).find()


class _RegionFinder:
    def __init__(self, block: BlockOp | ForOp):
        self._block = block
        self.space = IndexSpace(block)
        for iterator in block.iterators if isinstance(block, BlockOp) else ():
            self.space.variable(iterator.value)

    def declared(self, kind: type[RegionOp]) -> tuple[Region, ...]:
        found: dict[SSAValue, Region] = {}
        for op in self._block.regions[0].block.ops:
            if isinstance(op, kind):
                self._add(found, op.buffer, self._region_axes(op, ()))
        return tuple(found.values())

    def find(self) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
        reads: dict[SSAValue, Region] = {}
        writes: dict[SSAValue, Region] = {}
        for op, loops in _with_loops(self.space, self._block, ()):
            if isinstance(op, LoadOp):
                self._add(reads, op.buffer, self._access_axes(op, op.lanes, loops), loops)
            elif isinstance(op, StoreOp):
                self._add(writes, op.buffer, self._access_axes(op, op.lanes, loops), loops)
            elif isinstance(op, CallOp | ForeignCallOp):
                for argument in op.arguments:
                    if isinstance(argument.type, BufferType):
                        whole = _whole(argument.type)
                        self._add(reads, argument, whole, loops)
                        self._add(writes, argument, whole, loops)
        return tuple(reads.values()), tuple(writes.values())

    def _add(
        self,
        found: dict[SSAValue, Region],
        buffer: SSAValue,
        axes: Sequence[AxisRange],
        loops: Sequence[Variable] = (),
    ) -> None:
        """Adds a region of `buffer`, or of the buffer that it is a view of, to those that were found."""
        while isinstance(buffer.owner, BufferViewOp):
            view = buffer.owner
            is_part = isinstance(view, MatchBufferOp)
            axes = self._through_view(view, axes, loops) if is_part else _whole(view.buffer_type)
            buffer = view.buffer
        if is_defined_inside(buffer, self._block):
            return
        before = found.get(buffer)
        if before is not None:
            axes = [self._join(one, other) for one, other in zip(before.axes, axes, strict=True)]
        found[buffer] = Region(buffer, tuple(axes))

    def _access_axes(self, op: LoadOp | StoreOp, lanes: int | None, loops: Sequence[Variable]) -> list[AxisRange]:
        contiguous = lanes is not None and all(isinstance(index.type, IndexType) for index in op.indices)
        axes: list[AxisRange] = []
        for axis, (index, dim) in enumerate(zip(op.indices, op.buffer_type.shape, strict=True)):
            length = lanes if contiguous and lanes is not None and axis == len(op.indices) - 1 else 1
            axes.append(self._axis(index, length, dim, loops))
        return axes

    def _axis(self, index: SSAValue, length: int, whole: Dim, loops: Sequence[Variable]) -> AxisRange:
        dim = None if isa(index.type, VectorType) else self.space.dim_of(index)
        found = None if dim is None else extremes(dim, loops, self.space.prover)
        if found is None:
            return AxisRange(constant(0), whole)
        prover = self.space.prover
        return AxisRange(prover.simplify(found.low), prover.simplify(found.high - found.low + length))

    def _region_axes(self, op: RegionOp, loops: Sequence[Variable]) -> list[AxisRange]:
        axes: list[AxisRange] = []
        for axis, dim in zip(op.axes, op.buffer_type.shape, strict=True):
            start = self._axis(axis.lower, 1, dim, loops)
            if axis.upper is not None:
                stop = self._axis(axis.upper, 0, dim, loops)
                start = AxisRange(start.lower, stop.lower + stop.extent - start.lower)
            axes.append(start)
        return axes

    def _through_view(
        self, view: MatchBufferOp, axes: Sequence[AxisRange], loops: Sequence[Variable]
    ) -> list[AxisRange]:
        """The region of the source of `view` that a region of the view is."""
        inner = iter(axes)
        moved: list[AxisRange] = []
        for axis, dim in zip(view.axes, view.buffer_type.shape, strict=True):
            start = self._axis(axis.lower, 1, dim, loops)
            if axis.upper is not None:
                part = next(inner)
                start = AxisRange(start.lower + part.lower, start.extent - 1 + part.extent)
            moved.append(start)
        return moved

    def _join(self, one: AxisRange, other: AxisRange) -> AxisRange:
        if one == other:
            return one
        prover = self.space.prover
        lower = prover.simplify(minimum(one.lower, other.lower))
        upper = prover.simplify(maximum(one.lower + one.extent, other.lower + other.extent))
        return AxisRange(lower, prover.simplify(upper - lower))


def _whole(buffer: BufferType) -> list[AxisRange]:
    return [AxisRange(constant(0), dim) for dim in buffer.shape]


def _with_loops(
    space: IndexSpace, op: Operation, loops: tuple[Variable, ...]
) -> Iterator[tuple[Operation, tuple[Variable, ...]]]:
    """The ops inside of `op`, each with the variables of the loops around it in `op`, outermost first."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield inner, loops
                around = (*loops, space.variable(inner.induction_var)) if isinstance(inner, ForOp) else loops
                yield from _with_loops(space, inner, around)


def written_buffers(root: Operation) -> set[SSAValue]:
    """The parameters and allocations that ops inside of `root` may write."""
    return {buffer for op in root.walk() for buffer, is_store in _touched(op) if is_store}


def touched_buffers(root: Operation) -> set[SSAValue]:
    """The parameters and allocations that ops inside of `root` may read or write."""
    return {buffer for op in root.walk() for buffer, _ in _touched(op)}


def read_buffers(root: Operation) -> set[SSAValue]:
    """The parameters and allocations that ops inside of `root` may read."""
    return {buffer for op in root.walk() for buffer, is_store in _touched(op) if not is_store}


def _touched(op: Operation) -> Iterator[tuple[SSAValue, bool]]:
    if isinstance(op, LoadOp | StoreOp):
        yield root_buffer(op.buffer), isinstance(op, StoreOp)
    elif isinstance(op, ReadsOp | WritesOp):
        yield root_buffer(op.buffer), isinstance(op, WritesOp)
    elif isinstance(op, CallOp | ForeignCallOp):
        for argument in op.arguments:
            if isinstance(argument.type, BufferType):
                yield root_buffer(argument), False
                yield root_buffer(argument), True

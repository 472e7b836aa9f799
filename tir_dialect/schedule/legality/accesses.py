"""The accesses of the ops inside an op: buffers and index ranges, as expressions of loop variables; and dependences
between the iterations of a loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from tir_dialect.analysis.dependence import Axis, determine
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import is_defined_inside, root_buffer
from tir_dialect.dims import constant
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.ops.regions import BufferViewOp, MatchBufferOp, ReadsOp, RegionOp, WritesOp
from tir_dialect.types import BufferType


@dataclass(frozen=True)
class Access:
    """An access of `op` to a parameter or allocation, with views resolved."""

    op: Operation
    buffer: SSAValue
    is_store: bool
    axes: tuple[Axis, ...]


def accesses_in(space: IndexSpace, root: Operation) -> list[Access]:
    """All accesses of `root` and the ops inside; for a block that declares what it reads, or writes, these regions."""
    return list(_visit(space, root))


def _visit(space: IndexSpace, op: Operation) -> Iterator[Access]:
    if isinstance(op, BlockOp):
        declared = [inner for inner in op.body.block.ops if isinstance(inner, ReadsOp | WritesOp)]
        for inner in declared:
            yield _through_views(space, inner, inner.buffer, isinstance(inner, WritesOp), _region(space, inner))
        said = {isinstance(inner, WritesOp) for inner in declared}
        yield from (access for access in _inside(space, op) if access.is_store not in said)
        return
    yield from _own(space, op)
    yield from _inside(space, op)


def _inside(space: IndexSpace, op: Operation) -> Iterator[Access]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from _visit(space, inner)


def _own(space: IndexSpace, op: Operation) -> Iterator[Access]:
    if isinstance(op, LoadOp | StoreOp):
        yield _through_views(space, op, op.buffer, isinstance(op, StoreOp), _element(space, op))
    elif isinstance(op, CallOp | ForeignCallOp):
        for argument in op.arguments:
            if isinstance(argument.type, BufferType):
                whole = [Axis(None)] * argument.type.rank
                yield _through_views(space, op, argument, False, whole)
                yield _through_views(space, op, argument, True, whole)


def _element(space: IndexSpace, op: LoadOp | StoreOp) -> list[Axis]:
    axes = [Axis(space.dim_of(index) if isinstance(index.type, IndexType) else None) for index in op.indices]
    if op.lanes is not None and all(isinstance(index.type, IndexType) for index in op.indices):
        axes[-1] = Axis(axes[-1].low, constant(op.lanes))
    return axes


def _region(space: IndexSpace, op: RegionOp) -> list[Axis]:
    axes: list[Axis] = []
    for axis in op.axes:
        low = space.dim_of(axis.lower)
        high = None if axis.upper is None else space.dim_of(axis.upper)
        if axis.upper is None:
            axes.append(Axis(low))
        else:
            axes.append(Axis(None) if low is None or high is None else Axis(low, high - low))
    return axes


def _through_views(space: IndexSpace, op: Operation, buffer: SSAValue, is_store: bool, axes: list[Axis]) -> Access:
    while isinstance(buffer.owner, BufferViewOp):
        if not isinstance(buffer.owner, MatchBufferOp):
            buffer, axes = buffer.owner.buffer, [Axis(None)] * buffer.owner.buffer_type.rank
            continue
        inner = iter(axes)
        outer: list[Axis] = []
        for axis in buffer.owner.axes:
            start = space.dim_of(axis.lower)
            part = Axis(constant(0)) if axis.upper is None else next(inner)
            outer.append(Axis(None if start is None or part.low is None else start + part.low, part.width))
        buffer, axes = buffer.owner.buffer, outer
    return Access(op, root_buffer(buffer), is_store, tuple(axes))


def described(buffer: SSAValue) -> str:
    """A buffer in messages."""
    return f'buffer "{buffer.name_hint}"' if buffer.name_hint else "a buffer"


def conflicting_buffers(space: IndexSpace, loop: ForOp) -> list[SSAValue]:
    """The buffers with an element that one iteration may write and another may read or write.

    Buffers that are allocated inside the loop are each iteration's own. A buffer is free of conflicts if its indices,
    the same in all accesses, determine the loop variable.
    """
    by_buffer: dict[SSAValue, list[Access]] = {}
    for access in accesses_in(space, loop):
        if not is_defined_inside(access.buffer, loop):
            by_buffer.setdefault(access.buffer, []).append(access)
    variable = space.variable(loop.induction_var).dim
    names = loop_names(space, loop)
    found: list[SSAValue] = []
    for buffer, accesses in by_buffer.items():
        rows = list(zip(*{access.axes for access in accesses}, strict=True))
        if any(access.is_store for access in accesses) and not determine(space, rows, variable, names):
            found.append(buffer)
    return found


def loop_names(space: IndexSpace, loop: ForOp) -> set[str]:
    """The symbols of a loop and the loops inside of it."""
    loops = (op for op in loop.walk() if isinstance(op, ForOp))
    return {space.variable(op.induction_var).dim.as_symbol or "" for op in loops}

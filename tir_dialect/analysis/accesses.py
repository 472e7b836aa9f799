"""Accesses, views and block iterators that are provably out of bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import FileLineColLoc, IndexType
from xdsl.ir import BlockArgument, Operation, SSAValue

from tir_dialect.analysis.index_space import IndexSpace, extremes
from tir_dialect.analysis.structure import block_of, loop_of
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.blocks import BlockOp, MatchBufferOp, ViewOp
from tir_dialect.ops.control_flow import ForOp, IfOp, WhileOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp

ZERO = constant(0)
ONE = constant(1)


def wrong_access(func: PrimFuncOp) -> str | None:
    """A description of an access that is out of bounds, or an iterator out of its domain, whenever no loop is empty.

    Where the length of a loop depends on those around it, as in a triangle, it must be known to be at least 1 in all of
    them. Only ops that are executed unconditionally are considered, and only indices that are expressions of loop
    variables; `None` if nothing is provably wrong. The ops need not have been verified.
    """
    space = IndexSpace(func)
    for op, loops in unconditional(space, func, ()):
        for what, reach in reaches(space, op):
            found = leaves(space, reach, loops)
            if found is not None and not any(
                _is_partly_empty(space, loops[: index + 1]) for index in range(len(loops))
            ):
                return f"{what} {found}{index_of(op)}"
    return None


class Reach(NamedTuple):
    """The elements `start <= i < start + width` of a dimension, of which those from `first` to `end` may be used."""

    start: SSAValue
    width: Dim
    end: Dim
    first: Dim = ZERO
    limit: SSAValue | None = None
    """The value of `end`, where that need not be a dimension over the symbols of the function."""


def reaches(space: IndexSpace, op: Operation) -> Iterator[tuple[str, Reach]]:
    """The elements that an op accesses when it is executed, with a description; nothing for an op with a predicate."""
    match op:
        case LoadOp() | StoreOp() if op.mask is None:
            ends = zip(op.indices, widths(op), op.buffer_type.shape, strict=False)
            for axis, (index, width, extent) in enumerate(ends):
                yield f"a '{op.name}' whose index {axis} of {name_of(op.buffer)}", Reach(index, width, extent)
        case MatchBufferOp():
            lengths = iter(op.view_type.shape)
            for axis, (part, extent) in enumerate(zip(op.axes, op.buffer_type.shape, strict=False)):
                width = ONE if part.upper is None else next(lengths, ONE)
                yield f"a '{op.name}' whose range {axis} of {name_of(op.buffer)}", Reach(part.lower, width, extent)
        case ViewOp() if op.start is not None:
            yield f"a '{op.name}' of {name_of(op.buffer)}, which", Reach(op.start, op.view_type.span, op.room)
        case BlockOp() if op.condition is None:
            for axis, (index, limit) in enumerate(zip(op.bindings, op.extents, strict=False)):
                if (extent := space.dim_of(limit)) is not None:
                    what = f"a '{op.name}' \"{op.block_name.data}\" whose binding {axis}"
                    yield what, Reach(index, ONE, extent, limit=limit)
        case _:
            return


def widths(op: LoadOp | StoreOp) -> Iterator[Dim]:
    """The number of elements that an access covers in each dimension: a vector extends along the last one."""
    in_order = op.lanes is not None and all(isinstance(index.type, IndexType) for index in op.indices)
    for axis in range(len(op.indices)):
        yield constant(op.lanes or 1) if in_order and axis == len(op.indices) - 1 else ONE


def unconditional(
    space: IndexSpace, op: Operation, loops: tuple[ForOp, ...]
) -> Iterator[tuple[Operation, tuple[ForOp, ...]]]:
    """The ops in `op` that run in every iteration of the loops around them, with these loops, outermost first."""
    if isinstance(op, IfOp | WhileOp) or (isinstance(op, BlockOp) and op.condition is not None):
        return
    if isinstance(op, ForOp):
        if space.variable(op.induction_var).is_empty:
            return
        loops = (*loops, op)
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield inner, loops
                yield from unconditional(space, inner, loops)


def _is_partly_empty(space: IndexSpace, nest: Sequence[ForOp]) -> bool:
    """Whether the length of the last loop depends on the others, and is not known to be at least 1 in all of them."""
    *outer, variable = (space.variable(loop.induction_var) for loop in nest)
    if variable.lower is None or variable.upper is None:
        return False
    length = variable.upper - variable.lower
    if length.symbols.isdisjoint(each.dim.as_symbol or "" for each in outer):
        return False
    found = extremes(length, outer, space.prover)
    return found is None or space.less_equal(1, found.low) is not True


def leaves(space: IndexSpace, reach: Reach, loops: Sequence[ForOp]) -> str | None:
    """How indices violate `first <= i < end`; `None` if they do not provably do so whenever no loop is empty."""
    start, width, end, first, _ = reach
    if not isinstance(start.type, IndexType) or runs_over(space, reach):
        return None
    dim = space.dim_of(start)
    if dim is None:
        return None
    found = extremes(dim, [space.variable(loop.induction_var) for loop in loops], space.prover)
    if found is None or not found.exact:
        return None
    if space.less_equal(first, found.low) is False:
        return f"reaches {found.low}, expected at least {first}"
    high = found.high + width - 1
    return f"reaches {high}, expected less than {end}" if space.less_equal(high + 1, end) is False else None


def runs_over(space: IndexSpace, reach: Reach) -> bool:
    """Whether the index is a variable whose range is exactly the valid one, so that no proof is needed."""
    index = reach.start
    if reach.width is not ONE or reach.first is not ZERO:
        return False
    loop, block = loop_of(index), block_of(index)
    if loop is not None:
        return loop.lower is None and space.dim_of(loop.upper) is reach.end
    if block is None or not isinstance(index, BlockArgument):
        return False
    return space.dim_of(block.extents[index.index]) is reach.end


def name_of(value: SSAValue) -> str:
    """The name of a buffer for messages."""
    return f"%{value.name_hint}" if value.name_hint else "a buffer"


def index_of(op: Operation) -> str:
    """The source line of an op, if it is known, for messages about the function."""
    return f" (line {op.location.line.data})" if isinstance(op.location, FileLineColLoc) else ""

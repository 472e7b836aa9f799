"""Accesses and iterators that certainly leave their ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import FileLineColLoc, IndexType
from xdsl.ir import BlockArgument, Operation, SSAValue

from tir_dialect.analysis.extremes import Extremes, extremes
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import block_of, loop_of
from tir_dialect.dims import Dim
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import IfOp, WhileOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import LoadOp, StoreOp


def wrong_access(func: PrimFuncOp) -> str | None:
    """An access that leaves its buffer, or an iterator its domain, whenever no loop is empty: which one, and how.

    Only ops that run unconditionally count, and only indices that are expressions of loop variables; `None` if nothing
    can be shown to be wrong. The ops need not have been verified.
    """
    space = IndexSpace(func)
    for op, loops in _unconditional(space, func, ()):
        if isinstance(op, LoadOp | StoreOp) and op.mask is None:
            pairs = zip(op.indices, op.buffer_type.shape, strict=False)
            what = f"a '{op.name}' whose index {{}} of {_name(op.buffer)}"
        elif isinstance(op, BlockOp) and op.condition is None:
            pairs = zip(op.bindings, map(space.dim_of, op.extents), strict=False)
            what = f"a '{op.name}' \"{op.block_name.data}\" whose binding {{}}"
        else:
            continue
        for axis, (index, extent) in enumerate(pairs):
            found = None if extent is None else _leaves(space, index, extent, loops)
            if found is not None:
                return f"{what.format(axis)} {found}{_place(op)}"
    return None


def _unconditional(
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
                yield from _unconditional(space, inner, loops)


def _leaves(space: IndexSpace, index: SSAValue, extent: Dim, loops: Sequence[ForOp]) -> str | None:
    """How an index leaves `0 <= index < extent`; `None` if it cannot be shown to."""
    if not isinstance(index.type, IndexType) or _runs_over(space, index, extent):
        return None
    dim = space.dim_of(index)
    if dim is None:
        return None
    found = extremes(dim, [space.variable(loop.induction_var) for loop in loops], space.prover)
    if found is None or not found.exact:
        return None
    return _explain(space, found, extent)


def _explain(space: IndexSpace, found: Extremes, extent: Dim) -> str | None:
    if space.less_equal(0, found.low) is False:
        return f"reaches {found.low}, expected at least 0"
    if space.less_equal(found.high + 1, extent) is False:
        return f"reaches {found.high}, expected less than {extent}"
    return None


def _runs_over(space: IndexSpace, index: SSAValue, extent: Dim) -> bool:
    """Whether the index is a variable of exactly this range, which needs no proof."""
    loop, block = loop_of(index), block_of(index)
    if loop is not None:
        return loop.lower is None and space.dim_of(loop.upper) is extent
    if block is None or not isinstance(index, BlockArgument):
        return False
    return space.dim_of(block.extents[index.index]) is extent


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "a buffer"


def _place(op: Operation) -> str:
    """Where the op is in its file, if that is known; an error of the function cannot point at it otherwise."""
    return f" (line {op.location.line.data})" if isinstance(op.location, FileLineColLoc) else ""

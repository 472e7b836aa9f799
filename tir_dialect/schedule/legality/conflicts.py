"""Dependences between the iterations of a loop."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tir_dialect.analysis.dependence import determine
from tir_dialect.analysis.index_space import IndexSpace
from tir_dialect.analysis.structure import is_inside
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.legality.accesses import Access, accesses_in


def conflicting_buffers(space: IndexSpace, loop: ForOp) -> list[SSAValue]:
    """The buffers with an element that one iteration may write and another may read or write.

    Buffers that are allocated inside the loop are each iteration's own. A buffer is free of conflicts if its indices,
    the same in all accesses, determine the loop variable.
    """
    by_buffer: dict[SSAValue, list[Access]] = {}
    for access in accesses_in(space, loop):
        if not is_inside(access.buffer, loop):
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

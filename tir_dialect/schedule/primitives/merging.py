"""Merging consecutive loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.determination import Axis, determine
from tir_dialect.analysis.structure import ancestors
from tir_dialect.dims import Dim
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule.handles import Loop, is_inside
from tir_dialect.schedule.legality.accesses import Access, accesses_in
from tir_dialect.schedule.legality.conflicts import loop_names
from tir_dialect.schedule.primitives.splitting import check_serial
from tir_dialect.schedule.rewriting.edits import move_ops
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.statements import is_index_op, statements


@primitive
def merge(self: ScheduleState, *loops: Loop) -> Loop:
    """Fuses consecutive loops of the same range into one loop that runs their bodies in turn.

    rewrite:
        for i in n: A(i)
        for i in n: B(i)
        -> for i in n: A(i); B(i)

    Of loops in different nests, those around them are merged, too: all that hold one of the loops and not the others.
    Returns the innermost loop that was made.

    Refuses:
    1. fewer than two loops, loops that are not serial, and loops with annotations;
    2. loops at different depths below what is around all of them, and loops around them that hold something else;
    3. loops that do not follow each other, in the order given;
    4. different lower bounds or extents;
    5. bodies that share elements of a buffer across iterations.
    """
    levels = _levels(self, loops)
    same: dict[str, Dim] = {}
    for level in levels:
        _check_neighbours(self, level, same, outermost=level is levels[0])
        same |= {self.symbol(op).as_symbol or "": self.symbol(level[0]) for op in level}
        _check_independent(self, level, same)
    for level in levels:
        _merge_level(level)
    return loops[0]


def _levels(self: ScheduleState, loops: Sequence[Loop]) -> list[list[ForOp]]:
    """The loops that become one, outermost first: those around the given ones that hold not all of them."""
    if len(loops) < 2:
        raise self.error(f"expected at least two loops, got {len(loops)}")
    paths = [_path(loop.op, [other.op for other in loops]) for loop in loops]
    for loop, path in zip(loops[1:], paths[1:], strict=True):
        if len(path) != len(paths[0]):
            raise self.error(
                f'loops "{loops[0].name}" and "{loop.name}" stand in {len(paths[0]) - 1} and {len(path) - 1} loops '
                "of their own"
            )
    for path in paths:
        _check_only_child(self, path)
    return [list(level) for level in zip(*paths, strict=True)]


def _path(loop: ForOp, loops: Sequence[ForOp]) -> list[ForOp]:
    """The loops around a loop that do not hold all of the loops, outermost first, and itself."""
    found = [loop]
    for op in ancestors(loop):
        if not isinstance(op, ForOp) or all(is_inside(other, op) for other in loops):
            break
        found.insert(0, op)
    return found


def _check_only_child(self: ScheduleState, path: Sequence[ForOp]) -> None:
    for outer, inner in pairwise(path):
        if any(op is not inner for op in statements(outer.body.block)):
            names = outer.induction_var.name_hint, inner.induction_var.name_hint
            raise self.error(f'loop "{names[0]}" holds more than loop "{names[1]}", so they cannot be merged together')


def _check_neighbours(self: ScheduleState, level: Sequence[ForOp], same: Mapping[str, Dim], *, outermost: bool) -> None:
    """Refuses loops that are no serial neighbours of one range, where outer loops have the `same` variables."""
    for op in level:
        check_serial(self, self.loop(op))
        if op.annotations is not None:
            names = ", ".join(f'"{name}"' for name in op.annotations.data)
            raise self.error(f'expected loops without annotations, got {names} of loop "{op.induction_var.name_hint}"')
    for one, other in pairwise(level):
        names = f'"{one.induction_var.name_hint}" and "{other.induction_var.name_hint}"'
        between = _between(one, other) if outermost else []
        if between is None or not all(isinstance(op, AllocBufferOp) or is_index_op(op) for op in between):
            name = other.induction_var.name_hint
            raise self.error(f'loop "{name}" does not come right after loop "{one.induction_var.name_hint}"')
        lowers = [self.lower(op).substitute(same) for op in (one, other)]
        extents = [self.extent(op).substitute(same) for op in (one, other)]
        if lowers[0] is not lowers[1]:
            raise self.error(f"loops {names} begin at {lowers[0]} and {lowers[1]}")
        if self.space.prover.equal(*extents) is not True:
            raise self.error(f"loops {names} have extents {extents[0]} and {extents[1]}")


def _between(one: Operation, other: Operation) -> list[Operation] | None:
    """The ops between two ops of one block; `None` if they are not in this order in one block."""
    found: list[Operation] = []
    current = one.next_op
    while current is not None and current is not other:
        found.append(current)
        current = current.next_op
    return None if current is None else found


def _check_independent(self: ScheduleState, level: Sequence[ForOp], same: Mapping[str, Dim]) -> None:
    variable = self.symbol(level[0])
    names = set[str]().union(*(loop_names(self.space, loop) for loop in level))
    by_buffer: dict[SSAValue, dict[ForOp, list[Access]]] = {}
    for loop in level:
        for access in accesses_in(self.space, loop):
            axes = tuple(Axis(axis.low and axis.low.substitute(same), axis.width) for axis in access.axes)
            moved = Access(access.op, access.buffer, access.is_store, axes)
            by_buffer.setdefault(access.buffer, {}).setdefault(loop, []).append(moved)
    for buffer, users in by_buffer.items():
        accesses = [access for found in users.values() for access in found]
        if len(users) < 2 or not any(access.is_store for access in accesses):
            continue
        rows = list(zip(*{access.axes for access in accesses}, strict=True))
        if not determine(self.space, rows, variable, names):
            raise self.error(f'the loops share elements of buffer "{buffer.name_hint}" across iterations')


def _merge_level(level: Sequence[ForOp]) -> None:
    first = level[0]
    for op in level[1:]:
        op.induction_var.replace_all_uses_with(first.induction_var)
        for between in _between(first, op) or ():
            between.detach()
            Rewriter.insert_op(between, InsertPoint.before(first))
        move_ops(op.body.block, first.body.block)
        Rewriter.erase_op(op)

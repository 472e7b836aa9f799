"""One loop as several, and several as one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dependence import Dependence, is_loop_variable
from tir_dialect.dims import Dim, to_dim, total
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.accesses import Access, Axis, accesses_in
from tir_dialect.schedule.conflicts import determine, loop_names
from tir_dialect.schedule.edits import blocks_in, is_index_op, move_ops, unique_block_name
from tir_dialect.schedule.handles import Loop
from tir_dialect.schedule.materialize import Materializer
from tir_dialect.schedule.normalize import prove_conditions
from tir_dialect.schedule.primitives.splitting import Factor, check_serial
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.types import IteratorKind


@primitive
def loop_partition(self: ScheduleState, loop: Loop, factors: Sequence[Factor]) -> tuple[Loop, ...]:
    """Cuts the range of a loop into parts of the given lengths, and what is left; one length may be `None`.

    rewrite:
        for i in n: A(i)
        -> for i in p: A(i)
           for i in p to n: A(i)

    Conditions that always hold in a part go there. The first part keeps the blocks; those of the others get new names.

    Refuses loops that are not serial, lengths that are not known to be at least 0 and to fit, and reductions with init
    over the loop.
    """
    check_serial(self, loop)
    dims = _cuts(self, loop, factors)
    _check_no_init(self, loop)
    emitter = Materializer(self.func, self.space, InsertPoint.before(loop.op))
    values = [emitter.emit(dim) for dim in dims]
    ends = [*values, loop.op.upper]
    parts = [loop.op, *(_part(self, loop.op, lower, upper) for lower, upper in pairwise(ends))]
    loop.op.operands[len(loop.op.operands) - 1] = values[0]
    for before, part in pairwise(parts):
        Rewriter.insert_op(part, InsertPoint.after(before))
        for block in blocks_in(part):
            block.block_name = StringAttr(unique_block_name(self.func, block.block_name.data, block))
    self.changed()
    for part in parts:
        prove_conditions(self, part)
    return tuple(self.loop(part) for part in parts)


def _cuts(self: ScheduleState, loop: Loop, factors: Sequence[Factor]) -> list[Dim]:
    """Where the parts begin, but for the first."""
    known = [None if factor is None else to_dim(factor) for factor in factors]
    given = [factor for factor in known if factor is not None]
    if not given or len(given) < len(known) - 1:
        raise self.error("expected at least one length and at most one None")
    rest = self.extent(loop.op) - total(given)
    for length in (*given, rest):
        if unknown := length.symbols.difference(self.func.symbol_names):
            raise self.error(f'length {length} uses "{min(unknown)}", which is no symbol of the function')
        if self.space.less_equal(0, length) is not True:
            part = "what is left" if length is rest else "the length of a part"
            raise self.error(f"{part}, {length}, is not known to be at least 0")
    lengths = [rest if length is None else length for length in known]
    ends = accumulate(lengths, initial=self.lower(loop.op))
    cuts = list(ends)[1:]
    return cuts[:-1] if None in known or not rest.terms else cuts


def _check_no_init(self: ScheduleState, loop: Loop) -> None:
    dependence = Dependence(is_loop_variable)
    for block in blocks_in(loop.op):
        bindings = [it.binding for it in block.iterators if it.kind is not IteratorKind.SPATIAL]
        if block.init is not None and loop.op.induction_var in dependence.of_all(bindings):
            raise self.error(
                f'block "{block.block_name.data}" has an init and is reduced over loop "{loop.name}"; '
                "use decompose_reduction first"
            )


def _part(self: ScheduleState, loop: ForOp, lower: SSAValue, upper: SSAValue) -> ForOp:
    return ForOp(
        upper,
        loop.body.clone(),
        lower=lower,
        annotations=None if loop.annotations is None else dict(loop.annotations.data),
    )


@primitive
def merge(self: ScheduleState, *loops: Loop) -> Loop:
    """Runs the bodies of loops that stand one after the other in one loop.

    rewrite:
        for i in n: A(i)
        for i in n: B(i)
        -> for i in n: A(i); B(i)

    Refuses loops that are not serial, not next to each other or of different ranges, and bodies that use what another
    iteration of an earlier one writes, or the other way round.
    """
    ops = [loop.op for loop in loops]
    _check_neighbours(self, loops)
    _check_independent(self, ops)
    first = ops[0]
    for op in ops[1:]:
        op.induction_var.replace_all_uses_with(first.induction_var)
        for between in _between(first, op) or ():
            between.detach()
            Rewriter.insert_op(between, InsertPoint.before(first))
        move_ops(op.body.block, first.body.block)
        Rewriter.erase_op(op)
    return loops[0]


def _check_neighbours(self: ScheduleState, loops: Sequence[Loop]) -> None:
    if len(loops) < 2:
        raise self.error(f"expected at least two loops, got {len(loops)}")
    for loop in loops:
        check_serial(self, loop)
        if loop.op.annotations is not None:
            raise self.error(f'loop "{loop.name}" has annotations')
    for one, other in pairwise(loops):
        ops = _between(one.op, other.op)
        if ops is None or not all(map(is_index_op, ops)):
            raise self.error(f'loop "{other.name}" does not come right after loop "{one.name}"')
        same_start = self.lower(one.op) is self.lower(other.op)
        if not same_start or self.space.prover.equal(self.extent(one.op), self.extent(other.op)) is not True:
            raise self.error(
                f'loops "{one.name}" and "{other.name}" have extents {self.extent(one.op)} and {self.extent(other.op)}'
            )


def _between(one: Operation, other: Operation) -> list[Operation] | None:
    """The ops between two ops of one block; `None` if they are not in this order in one block."""
    found: list[Operation] = []
    current = one.next_op
    while current is not None and current is not other:
        found.append(current)
        current = current.next_op
    return None if current is None else found


def _check_independent(self: ScheduleState, loops: Sequence[ForOp]) -> None:
    variable = self.symbol(loops[0])
    names = set[str]().union(*(loop_names(self.space, loop) for loop in loops))
    by_buffer: dict[SSAValue, dict[ForOp, list[Access]]] = {}
    for loop in loops:
        own = {self.symbol(loop).as_symbol or "": variable}
        for access in accesses_in(self.space, loop):
            axes = tuple(Axis(axis.low and axis.low.substitute(own), axis.width) for axis in access.axes)
            moved = Access(access.op, access.buffer, access.is_store, axes)
            by_buffer.setdefault(access.buffer, {}).setdefault(loop, []).append(moved)
    for buffer, users in by_buffer.items():
        accesses = [access for found in users.values() for access in found]
        if len(users) < 2 or not any(access.is_store for access in accesses):
            continue
        rows = list(zip(*{access.axes for access in accesses}, strict=True))
        if not determine(self.space, rows, variable, names):
            raise self.error(f'the loops share elements of buffer "{buffer.name_hint}" across iterations')

"""Partitioning the range of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.analysis.dependence import Dependence, is_loop_variable
from tir_dialect.dims import Dim, maximum, minimum, to_dim, total
from tir_dialect.ops.loops import ForOp
from tir_dialect.schedule.handles import Loop
from tir_dialect.schedule.primitives.splitting import Factor, as_list, check_serial
from tir_dialect.schedule.rewriting.materialize import Materializer
from tir_dialect.schedule.rewriting.normalize import prove_conditions
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.statements import blocks_in, unique_block_name


@primitive
def loop_partition(self: ScheduleState, loop: Loop, factors: Sequence[Factor]) -> tuple[Loop, ...]:
    """Partitions the range of a loop into parts of the given lengths and the rest; one length may be `None`.

    rewrite:
        for i in n: A(i)
        -> for i in p: A(i)
           for i in p to n: A(i)

    Where a size decides whether the lengths fit, parts at the front are taken from what there is, and others may be
    empty. Conditions that always hold in a part go there. Handles of blocks are those of the first part from now on.
    The parts of loop `i` are called `i0`, `i1`, ..., and block `B` is `B_i0`, `B_i1`, ... in them.

    Refuses:
    1. a loop that is not serial, or whose bounds come from memory;
    2. no length, or more than one `None`;
    3. lengths over other symbols than those of the function, that may be negative, are 0, or together exceed the
       extent;
    4. lengths that leave a single part;
    5. reductions with init over the loop.
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
    _name_parts(self, parts, loop.name)
    self.changed()
    for part in parts:
        prove_conditions(self, part)
    return tuple(self.loop(part) for part in parts)


def _cuts(self: ScheduleState, loop: Loop, factors: Sequence[Factor]) -> list[Dim]:
    """Where the parts begin, but for the first."""
    known = [None if factor is None else to_dim(factor) for factor in factors]
    given = _known(known)
    if not given or len(given) < len(known) - 1:
        raise self.error(f"expected at least one length and at most one None, got {as_list(factors)}")
    rest = self.extent(loop.op) - total(given)
    for length in (*given, rest):
        if length is not rest and length.is_constant and not self.space.less_equal(1, length):
            raise self.error(f"expected lengths of at least 1, got {length}")
        if unknown := length.symbols.difference(self.func.symbol_names):
            raise self.error(f'length {length} uses "{min(unknown)}", which is no symbol of the function')
        known_length = self.space.less_equal(0, length)
        if known_length is False or (known_length is None and length is not rest):
            part = "what is left" if length is rest else "the length of a part"
            raise self.error(f"{part}, {length}, is not known to be at least 0")
    cuts = _starts(known, self.lower(loop.op), self.extent(loop.op), fits=self.space.less_equal(0, rest) is True)
    cuts = cuts if None in known or rest.terms else cuts[:-1]
    if not cuts:
        raise self.error(f"expected at least two parts, got one with all {self.extent(loop.op)} iterations")
    return cuts


def _starts(lengths: Sequence[Dim | None], first: Dim, extent: Dim, *, fits: bool) -> list[Dim]:
    """Where parts end, but for the last; `None` is what the others leave, at the end if no length is `None`.

    Where it is not known that all fit, those in front come first: no part ends after the loop.
    """
    rest = lengths.index(None) if None in lengths else len(lengths)
    front = list(accumulate(_known(lengths[:rest]), initial=first))[1:]
    back = list(accumulate(_known(lengths[:rest:-1]), Dim.__sub__, initial=first + extent))[:0:-1]
    if fits:
        return [*front, *back]
    front = [minimum(end, first + extent) for end in front]
    return [*front, *(maximum(start, (front or [first])[-1]) for start in back)]


def _known(lengths: Sequence[Dim | None]) -> list[Dim]:
    return [length for length in lengths if length is not None]


def _check_no_init(self: ScheduleState, loop: Loop) -> None:
    dependence = Dependence(is_loop_variable)
    for block in blocks_in(loop.op):
        bindings = [it.binding for it in block.iterators if it.kind.is_reduced]
        if block.init is not None and loop.op.induction_var in dependence.of_all(bindings):
            raise self.error(
                f'block "{block.block_name.data}" has an init and is reduced over loop "{loop.name}"; '
                "use decompose_reduction first"
            )


def _name_parts(self: ScheduleState, parts: Sequence[ForOp], loop: str) -> None:
    for number, part in enumerate(parts):
        part.induction_var.name_hint = name = f"{loop}{number}"
        for block in blocks_in(part):
            block.block_name = StringAttr(unique_block_name(self.func, f"{block.block_name.data}_{name}", block))


def _part(self: ScheduleState, loop: ForOp, lower: SSAValue, upper: SSAValue) -> ForOp:
    return ForOp(
        upper,
        loop.body.clone(),
        lower=lower,
        annotations=None if loop.annotations is None else dict(loop.annotations.data),
    )

"""Splitting a loop into a nest, and fusing a nest into a loop.
Iterations beyond the end are guarded by predicates of blocks, and branches around other statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tir_dialect.dims import Dim, DimLike, ceildiv, product, to_dim
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.loops import ForOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.schedule.arguments import too_great
from tir_dialect.schedule.handles import Loop
from tir_dialect.schedule.primitives.wrapping import check_inits
from tir_dialect.schedule.rewriting.edits import add_condition, before_all, move_ops
from tir_dialect.schedule.rewriting.materialize import Materializer
from tir_dialect.schedule.rewriting.normalize import simplify_bindings
from tir_dialect.schedule.state import ScheduleState, primitive
from tir_dialect.schedule.statements import is_index_op, users_of
from tir_dialect.types import LoopKind


def guarded_ops(body: Block) -> list[Operation]:
    """What a condition on the body of a loop applies to: its blocks, or the whole body if it does something outside."""
    found = list(_leaves(body))
    if all(isinstance(op, BlockOp) for op in found):
        return found
    first = body.first_op
    return [] if first is None else [first]


def _leaves(body: Block) -> Iterator[Operation]:
    for op in body.ops:
        if isinstance(op, ForOp):
            yield from _leaves(op.body.block)
        elif not is_index_op(op) and not isinstance(op, AllocBufferOp):
            yield op


def guard(body: Block, value: SSAValue, limit: SSAValue) -> None:
    """Lets what `guarded_ops` gives run only where `value < limit`; both must dominate it."""
    targets = guarded_ops(body)
    if all(isinstance(op, BlockOp) for op in targets):
        for op in targets:
            if isinstance(op, BlockOp):
                add_condition(op, _less(value, limit, InsertPoint.before(op)))
        return
    branch_body = Block()
    move_after(value, body, branch_body)
    condition = _less(value, limit, InsertPoint.at_end(body))
    branch = IfOp(condition)
    move_ops(branch_body, branch.then_body.block)
    body.add_op(branch)


def move_after(value: SSAValue, source: Block, target: Block) -> None:
    """Moves the ops of a block after the one that computes `value` to the end of another block."""
    ops = list(source.ops)
    start = ops.index(value.owner) + 1 if isinstance(value.owner, Operation) and value.owner in ops else 0
    for op in ops[start:]:
        op.detach()
        target.add_op(op)


def _less(value: SSAValue, limit: SSAValue, point: InsertPoint) -> SSAValue:
    op = arith.CmpiOp(value, limit, "slt")
    Rewriter.insert_op(op, point)
    return op.result


Factor: TypeAlias = "DimLike | None"
"""The extent of one of the loops, over the symbols of the function; `None` is what is left."""


@primitive
def split(
    self: ScheduleState, loop: Loop, factors: Sequence[Factor], *, disable_predication: bool = False
) -> tuple[Loop, ...]:
    """Splits a loop into a nest of loops with the given extents, outermost first; one of them may be `None`.

    Where the extents do not divide, blocks get a condition; with `disable_predication`, the loop is refused.

    rewrite:
        for i in n: A(i)
        -> for i0 in ceildiv(n, 8): for i1 in 8: A(8 * i0 + i1) where 8 * i0 + i1 < n

    Refuses:
    1. a loop that is not serial, or whose bounds come from memory;
    2. fewer than two factors, or more than one `None`;
    3. factors over other symbols than those of the function, or that may be less than 1 (0 if none is `None`), or
       together are over 2**62;
    4. factors whose product may be less than the extent; with `disable_predication`, factors of any other product than
       the extent;
    5. where statements outside of blocks need a branch, a reduction whose init would be in it and whose loop may be
       empty.
    """
    extents = check_split(self, loop, factors)
    exact = self.space.prover.equal(product(extents), self.extent(loop.op)) is True
    if disable_predication and not exact:
        raise self.error(
            f"expected factors of {self.extent(loop.op)}, since no condition is wanted, got {as_list(extents)}"
        )
    if not exact and not all(isinstance(op, BlockOp) for op in guarded_ops(loop.op.body.block)):
        check_inits(self, [loop.op], [loop.op])
    ops = _build_nest(self, loop.op, extents)
    _bind_split(self, loop.op, ops, extents, exact)
    return tuple(self.loop(op) for op in ops)


def check_split(self: ScheduleState, loop: Loop, factors: Sequence[Factor]) -> list[Dim]:
    """Refuses what `split` refuses; the extents of the new loops."""
    check_serial(self, loop)
    return _extents(self, self.extent(loop.op), factors)


def check_serial(self: ScheduleState, loop: Loop) -> None:
    """Refuses a loop that is not serial."""
    kind = loop.op.kind.data
    if kind is not LoopKind.SERIAL:
        raise self.error(f'expected a serial loop, got {kind.value} loop "{loop.name}"')


def _extents(self: ScheduleState, extent: Dim, factors: Sequence[Factor]) -> list[Dim]:
    known = [None if factor is None else to_dim(factor) for factor in factors]
    given = [factor for factor in known if factor is not None]
    if len(factors) < 2 or len(given) < len(factors) - 1:
        raise self.error(f"expected at least two factors and at most one None, got {as_list(factors)}")
    for factor in given:
        if unknown := factor.symbols.difference(self.func.symbol_names):
            raise self.error(f'factor {factor} uses "{min(unknown)}", which is no symbol of the function')
        # the extent is divided by the factors where one is left out
        least = 1 if len(given) < len(factors) else 0
        if self.space.less_equal(least, factor) is not True:
            raise self.error(f"expected factors of at least {least}, got {factor}")
    covered = product(given)
    if too_great([covered]) is not None:
        raise self.error(f"expected factors with a product of at most 2**62, got {as_list(factors)}")
    if len(given) < len(factors):
        return [ceildiv(extent, covered) if factor is None else factor for factor in known]
    if self.space.prover.less_equal(extent, covered) is not True:
        raise self.error(f"expected factors that cover all {extent} iterations, got {covered}")
    return given


def as_list(factors: Sequence[Factor]) -> str:
    """Factors in a message."""
    return f"[{', '.join(map(str, factors))}]"


def _build_nest(self: ScheduleState, loop: ForOp, extents: Sequence[Dim]) -> list[ForOp]:
    """Empty loops before `loop`, of which the outermost has its annotations."""
    emitter = Materializer(self.func, self.space, InsertPoint.before(loop))
    hint = loop.induction_var.name_hint or "i"
    ops = [ForOp(emitter.emit(extent), name_hint=f"{hint}{number}") for number, extent in enumerate(extents)]
    ops[0].annotations = loop.annotations
    for outer, inner in pairwise(ops):
        outer.body.block.add_op(inner)
    for op in ops:
        op.location = loop.location
    Rewriter.insert_op(ops[0], InsertPoint.before(loop))
    return ops


def _bind_split(self: ScheduleState, loop: ForOp, ops: Sequence[ForOp], extents: Sequence[Dim], exact: bool) -> None:
    lower = self.lower(loop)
    body = ops[-1].body.block
    move_ops(loop.body.block, body)
    index, *extents = self.carry([lower, *extents])
    for position, op in enumerate(ops):
        index = index + self.symbol(op) * product(extents[position + 1 :])
    targets = [] if exact else guarded_ops(body)
    users = [*users_of(loop.induction_var), *targets]
    if users:
        value = Materializer(self.func, self.space, before_all(users)).emit(index)
        loop.induction_var.replace_all_uses_with(value)
        if targets:
            guard(body, value, loop.upper)
    Rewriter.erase_op(loop)
    self.changed()
    simplify_bindings(self, ops[0])

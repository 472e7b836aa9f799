"""`overlap-collectives`: exchanges begin as soon as they can, and end when somebody needs what they give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.distributed.cost import FLOPS_PER_BYTE, bytes_of, estimate, work
from lowering.distributed.factors import factors_of
from lowering.locations import inherit_location
from lowering.registry import Pass
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.collective import AllReduceOp, CollectiveOp, ReceiveOp, StartedOp, StartOp
from relax_dialect.ops.distributed import PlacementOp, RedistributeReplicaToShardOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.shapes import ShapeOfOp, ShapeOp, TupleGetOp, TupleOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp, PrimOp, StringOp
from relax_dialect.scope import symbols_used, symbols_witnessed
from relax_dialect.struct_info.types import TensorType

LEAST = 1 << 14
"""Bytes that a worker sends in the time that work has to take for an exchange to begin before it: 2 us or so."""


class OverlapCollectivesPass(Pass):
    """Lets workers compute while they exchange something: what does not need the result goes in between.

    Before:

    ```mlir
    %0 = relax.ccl.allreduce %x group = "x"
    %1 = relax.add %0, %r
    %2 = relax.matmul %y, %w
    ```

    After:

    ```mlir
    %0 = relax.ccl.start %x collective = "allreduce" group = "x"
    %1 = relax.matmul %y, %w
    %2 = relax.ccl.allreduce %x, %0 group = "x"
    %3 = relax.add %2, %r
    ```

    1. An all-reduce, all-gather or reduce-scatter begins where its operand is made, and ends where it is, after ops
       that follow and need neither it nor what needs it.
    2. So many follow before the end as take the time of the exchange.
    3. Exchanges stay in their order, one of which has begun at a time. Nothing moves across other exchanges, calls,
       branches and loops.
    4. What takes no time is no reason to begin early.

    Functions without collectives stay.
    """

    name = "overlap-collectives"
    requires = ("relax.ccl.allreduce", "relax.ccl.allgather", "relax.ccl.reduce_scatter")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in [inner for inner in op.ops if isinstance(inner, FuncOp)]:
            for block in [block for inner in func.walk() for region in inner.regions for block in region.blocks]:
                for exchange in [inner for inner in block.ops if isinstance(inner, StartedOp) and _is_split(inner)]:
                    _overlap(block, exchange)


def _is_split(op: StartedOp) -> bool:
    return not op.started and not (isinstance(op, AllReduceOp) and op.all_groups is not None)


def _overlap(block: Block, exchange: StartedOp) -> None:
    ops = list(block.ops)
    at = ops.index(exchange)
    first = at - len(list(_before(exchange, ops[:at])))
    following = list(_independent(exchange, ops[at + 1 :]))
    if sum(map(_time, [*ops[first:at], *following])) < LEAST:
        return
    start = StartOp.of(exchange)
    inherit_location(exchange, start)
    Rewriter.insert_op(start, InsertPoint.before(ops[first]))
    for op in following:
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(exchange))
    exchange.operands = [exchange.x, start.result]


def _before(exchange: StartedOp, ops: Sequence[Operation]) -> Iterator[Operation]:
    """The ops before an exchange, the last one first, across which it may begin."""
    used = symbols_used(exchange)
    for op in reversed(ops):
        if op is exchange.x.owner or not _moves(op) or not used.isdisjoint(symbols_witnessed(op)):
            return
        yield op


def _independent(exchange: StartedOp, ops: Sequence[Operation]) -> Iterator[Operation]:
    """The ops after an exchange that do not need its result, as many as take its time."""
    waiting: set[Operation] = {exchange}
    hidden = set[str]()
    left = _sent(exchange)
    for op in ops:
        if not _moves(op) or left <= 0:
            return
        owners = {operand.owner for operand in op.operands}
        if owners.isdisjoint(waiting) and hidden.isdisjoint(symbols_used(op)):
            left -= _time(op)
            yield op
        else:
            waiting.add(op)
            hidden |= symbols_witnessed(op).keys()


def _moves(op: Operation) -> bool:
    """Whether an op only computes, so that its place does not matter."""
    if isinstance(op, CollectiveOp | ReceiveOp | PlacementOp):
        return isinstance(op, RedistributeReplicaToShardOp) and op.index is not None
    return isinstance(
        op,
        Operator
        | CallTIROp
        | MatchCastOp
        | ShapeOp
        | ShapeOfOp
        | TupleOp
        | TupleGetOp
        | PrimOp
        | StringOp
        | ConstantOp,
    )


def _time(op: Operation) -> float:
    """What an op takes, in the time in which a worker sends a byte."""
    factors = factors_of(op)
    return 0 if factors is None else estimate(work(op, factors)) / FLOPS_PER_BYTE


def _sent(exchange: StartedOp) -> float:
    """What an exchange takes at most, in bytes."""
    infos = [value.type for value in (exchange.x, exchange.result) if isinstance(value.type, TensorType)]
    return max(2 * LEAST, *(2 * estimate(bytes_of(info)) for info in infos))

"""Collective operators: calls of the run-time library, which knows the other workers; in a group of one, nothing."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from lowering.diagnostics import fail
from lowering.relax_to_tir.context import rewrites
from relax_dialect.ops.call_packed import CallDPSPackedOp
from relax_dialect.ops.collective import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    BroadcastFromWorker0Op,
    CollectiveOp,
    DividingOp,
    ReduceScatterOp,
    ScatterFromWorker0Op,
)
from relax_dialect.ops.values import PrimOp, StringOp

PREFIX = "vm.builtin.ccl_"
"""What the names of the run-time library's collectives begin with."""


def exchange(op: CollectiveOp, rewriter: PatternRewriter) -> Sequence[SSAValue]:
    """A call in destination-passing style: `allgather(x, axis)  ->  call_dps_packed "..."("x", workers, axis, x)`."""
    workers = op.num_workers.value.data if isinstance(op, AllGatherOp | DividingOp) else 0
    if workers == 1:
        return (op.x,)
    result = op.result.type
    if result.dtype is None or result.known_dims is None:
        fail(op, f"gives a tensor of which not all is known: {result}", "name its dimensions by a relax.match_cast")
    group = "" if getattr(op, "all_groups", None) is not None else op.group_name
    arguments: list[Operation] = [StringOp(group), PrimOp(workers)]
    if isinstance(op, AllReduceOp | ReduceScatterOp):
        arguments.append(StringOp(op.op_type.data))
    if isinstance(op, AllGatherOp | DividingOp):
        arguments.append(PrimOp(op.along))
    if isinstance(op, AllToAllOp):
        arguments.append(PrimOp(op.concat_axis.value.data % len(result.known_dims)))
    rewriter.insert(arguments)
    operands = [argument.results[0] for argument in arguments]
    call = CallDPSPackedOp(f"{PREFIX}{op.name.rpartition('.')[2]}", [*operands, op.x], [result])
    rewriter.insert(call)
    return call.results


for _op in (AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, BroadcastFromWorker0Op, ScatterFromWorker0Op):
    rewrites(_op)(exchange)

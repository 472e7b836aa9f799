"""Collective operators: calls of the run-time library, which knows the other workers; in a group of one, nothing. And
tensors that workers share: a program with placements becomes one for each worker first, by `lower-distributed`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from lowering.diagnostics import fail
from lowering.relax_to_tir.kernel import rewrites
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import CallDPSPackedOp
from relax_dialect.ops.collective import (
    FINISH,
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    CollectiveOp,
    DividingOp,
    ReceiveOp,
    ReduceScatterOp,
    SendOp,
    StartedOp,
    StartOp,
)
from relax_dialect.ops.distributed import PlacementOp, RedistributeReplicaToShardOp, workers_that_share
from relax_dialect.ops.indexing import StridedSliceOp
from relax_dialect.ops.values import PrimOp, StringOp
from relax_dialect.struct_info.sharding import tile_size
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import constant, minimum

PREFIX = "vm.builtin.ccl_"
"""What the names of the run-time library's collectives begin with."""


@rewrites(CollectiveOp)
def exchange(op: CollectiveOp, rewriter: PatternRewriter) -> Sequence[SSAValue] | None:
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
    operands = [*(argument.results[0] for argument in arguments), op.x]
    prefix = PREFIX
    if isinstance(op, StartedOp) and op.started:
        prefix, operands = FINISH, [*op.started, *operands]
    call = CallDPSPackedOp(f"{prefix}{op.name.rpartition('.')[2]}", operands, [result])
    rewriter.insert(call)
    return call.results


@rewrites(StartOp)
def start(op: StartOp, rewriter: PatternRewriter) -> Sequence[SSAValue]:
    """`start(x, "allgather", axis, n)  ->  call_dps_packed "..."("x", workers, axis, x, n)`, whose result is empty."""
    kind, workers, info = op.collective.data, op.num_workers.value.data, op.x.type
    arguments: list[Operation] = [StringOp(op.group_name), PrimOp(workers)]
    if kind != "allgather":
        arguments.append(StringOp(op.op_type.data))
    if kind != "allreduce":
        arguments.append(PrimOp(op.along))
    last: list[Operation] = []
    if kind == "allgather":
        tile = info.dims[op.along] if isinstance(info, TensorType) and info.dims is not None else None
        size = op.size.data if op.size is not None else None if tile is None else tile * workers
        if size is None:
            fail(op, f"takes a tensor of which not all is known: {info}", "name its dimensions by a relax.match_cast")
        last.append(PrimOp(size))
    rewriter.insert([*arguments, *last])
    operands = [*(each.results[0] for each in arguments), op.x, *(each.results[0] for each in last)]
    call = CallDPSPackedOp(f"{PREFIX}start_{kind}", operands, [op.result.type])
    rewriter.insert(call)
    return call.results


@rewrites(SendOp)
def send(op: SendOp, rewriter: PatternRewriter) -> Sequence[SSAValue]:
    """`send(x, to, tag)  ->  call_dps_packed "..."("x", to, tag, x)`, whose result is empty."""
    return _message(op, rewriter, "send", op.group_name, op.to.value.data, op.tag.value.data, [op.x])


@rewrites(ReceiveOp)
def receive(op: ReceiveOp, rewriter: PatternRewriter) -> Sequence[SSAValue]:
    """`receive(source, tag)  ->  call_dps_packed "..."("x", source, tag)`."""
    if op.result.type.known_dims is None:
        fail(op, f"receives a tensor of which not all is known: {op.result.type}", "name its dimensions")
    return _message(op, rewriter, "receive", op.group_name, op.source.value.data, op.tag.value.data, [])


def _message(
    op: SendOp | ReceiveOp,
    rewriter: PatternRewriter,
    name: str,
    group: str,
    other: int,
    tag: int,
    operands: Sequence[SSAValue],
) -> Sequence[SSAValue]:
    arguments: list[Operation] = [StringOp(group), PrimOp(other), PrimOp(tag)]
    rewriter.insert(arguments)
    found = [argument.results[0] for argument in arguments]
    call = CallDPSPackedOp(f"{PREFIX}{name}", [*found, *operands], [op.result.type])
    rewriter.insert(call)
    return call.results


@rewrites(PlacementOp)
def whole_tensor(op: PlacementOp, rewriter: PatternRewriter) -> Sequence[SSAValue]:
    """The tensor itself; fails where several workers share it, or each of several has it."""
    if (reason := workers_that_share(op)) is not None:
        fail(
            op,
            f"{reason}: no code is made for the tiles of tensors, and nothing moves them between workers",
            "make the program of each worker by the passes propagate-sharding and lower-distributed, build with a mesh "
            "of one worker, or call the function on tensors as a whole, without placements",
        )
    return (op.x,)


@rewrites(RedistributeReplicaToShardOp)
def own_tile(op: RedistributeReplicaToShardOp, rewriter: PatternRewriter) -> Sequence[SSAValue] | None:
    """A slice, where the op says which worker this is: `tile(x, i)  ->  x[i * t : (i + 1) * t]`."""
    if op.index is None:
        return exchange(op, rewriter)
    info = op.x.type
    size = info.dims[op.along] if isinstance(info, TensorType) and info.dims is not None else None
    if size is None:
        fail(op, "takes a tile of a dimension that is not known", "name the dimension by a relax.match_cast")
    index, tile = op.index.data, tile_size(size, constant(op.num_workers.value.data))
    begin, end = index * tile, (index + 1) * tile
    if tile * op.num_workers.value.data != size:  # the last tiles may be smaller
        begin, end = minimum(begin, size), minimum(end, size)
    cut = StridedSliceOp(op.x, [op.along], [begin], [end], assume_inbound=True)
    rewriter.insert(cut)
    if cut.result.type == op.result.type:
        return (cut.result,)
    cast = MatchCastOp(cut.result, op.result.type)
    rewriter.insert(cast)
    return (cast.result,)

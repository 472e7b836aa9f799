"""Tensors that workers share: a program with placements becomes one for each worker first, by `lower-distributed`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from lowering.diagnostics import fail
from lowering.relax_to_tir.collective import exchange
from lowering.relax_to_tir.kernel import rewrites
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.distributed import (
    PlacementOp,
    RedistributeReplicaToShardOp,
    workers_that_share,
)
from relax_dialect.ops.indexing import StridedSliceOp
from relax_dialect.struct_info.sharding import tile_size
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import constant, minimum


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

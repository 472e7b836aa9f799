"""Tensors that workers share. A program with placements means what it means without: the interpreter has the whole."""

from __future__ import annotations

from relax_dialect.interpreter.collective import collected, tile_of
from relax_dialect.interpreter.conform import evaluate
from relax_dialect.interpreter.frame import Frame, runs
from relax_dialect.interpreter.operators import make_checks
from relax_dialect.ops.distributed import (
    AnnotateShardingOp,
    GlobalViewOp,
    LocalViewOp,
    PlacementOp,
    RedistributeOp,
    RedistributeReplicaToShardOp,
    workers_that_share,
)


def whole_tensor(frame: Frame, op: PlacementOp) -> None:
    """The tensor itself."""
    make_checks(frame, op)
    frame.set_checked(op.result, frame.get(op.x), f"result of '{op.name}'")


def view(frame: Frame, op: PlacementOp) -> None:
    """The tensor itself; `ValueError` where it is a tile, or made of tiles."""
    if op.sharding.shards and (reason := workers_that_share(op)) is not None:
        raise ValueError(f"'{op.name}' op {reason}")
    whole_tensor(frame, op)


@runs(RedistributeReplicaToShardOp)
def own_tile(frame: Frame, op: RedistributeReplicaToShardOp) -> None:
    """The tile of the worker that the op names, or of the one that this is."""
    if op.index is None:
        values, index = collected(frame, op)
        x, workers = frame.get(op.x), len(values)
    else:
        make_checks(frame, op)
        x, workers, index = frame.get(op.x), op.num_workers.value.data, evaluate(op.index.data, frame.symbols)
    frame.set_checked(op.result, tile_of(x, op.along, workers, index).copy(), f"result of '{op.name}'")


for _op in (AnnotateShardingOp, RedistributeOp):
    runs(_op)(whole_tensor)
for _op in (LocalViewOp, GlobalViewOp):
    runs(_op)(view)

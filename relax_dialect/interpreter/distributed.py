"""Tensors that workers share, in a process that is the only worker: all of them is here."""

from __future__ import annotations

from relax_dialect.interpreter.collective import own_tensor
from relax_dialect.interpreter.frame import Frame, runs
from relax_dialect.interpreter.operand_checks import make_checks
from relax_dialect.ops.distributed import (
    AnnotateShardingOp,
    GlobalViewOp,
    LocalViewOp,
    PlacementOp,
    RedistributeOp,
    RedistributeReplicaToShardOp,
    missing_parts,
)

runs(RedistributeReplicaToShardOp)(own_tensor)


def whole_tensor(frame: Frame, op: PlacementOp) -> None:
    """The tensor itself."""
    make_checks(frame, op)
    frame.set_checked(op.result, frame.get(op.x), f"result of '{op.name}'")


def view(frame: Frame, op: PlacementOp) -> None:
    """The tensor itself; `ValueError` where it is a part, or made of parts."""
    if (reason := missing_parts(op)) is not None:
        raise ValueError(f"'{op.name}' op {reason}")
    whole_tensor(frame, op)


for _op in (AnnotateShardingOp, RedistributeOp):
    runs(_op)(whole_tensor)
for _op in (LocalViewOp, GlobalViewOp):
    runs(_op)(view)

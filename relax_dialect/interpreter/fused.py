"""Groups of ops."""

from __future__ import annotations

from relax_dialect.interpreter.frame import Frame, runs
from relax_dialect.ops.fused import FusedOp


@runs(FusedOp)
def fused(frame: Frame, op: FusedOp) -> None:
    """The region's ops, then what it yields."""
    for result, value in zip(op.res, frame.run_block(op.body.block), strict=True):
        frame.set(result, value)

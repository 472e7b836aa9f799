"""Dataflow regions, and groups of ops."""

from __future__ import annotations

from relax_dialect.interpreter.frame import Frame, ends, runs
from relax_dialect.interpreter.runtime_values import Value
from relax_dialect.ops.dataflow import DataflowOp, FusedOp, OutputOp


@runs(DataflowOp)
def dataflow(frame: Frame, op: DataflowOp) -> None:
    """The region's ops, then its outputs."""
    outputs = frame.run_block(op.body.block)
    for result, value in zip(op.results, outputs, strict=True):
        frame.set(result, value)


@ends(OutputOp)
def output(frame: Frame, op: OutputOp) -> tuple[Value, ...]:
    """The outputs."""
    return tuple(frame.get_all(op.values))


@runs(FusedOp)
def fused(frame: Frame, op: FusedOp) -> None:
    """The region's ops, then what it yields."""
    for result, value in zip(op.res, frame.run_block(op.body.block), strict=True):
        frame.set(result, value)

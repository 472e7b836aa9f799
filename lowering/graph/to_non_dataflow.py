"""`to-non-dataflow`: dataflow regions dissolve into the code around them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from relax_dialect.ops.dataflow import DataflowOp


@dataclass(frozen=True)
class ToNonDataflowPass(ModulePass):
    """Moves the ops of every dataflow region in front of it and removes the region.

    Before:

    ```mlir
    %gv = relax.dataflow {
      %lv = relax.exp %x
      relax.output %lv
    }
    relax.return %gv
    ```

    After:

    ```mlir
    %lv = relax.exp %x
    relax.return %lv
    ```

    Later passes insert ops with effects, which a dataflow region must not hold. Idempotent; touches nothing else.
    """

    name = "to-non-dataflow"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Dissolves every region; they do not nest."""
        for dataflow in [inner for inner in op.walk() if isinstance(inner, DataflowOp)]:
            dissolve(dataflow)


def dissolve(dataflow: DataflowOp) -> None:
    """Puts the ops of one region in its place, and its outputs in that of its results."""
    output = dataflow.output
    values = output.values
    for result, value in zip(dataflow.results, values, strict=True):
        value.name_hint = value.name_hint or result.name_hint
        result.replace_all_uses_with(value)
    Rewriter.erase_op(output)
    Rewriter.inline_block(dataflow.body.block, InsertPoint.before(dataflow))
    Rewriter.erase_op(dataflow)

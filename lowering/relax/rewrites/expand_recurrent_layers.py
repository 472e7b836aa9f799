"""`expand-recurrent-layers`: what recurrent layers make of their weights stands where it can be folded."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.registry import Pass
from lowering.relax.shapes.insert_guards import apply_graph_patterns
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.ops.recurrent import RecurrentLayerOp


class ExpandRecurrentLayersPass(Pass):
    """Splits a recurrent layer into one matrix product for the inputs of all steps, and a recurrence.

    Before:

    ```mlir
    %y, %h = relax.nn.rnn %x, %w, %r, %b, %lengths, %h0
    ```

    After:

    ```mlir
    %0 = relax.permute_dims %w2                   // %w2 : the weights of both directions as rows
    %1 = relax.matmul %x2, %0
    %2 = relax.add %1, %b2
    %3 = relax.permute_dims %r axes = [0, 2, 1]
    %y, %h = relax.nn.recurrence %2, %3, ...
    ```

    Layers with dimensions that have no names are left to `legalize-ops`, which does the same later. Idempotent.
    """

    name = "expand-recurrent-layers"
    requires = ("relax.nn.rnn", "relax.nn.gru", "relax.nn.lstm", "relax.nn.recurrence")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_graph_patterns(op, [ExpandRecurrentLayer()])


class ExpandRecurrentLayer(RewritePattern):
    """A layer is matrix products over the whole sequence, and the recurrence that is left of each direction."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: RecurrentLayerOp, rewriter: PatternRewriter) -> None:
        # Brings tensor expressions with it, which few programs need here.
        from lowering.relax_to_tir.recurrent import layer

        values = layer(op, rewriter)
        if values is not None:
            rewriter.replace(op, [], values)

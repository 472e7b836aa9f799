"""`remove-kills`: the compiler decides for itself where values end."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.passes import Pass
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.ops.memory import KillOp


class RemoveKillsPass(Pass):
    """Removes every `relax.kill`.

    Before:

    ```mlir
    %y = relax.add %x, %zero
    relax.kill %x
    relax.return %y
    ```

    After:

    ```mlir
    %y = relax.add %x, %zero
    relax.return %y
    ```

    A kill speaks of the values as they are written. Passes let values share memory and put one instead of another
    (here `%x` in that of `%y`), so `insert-kills` ends what is left after them. Idempotent; refuses nothing.
    """

    name = "remove-kills"
    requires = ("relax.kill",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, [EraseKill()])


class EraseKill(RewritePattern):
    """A kill says nothing once values are replaced by others: `kill(x)  ->`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: KillOp, rewriter: PatternRewriter) -> None:
        rewriter.erase(op)

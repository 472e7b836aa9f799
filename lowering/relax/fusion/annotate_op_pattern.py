"""`annotate-op-pattern`: every PrimFunc says how its results depend on its operands."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from lowering.relax.fusion.kernel_facts import ANNOTATION
from tir_dialect.analysis.patterns import op_pattern
from tir_dialect.ops.function import PrimFuncOp


class AnnotateOpPatternPass(ModulePass):
    """Annotates each PrimFunc with its operator pattern, which can be inspected and changed before `fuse-ops`.

    Before:

    ```mlir
    tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) { ... }
    ```

    After:

    ```mlir
    tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>)
        attributes {op_pattern = "elementwise"} { ... }
    ```

    The patterns are `elementwise`, `broadcast`, `injective`, `reduction`, `out_elementwise_fusable` and `opaque`. What
    is there already stays, hence idempotent. `fuse-ops` does not need the pass: without annotations it analyses.
    """

    name = "annotate-op-pattern"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Annotates every PrimFunc."""
        for func in op.ops:
            if isinstance(func, PrimFuncOp) and ANNOTATION not in func.attributes:
                func.attributes[ANNOTATION] = StringAttr(op_pattern(func).name.lower())

"""`expand-matmul-of-sum`: the product with a sum is the sum of two products."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from lowering.relax.dataflow_patterns import RewriteMatch
from lowering.relax.shapes.kept_checks import apply_graph_patterns
from relax_dialect.ops.binary import AddOp
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.patterns import Match, is_op, wildcard


class ExpandMatmulOfSumPass(ModulePass):
    """Distributes a matrix product over a sum of weights.

    Before:

    ```mlir
    %0 = relax.add %w, %delta                 // tensor<[k, n], f32>
    %1 = relax.matmul %x, %0
    ```

    After:

    ```mlir
    %0 = relax.matmul %x, %w
    %1 = relax.matmul %x, %delta
    %2 = relax.add %0, %1
    ```

    That is more work, unless one part is itself a product of low rank, as in LoRA: then `adjust-matmul-order` applies
    its factors one by one, and the sum of matrices is never made. So it is not part of `optimize-graph`. Both parts
    have the type of the sum; products with an `out_dtype` stay, and so does a sum that is used elsewhere too. Results
    may differ in their last bits. Idempotent; mirrors TVM's `ExpandMatmulOfSum`.
    """

    name = "expand-matmul-of-sum"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every product of a sum on the right."""
        apply_graph_patterns(op, [DistributeMatmul()], reverse=True)


class DistributeMatmul(RewriteMatch):
    """A product with a sum is the sum of two products: `matmul(x, a + b)  ->  matmul(x, a) + matmul(x, b)`."""

    def __init__(self) -> None:
        self.x, self.left, self.right = wildcard(), wildcard(), wildcard()
        super().__init__(is_op("relax.matmul")(self.x, self.left + self.right).has_attr(out_dtype=None))

    @override
    def replacement(self, found: Match) -> Sequence[Operation] | None:
        if found[self.left].type != found[self.right].type:
            return None
        products = [MatmulOp(found[self.x], found[addend]) for addend in (self.left, self.right)]
        return [*products, AddOp(*products)]

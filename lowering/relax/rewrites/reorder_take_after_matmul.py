"""`reorder-take-after-matmul`: columns are taken out of the product, not out of the matrix."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from lowering.relax.dataflow_patterns import RewriteMatch
from lowering.relax.shapes.kept_checks import apply_graph_patterns
from relax_dialect.ops.indexing import TakeOp
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.patterns import Match, is_op, wildcard
from relax_dialect.struct_info.types import TensorType


class ReorderTakeAfterMatmulPass(ModulePass):
    """Moves a gather of columns from an operand of a matrix product to its result.

    Before:

    ```mlir
    %0 = relax.take %w, %columns axis = 1     // tensor<[k, n], f32>
    %1 = relax.matmul %x, %0                  // tensor<[m, k], f32>
    ```

    After:

    ```mlir
    %0 = relax.matmul %x, %w
    %1 = relax.take %0, %columns axis = -1
    ```

    It is profitable if M, the rows of `%x`, is small and many columns are taken, as when one of several adapters is
    chosen by index: copies of weights are larger than copies of results. So it is not part of `optimize-graph`. The
    matrix has two dimensions and the positions one; a product with an `out_dtype` stays. Values are the same but for
    the order of sums. Idempotent; mirrors TVM's `ReorderTakeAfterMatmul`.
    """

    name = "reorder-take-after-matmul"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every product with columns that are taken."""
        apply_graph_patterns(op, [TakeAfterMatmul()], reverse=True)


class TakeAfterMatmul(RewriteMatch):
    """Columns are taken from the product: `matmul(x, take(w, columns, 1))  ->  take(matmul(x, w), columns, -1)`."""

    def __init__(self) -> None:
        self.x, self.weights, self.columns = wildcard(), wildcard(), wildcard()
        self.taken = is_op("relax.take")(self.weights, self.columns)
        super().__init__(is_op("relax.matmul")(self.x, self.taken).has_attr(out_dtype=None))

    @override
    def replacement(self, found: Match) -> Sequence[Operation] | None:
        take, weights, columns = found[self.taken].owner, found[self.weights], found[self.columns]
        ranks = [info.rank for value in (weights, columns) if isinstance(info := value.type, TensorType)]
        axis = take.axis if isinstance(take, TakeOp) else None
        if not isinstance(take, TakeOp) or ranks != [2, 1] or axis is None or axis.value.data % 2 != 1:
            return None
        product = MatmulOp(found[self.x], weights)
        return [product, TakeOp(product, columns, -1, take.mode.data)]

"""`adjust-matmul-order`: a product of three matrices in the order that takes less work."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.locations import fused_location
from lowering.passes import Pass
from lowering.relax.movement import dims_of
from lowering.relax.shapes.kept_checks import apply_graph_patterns
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import prover_at
from tir_dialect.dims import Dim, constant, product


class AdjustMatmulOrderPass(Pass):
    """Reassociates two matrix products if that provably takes fewer multiplications for all values of the symbols.

    Before:

    ```mlir
    %0 = relax.matmul %a, %b                  // tensor<[512, 8], f32>, tensor<[8, 512], f32>
    %1 = relax.matmul %x, %0                  // tensor<[n, 512], f32>
    ```

    After:

    ```mlir
    %0 = relax.matmul %x, %a
    %1 = relax.matmul %0, %b
    ```

    Both orders are looked at: `x (a b)` and `(x a) b`, where `a` and `b` have two dimensions, `x` two or more, and no
    other op uses the product in between. The product of two constants costs nothing, as `fold-constants` computes it.
    Results may differ in their last bits, but not those of integers. Products with an `out_dtype` stay. Idempotent;
    mirrors TVM's `AdjustMatmulOrder`.
    """

    name = "adjust-matmul-order"
    requires = ("relax.matmul",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_graph_patterns(op, [ReassociateMatmul()])


class ReassociateMatmul(RewritePattern):
    """Three matrices are multiplied in the cheaper order: `x (a b)  ->  (x a) b`, or the other way round."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter) -> None:
        for inner in (op.x.owner, op.y.owner):
            if not isinstance(inner, MatmulOp) or not inner.result.has_one_use():
                continue
            if op.out_dtype is not None or inner.out_dtype is not None:
                continue
            left = inner.result is op.x
            chain = _Chain(inner.x, inner.y, op.y) if left else _Chain(op.x, inner.x, inner.y)
            if chain.is_known and chain.is_cheaper(op, left):
                first = MatmulOp(chain.a, chain.b) if left else MatmulOp(chain.x, chain.a)
                second = MatmulOp(chain.x, first) if left else MatmulOp(first, chain.b)
                if second.result.type == op.result.type:
                    first.location = second.location = fused_location((inner.location, op.location))
                    rewriter.replace(op, [first, second])
                return


@dataclass(frozen=True)
class _Chain:
    """The product of three matrices, `x` with any number of leading dimensions."""

    x: SSAValue
    a: SSAValue
    b: SSAValue

    @property
    def is_known(self) -> bool:
        """Whether the sizes are known, and the matrices those that they were at the first product."""
        ranks = [len(_dims(value)) for value in (self.x, self.a, self.b)]
        return ranks[0] >= 2 and ranks[1:] == [2, 2] and all(map(is_never_written, (self.x, self.a, self.b)))

    def costs(self) -> tuple[Dim, Dim]:
        """The multiplications of `(x a) b` and of `x (a b)`."""
        rows = product(_dims(self.x)[:-1])
        (depth, middle), (_, columns) = _dims(self.a), _dims(self.b)
        folded = _is_constant(self.a) and _is_constant(self.b)
        inner = constant(0) if folded else depth * middle * columns
        return rows * depth * middle + rows * middle * columns, inner + rows * depth * columns

    def is_cheaper(self, op: MatmulOp, left: bool) -> bool:
        """Whether the other order than `(x a) b`, if that is what stands on the `left` of an op, takes less work."""
        old, new = self.costs() if left else reversed(self.costs())
        prover = prover_at(op)
        return new is not old and prover.less_equal(new, old) is True and prover.less_equal(old, new) is not True


def _dims(value: SSAValue) -> tuple[Dim, ...]:
    return dims_of(value) or ()


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, ConstantOp) and value.owner.array is not None

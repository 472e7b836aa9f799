"""`unroll`: unrolled loops to straight-line code."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.tir.bounds import constant_bounds
from tir_dialect.ops.loops import ForOp
from tir_dialect.types import LoopKind


@dataclass(frozen=True)
class UnrollPass(ModulePass):
    """Unrolls every `tir.for unrolled` of constant extent.

    ```mlir
    tir.for unrolled (%i) in (%c2) { body(%i) }
    // becomes
    %0 = arith.constant 0 : index
    body(%0)
    %1 = arith.constant 1 : index
    body(%1)
    ```

    A loop of unknown trip count, or whose copies would have more than `max_ops` ops, is kept; `convert-tir-to-llvm`
    marks it for LLVM's unroller, which is also faster. Innermost loops come first. Accepts every valid module.
    """

    name = "unroll"

    max_ops: int = 4096
    """The limit on the number of ops after unrolling one loop."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Unrolls in place."""
        for loop in reversed([inner for inner in op.walk() if isinstance(inner, ForOp)]):
            bounds = constant_bounds(loop)
            if loop.kind.data is LoopKind.UNROLLED and bounds is not None:
                size = sum(1 for _ in loop.body.walk())
                if size * (bounds[1] - bounds[0]) <= self.max_ops:
                    _unroll(loop, *bounds)


def _unroll(loop: ForOp, lower: int, upper: int) -> None:
    for number in range(lower, upper):
        index = arith.ConstantOp(IntegerAttr(number, IndexType()))
        index.result.name_hint = loop.induction_var.name_hint
        inherit_location(loop, index)
        Rewriter.insert_op(index, InsertPoint.before(loop))
        values: dict[SSAValue, SSAValue] = {loop.induction_var: index.result}
        for op in loop.body.block.ops:
            Rewriter.insert_op(op.clone(values), InsertPoint.before(loop))
    Rewriter.erase_op(loop)

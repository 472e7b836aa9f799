"""`unroll`: unrolled loops to straight-line code, where their bounds are constants."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.locations import inherit_location
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from tir_dialect.analysis.dims import dim_of
from tir_dialect.ops.loops import ForOp
from tir_dialect.types import LoopKind


def constant_value(value: SSAValue) -> int | None:
    """The integer that a value is, or None."""
    dim = dim_of(value)
    return None if dim is None else dim.constant_value


def constant_bounds(loop: ForOp) -> tuple[int, int] | None:
    """Lower and upper bound of a loop, if they are constants; the upper one is at least the lower one."""
    lower = 0 if loop.lower is None else constant_value(loop.lower)
    upper = constant_value(loop.upper)
    return None if lower is None or upper is None else (lower, max(lower, upper))


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
        apply_patterns(op, [UnrollLoop(self.max_ops)], reverse=True)


@dataclass(frozen=True)
class UnrollLoop(RewritePattern):
    """A loop of constant extent is its body for each index: `for unrolled (i) in (2) { f(i) }  ->  f(0); f(1)`."""

    max_ops: int

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ForOp, rewriter: PatternRewriter) -> None:
        bounds = constant_bounds(op)
        if op.kind.data is not LoopKind.UNROLLED or bounds is None:
            return
        if sum(1 for _ in op.body.walk()) * (bounds[1] - bounds[0]) > self.max_ops:
            return
        copies: list[Operation] = []
        for number in range(*bounds):
            index = arith.ConstantOp(IntegerAttr(number, IndexType()))
            index.result.name_hint = op.induction_var.name_hint
            inherit_location(op, index)
            values: dict[SSAValue, SSAValue] = {op.induction_var: index.result}
            copies += [index, *(inner.clone(values) for inner in op.body.block.ops)]
        rewriter.replace(op, copies, [])

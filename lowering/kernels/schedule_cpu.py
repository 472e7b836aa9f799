"""`schedule-cpu`: kernels get the loops that suit a CPU."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from lowering.kernels.stage_rewrites import flatten_blocks
from lowering.registry import pass_target
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class ScheduleCPUPass(ModulePass):
    """Schedules every PrimFunc for the CPU, by the first rule that matches its structure; others stay as they are.

    ```mlir
    tir.for (%i, %j, %r) in (%m, %n, %k) {
      tir.block "matmul" (...) { ... C[i, j] += A[i, r] * B[r, j] }
    }
    // becomes packed panels and a register tile of accumulators
    ```

    Blocks in blocks are one block, where the outer ones only pass on their iterators.

    Micro-kernels become private functions, which are equal in all kernels and are compiled once.

    Sums may be reassociated, as with any matrix library, and products are added to them without being rounded. Nothing
    else changes a result. Accumulation of long sums is blocked. No order depends on the number of threads.
    """

    name = "schedule-cpu"

    target: str = ""
    """The machine; this one if it is not named."""

    explain: bool = False
    """Whether functions with contractions get an attribute `explain`: which generators made the code, and why."""

    inner_stages: bool = True
    """Whether stages inside of other loops are scheduled, too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Schedules each function by itself."""
        target = pass_target(self.target)
        for func in [each for each in op.ops if isinstance(each, PrimFuncOp)]:
            explanation = schedule(func, target, inner_stages=self.inner_stages)
            if self.explain and explanation is not None:
                func.attributes["explain"] = StringAttr(explanation)


def schedule_module(module: ModuleOp, target: Target) -> None:
    """Rewrites all PrimFuncs of a module for a machine."""
    for func in [op for op in module.ops if isinstance(op, PrimFuncOp)]:
        schedule(func, target)


def schedule(func: PrimFuncOp, target: Target, *, inner_stages: bool = True) -> str | None:
    """Rewrites one function for a machine; says which generators made its contractions and why, if it has any.

    With `inner_stages` those inside of other loops too.
    """
    flatten_blocks(func)
    explanation = _schedule_compute_bound(func, target, inner_stages) if _has_reduction(func) else None
    if explanation is None:
        # Not at the top: rows, columns and scans are the other half of the generators.
        from lowering.kernels.memory_bound import schedule_memory_bound

        schedule_memory_bound(func, target)
    return explanation


def _schedule_compute_bound(func: PrimFuncOp, target: Target, inner_stages: bool) -> str | None:
    # Not at the top: GEMM, convolutions and attention are half of the generators, and many programs have none of them.
    from lowering.kernels.compute_bound import schedule_compute_bound, schedule_inner_stages

    explanation = schedule_compute_bound(func, target)
    return schedule_inner_stages(func, target) if explanation is None and inner_stages else explanation


def _has_reduction(func: PrimFuncOp) -> bool:
    """Whether some block reduces; without one there is no contraction."""
    return any(_reduces(op) for op in func.body.walk() if isinstance(op, BlockOp))


def _reduces(block: BlockOp) -> bool:
    return block.init is not None or any(iterator.kind is IteratorKind.REDUCE for iterator in block.iterators)

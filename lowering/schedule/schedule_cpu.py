"""`schedule-cpu`: kernels get the loops that suit a CPU."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowering.schedule.cpu.compute_bound import schedule_compute_bound
from lowering.schedule.cpu.memory_bound import schedule_memory_bound
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target


@dataclass(frozen=True)
class ScheduleCPUPass(ModulePass):
    """Rewrites every PrimFunc by the first rule whose structure it has; others stay as they are.

    ```mlir
    tir.for (%i, %j, %r) in (%m, %n, %k) {
      tir.block "matmul" (...) { ... C[i, j] += A[i, r] * B[r, j] }
    }
    // becomes packed panels and a tile of sums in registers
    ```

    Sums may be made in another order, as with any matrix library, and products fused with sums; nothing else changes a
    result.
    """

    name = "schedule-cpu"

    target: str = ""
    """The machine; this one if it is not named."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Schedules each function by itself."""
        schedule_module(op, Target.parse(self.target) if self.target else Target.host())


def schedule_module(module: ModuleOp, target: Target) -> None:
    """Rewrites all PrimFuncs of a module for a machine."""
    for func in module.ops:
        if isinstance(func, PrimFuncOp):
            schedule(func, target)


def schedule(func: PrimFuncOp, target: Target) -> None:
    """Rewrites one function for a machine."""
    if not schedule_compute_bound(func, target):
        schedule_memory_bound(func, target)

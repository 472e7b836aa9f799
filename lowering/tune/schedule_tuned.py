"""`schedule-tuned`: kernels get the schedules that tuning found, or the default ones."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowering.compiler.kernels import kernel_groups
from lowering.compiler.tuning_database import default_database, kernel_key
from lowering.kernels.schedule_cpu import schedule
from lowering.registry import pass_target
from tir_dialect.ops.function import PrimFuncOp


@dataclass(frozen=True)
class ScheduleTunedPass(ModulePass):
    """Schedules PrimFuncs as `build` does: with what tuning has found for a kernel, the others as `schedule-cpu` does.

    ```mlir
    tir.for (%i) in (%n) { tir.block "exp" (...) { ... } }   // for which one thread was the fastest
    // becomes
    tir.for (%i) in (%blocks) { ... }                        // where `schedule-cpu` makes `tir.for parallel`
    ```

    Expects what `relax-to-vm` leaves, since kernels are found by what they compute then. The user's database is
    consulted: `$RELAX_TUNING_FILE`, nothing with `RELAX_TUNING=0`. A record for which the rules make other code today
    is not used, with a warning. What was measured is a kernel: private functions, which kernels call, are scheduled as
    always, as they were when it was measured.
    """

    name = "schedule-tuned"

    target: str = ""
    """The machine; this one if it is not named."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Looks all kernels up, then schedules each function by itself."""
        target = pass_target(self.target)
        records = default_database().records_or_warn()
        keys = {group[0]: kernel_key(group, target) for group in kernel_groups(op)} if records else {}
        for func in [inner for inner in op.ops if isinstance(inner, PrimFuncOp)]:
            record = records.get(keys.get(func, ""))
            if record is None:
                schedule(func, target)
            else:
                record.choice.schedule_as_measured(func, target, record.code, record.kernel)

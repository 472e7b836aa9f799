"""`insert-guards`: what inference could neither prove nor refute is checked at run time."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from relax_dialect.interfaces import InfersResultTypes
from relax_dialect.ops.guard import GuardOp
from relax_dialect.struct_info.types import TensorType


@dataclass(frozen=True)
class InsertGuardsPass(ModulePass):
    """Puts a `relax.guard` on the operand of every op with an open question about its dimensions.

    Before:

    ```mlir
    %z = relax.add %x, %y : !relax.tensor<[broadcast(n, m)], f32>
    ```

    After:

    ```mlir
    %x_1 = relax.guard %x, broadcast n, m, "dimension 0 of ..."
    %z = relax.add %x_1, %y : !relax.tensor<[broadcast(n, m)], f32>
    ```

    Has to run before the ops that know of their checks are replaced. Idempotent: an operand that is guarded by the same
    check is not guarded again.
    """

    name = "insert-guards"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Visits every op that infers its results."""
        for inner in [inner for inner in op.walk() if isinstance(inner, InfersResultTypes)]:
            _guard(inner)


def _guard(op: InfersResultTypes) -> None:
    index = next((i for i, operand in enumerate(op.operands) if isinstance(operand.type, TensorType)), None)
    if index is None:
        return
    for check in op.runtime_checks():
        guard = GuardOp.of(op.operands[index], check)
        if _is_guarded(op, guard):
            guard.erase()
            continue
        inherit_location(op, guard)
        guard.result.name_hint = op.operands[index].name_hint
        Rewriter.insert_op(guard, InsertPoint.before(op))
        op.operands[index] = guard.result


def _is_guarded(op: InfersResultTypes, guard: GuardOp) -> bool:
    value = guard.value
    while isinstance(value.owner, GuardOp):
        if value.owner.properties == guard.properties:
            return True
        value = value.owner.value
    return False

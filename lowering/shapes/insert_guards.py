"""`insert-guards`: what inference could neither prove nor refute is checked at run time."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import fail
from lowering.locations import inherit_location
from lowering.shapes.prim_func_calls import open_checks
from relax_dialect.inference import DimCheck
from relax_dialect.interfaces import InfersResultTypes
from relax_dialect.ops.call_tir import CallTIRInplaceOp, CallTIROp, DestinationPassing
from relax_dialect.ops.guard import GuardOp
from relax_dialect.struct_info.types import TensorType


class InsertGuardsPass(ModulePass):
    """Puts a `relax.guard` on the first tensor operand of every op with an open question about its dimensions, or on
    what it makes if it has none.

    Before:

    ```mlir
    %z = relax.add %x, %y : !relax.tensor<[broadcast(n, m)], f32>
    ```

    After:

    ```mlir
    %x_1 = relax.guard %x, broadcast n, m, "dimension 0 of ..."
    %z = relax.add %x_1, %y : !relax.tensor<[broadcast(n, m)], f32>
    ```

    So are the sizes that a PrimFunc of the program is called with, where they may not be what its buffers say.

    Has to run before the ops that know of their checks are replaced. Idempotent: an operand that is guarded by the same
    check is not guarded again.
    """

    name = "insert-guards"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Visits every op that infers its results, and every call of a PrimFunc."""
        for inner in list(op.walk()):
            if isinstance(inner, InfersResultTypes):
                _guard(inner, inner.runtime_checks())
            elif isinstance(inner, CallTIROp | CallTIRInplaceOp):
                _guard(inner, open_checks(inner))


def _guard(op: Operation, checks: Iterable[DimCheck]) -> None:
    index = next((i for i, operand in enumerate(op.operands) if isinstance(operand.type, TensorType)), None)
    for check in checks:
        if index is not None:
            _guard_operand(op, index, check)
        elif isinstance(op, DestinationPassing):
            sides = f"{check.left} and {check.right}"
            fail(op, f"has no tensor argument to check {check.message} with: {sides} may differ", _NO_TENSOR)
        else:
            _guard_results(op, check)


_NO_TENSOR = "write the same dimension in both places"


def _guard_operand(op: Operation, index: int, check: DimCheck) -> None:
    value = op.operands[index]
    while isinstance(maker := value.owner, GuardOp):
        if maker.makes(check):
            return
        value = maker.value
    guard = _insert(op, GuardOp.of(op.operands[index], check), InsertPoint.before(op))
    op.operands[index] = guard.result


def _guard_results(op: Operation, check: DimCheck) -> None:
    """What is made of no tensor is checked before it is used."""
    for result in op.results:
        value, last = result, op
        while isinstance(user := value.get_user_of_unique_use(), GuardOp) and not user.makes(check):
            value, last = user.result, user
        if not isinstance(user, GuardOp):
            guard = _insert(op, GuardOp.of(value, check), InsertPoint.after(last))
            value.replace_uses_with_if(guard.result, lambda use, guard=guard: use.operation is not guard)


def _insert(op: Operation, guard: GuardOp, point: InsertPoint) -> GuardOp:
    inherit_location(op, guard)
    guard.result.name_hint = guard.value.name_hint
    Rewriter.insert_op(guard, point)
    return guard

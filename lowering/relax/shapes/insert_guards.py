"""`insert-guards`: what inference could neither prove nor refute is checked at run time."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import fail
from lowering.locations import inherit_location
from lowering.relax.shapes.prim_func_calls import open_checks
from relax_dialect.inference import DimCheck, DimRelation
from relax_dialect.interfaces import InfersResultTypes
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import CallTIRInplaceOp, CallTIROp, DestinationPassing
from relax_dialect.ops.dataflow import DataflowOp
from relax_dialect.ops.guard import GuardOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.symbols import free_symbols
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

    In a dataflow region, where nothing has effects, a guard of sizes that do not broadcast is on what the operand is
    made of, as early as the symbols are known, so that it is not between ops that can be fused.

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
            guard_operand(op, index, check)
        elif isinstance(op, DestinationPassing):
            sides = f"{check.left} and {check.right}"
            fail(op, f"has no tensor argument to check {check.message} with: {sides} may differ", _NO_TENSOR)
        else:
            _guard_results(op, check)


_NO_TENSOR = "write the same dimension in both places"


def guard_operand(op: Operation, index: int, check: DimCheck) -> None:
    """Guards an operand, in a dataflow region the earliest value that it is made of: what is between can be fused."""
    position, symbols = op, check.left.symbols | check.right.symbols
    # Kernels of few operands that may be broadcast have loops for each way; of many they would not.
    broadcasts = check.relation is DimRelation.BROADCAST
    while True:
        value = position.operands[index]
        while isinstance(maker := value.owner, GuardOp):
            if maker.makes(check):
                return
            value = maker.value
        earlier = None if broadcasts else _operand_with(position, maker, symbols)
        if earlier is None or not isinstance(maker, Operation):
            break
        position, index = maker, earlier
    guard = _insert(op, GuardOp.of(position.operands[index], check), InsertPoint.before(position))
    position.operands[index] = guard.result


def _operand_with(op: Operation, maker: Operation | Block, symbols: frozenset[str]) -> int | None:
    """The first tensor operand of what makes a value for an op, if all symbols are known there as well."""
    if not isinstance(maker, Operation) or not isinstance(maker.parent_op(), DataflowOp) or maker.parent != op.parent:
        return None
    known = {name for operand in maker.operands for name in free_symbols(operand.type)} | _symbols_around(maker)
    if isinstance(maker, MatchCastOp) or not symbols <= known:
        return None
    return next((i for i, operand in enumerate(maker.operands) if isinstance(operand.type, TensorType)), None)


def _symbols_around(op: Operation) -> set[str]:
    """The symbols that the arguments of the function around bind."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    return set() if parent is None else set(parent.function_type.symbol_names)


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

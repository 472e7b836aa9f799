"""Calls that write into their arguments: what they may write, and who sees it."""

from __future__ import annotations

from xdsl.utils.exceptions import VerifyException

from relax_dialect.analysis.aliases import origin, who_else_sees
from relax_dialect.external import IMPURITY, VERIFIERS
from relax_dialect.ops.call_tir import CallTIRInplaceOp
from relax_dialect.ops.prim_func import find_prim_func
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType


@IMPURITY.attach("relax.call_tir_inplace")
def inplace_impurity(op: CallTIRInplaceOp) -> str | None:
    """Why a call in place has a visible effect: somebody else sees an argument that it writes."""
    for index in op.targets:
        if 0 <= index < len(op.arguments):
            reason = who_else_sees(op.arguments[index])
            if reason is not None:
                return f"writes its argument #{index}, {reason}"
    return None


@VERIFIERS.attach("relax.call_tir_inplace")
def verify_inplace(op: CallTIRInplaceOp) -> None:
    """Raises `VerifyException` for a call that writes into a constant, or into what another argument is part of."""
    memory = [origin(argument) if isinstance(argument.type, TensorType) else None for argument in op.arguments]
    for target, result in zip(op.targets, op.res, strict=True):
        source = memory[target] if target >= 0 else None
        if source is not None and isinstance(source.owner, ConstantOp):
            raise VerifyException(
                f"'relax.call_tir_inplace' op writes result #{result.index} into a constant, argument #{target}"
            )  # C6
    func = find_prim_func(op, op.callee)
    if func is not None and func.may_alias is not None:
        return
    for target in op.targets:
        for index, other in enumerate(memory):
            if target >= 0 and index != target and other is memory[target]:
                raise VerifyException(
                    f"'relax.call_tir_inplace' op writes its argument #{target}, which argument #{index} is part "
                    "of too: pass a copy, or let the PrimFunc say 'may_alias'"
                )  # C7

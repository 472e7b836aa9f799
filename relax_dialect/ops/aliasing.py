"""Whose memory a value is: whether a write into it can be seen elsewhere."""

from __future__ import annotations

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from relax_dialect.ops.operator import Operator
from relax_dialect.traits import AliasesOperand, EndsInYield


def origin(value: SSAValue) -> SSAValue:
    """The value under whose type the memory of `value` was made, or got into the function or region."""
    while isinstance(value, OpResult) and value.op.has_trait(AliasesOperand) and value.index == 0:
        value = value.op.operands[0]
    return value


def who_else_sees(value: SSAValue, user: type[Operation]) -> str | None:
    """Why a write into `value` by its user may be seen by others, or `None` if nobody else can have the memory.

    Ops of the class `user`, as operators do, make new memory for their results.
    """
    while isinstance(value, OpResult):
        if not value.has_one_use():
            return "which is used elsewhere"
        if (inside := _yielded(value)) is not None:
            value = inside
            continue
        if not value.op.has_trait(AliasesOperand):
            is_new = isinstance(value.op, user | Operator)
            return None if is_new else f"the result of '{value.op.name}', whose memory others may have"
        value = value.op.operands[0]
    return "a parameter, which the caller can see" if isinstance(value, BlockArgument) else "which is not known"


def _yielded(value: OpResult) -> SSAValue | None:
    """The value in the region of a group that is its result."""
    if not value.op.has_trait(EndsInYield):
        return None
    terminator = value.op.regions[0].block.last_op
    return None if terminator is None else terminator.operands[value.index]

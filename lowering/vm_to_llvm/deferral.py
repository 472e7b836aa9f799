"""Tail calls of function values, and the functions that check their results.

A result of unknown type is checked after the call. So that the frame of the caller can be released before it, the
checks are a function of their own, which takes the numbers that they use and the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.traits import NoMemoryEffect, Pure

from lowering.vm_to_llvm.plan import is_number
from vm_dialect.ops.base import MayRaise
from vm_dialect.ops.calls import CallClosureOp
from vm_dialect.ops.checks import CheckOp
from vm_dialect.ops.memory import KillOp
from vm_dialect.ops.structure import FuncOp, ReturnOp
from vm_dialect.types import OBJECT


@dataclass(frozen=True)
class Rest:
    """What a function does with the result of its last call."""

    check: FuncOp | None
    """Returns the result if that is as expected; `None` if anything is."""

    captured: Sequence[SSAValue]
    """The first arguments of `check`, all of them numbers; the last one is the result."""


def rests_of_calls(func: FuncOp) -> dict[CallClosureOp, Rest]:
    """The calls of function values after which a function only checks their result and returns it."""
    found: dict[CallClosureOp, Rest] = {}
    for op in func.walk():
        if isinstance(op, CallClosureOp) and (following := _checks_and_return(op)) is not None:
            # What is used besides the result, each once.
            call = op
            own = {call.result, *(result for op in following for result in op.results)}
            captured = list(dict.fromkeys(operand for op in following for operand in op.operands if operand not in own))
            if all(map(is_number, captured)):
                check = _check_function(f"{func.sym_name.data}.result{len(found)}", func, op, following, captured)
                found[op] = Rest(check, captured)
    return found


def _checks_and_return(call: CallClosureOp) -> list[Operation] | None:
    """The ops that look at the result, and the return of it; the end of the frame is the end of other values."""
    following: list[Operation] = []
    same: set[SSAValue | None] = {call.result}
    op = call.next_op
    while op is not None and not isinstance(op, ReturnOp):
        if not isinstance(op, KillOp):
            if not any(op.has_trait(trait) for trait in (MayRaise, Pure, NoMemoryEffect)):
                return None
            following.append(op)
        if isinstance(op, CheckOp) and op.value in same:
            same.add(op.results[0])
        op = op.next_op
    return [*following, op] if op is not None and op.value in same else None


def _check_function(
    name: str, func: FuncOp, call: CallClosureOp, following: Sequence[Operation], captured: Sequence[SSAValue]
) -> FuncOp | None:
    if call.result is None or len(following) == 1:
        return None
    inputs = [*(value.type for value in captured), OBJECT]
    function = FuncOp(name, (inputs, func.function_type.outputs.data), visibility="private")
    function.location = call.location
    values: dict[SSAValue, SSAValue] = dict(zip((*captured, call.result), function.body.block.args, strict=True))
    for op in following:
        copy = op.clone(values)
        copy.location = op.location
        function.body.block.add_op(copy)
    return function

"""`vm.int`: integers are registers, so arithmetic is LLVM's, with the semantics of `vm_dialect.integers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import llvm
from xdsl.ir import Operation, SSAValue

from lowering.native.state import FunctionState
from lowering.native.values import Number
from vm_dialect.ops.constants import ConstOp
from vm_dialect.ops.integers import IntKind, IntOp

_ARITHMETIC: dict[IntKind, type[llvm.ArithmeticBinOpOverflow | llvm.ArithmeticBinOperation]] = {
    IntKind.ADD: llvm.AddOp,
    IntKind.SUB: llvm.SubOp,
    IntKind.MUL: llvm.MulOp,
    IntKind.AND: llvm.AndOp,
}

_COMPARISONS: dict[IntKind, str] = {
    IntKind.EQ: "eq",
    IntKind.NE: "ne",
    IntKind.LT: "slt",
    IntKind.LE: "sle",
    IntKind.GT: "sgt",
    IntKind.GE: "sge",
}


def lower_int(state: FunctionState, op: IntOp) -> None:
    """One function of two integers."""
    lhs, rhs = state.numbers((op.lhs, op.rhs))
    state.values[op.result] = Number(_compute(state, op, lhs, rhs))


def _compute(state: FunctionState, op: IntOp, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    emit, kind = state.emit, op.kind.data
    if kind in _ARITHMETIC:
        return emit.value(_ARITHMETIC[kind](lhs, rhs))
    if kind in _COMPARISONS:
        return emit.compare(_COMPARISONS[kind], lhs, rhs)
    match kind:
        case IntKind.OR:
            return emit.value(llvm.OrOp(lhs, rhs))
        case IntKind.MIN:
            return emit.select(emit.compare("slt", lhs, rhs), lhs, rhs)
        case IntKind.MAX:
            return emit.select(emit.compare("sgt", lhs, rhs), lhs, rhs)
        case IntKind.BROADCAST:
            return emit.select(emit.compare("eq", lhs, emit.integer(1)), rhs, lhs)
        case _:
            return _divide(state, op, lhs, rhs)


def _divide(state: FunctionState, op: IntOp, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """`floordiv` or `mod`, which round towards minus infinity, where LLVM's division rounds towards 0."""
    emit = state.emit
    zero = emit.integer(0)
    divisor = op.rhs.owner.python_value if isinstance(op.rhs.owner, ConstOp) else None
    if not divisor:
        state.fail_if(emit.compare("eq", rhs, zero), "vmrt_fail_division", [])
    if divisor is None or divisor == -1:
        # The least integer by -1 traps on some processors: -a by 1 gives the same quotient and remainder.
        minus_one = emit.compare("eq", rhs, emit.integer(-1))
        lhs = emit.select(minus_one, emit.value(llvm.SubOp(zero, lhs)), lhs)
        rhs = emit.select(minus_one, emit.integer(1), rhs)
    remainder = emit.value(llvm.SRemOp(lhs, rhs))
    signs_differ = emit.compare("slt", emit.value(llvm.XOrOp(remainder, rhs)), zero)
    rounds = emit.value(llvm.AndOp(emit.compare("ne", remainder, zero), signs_differ))
    if op.kind.data is IntKind.MOD:
        return emit.select(rounds, emit.value(llvm.AddOp(remainder, rhs)), remainder)
    quotient = emit.value(llvm.SDivOp(lhs, rhs))
    return emit.select(rounds, emit.value(llvm.SubOp(quotient, emit.integer(1))), quotient)


LOWERINGS: dict[type[Operation], Callable[[FunctionState, Any], None]] = {IntOp: lower_int}
"""Of the arithmetic."""

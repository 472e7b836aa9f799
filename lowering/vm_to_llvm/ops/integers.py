"""`vm.int`: integers are registers, so arithmetic is LLVM's, with the semantics of `vm_dialect.integers`."""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, i1, i64
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.rewriting import op_rewrite_pattern
from lowering.vm_to_llvm.state import FunctionState
from lowering.vm_to_llvm.values import Number, result_interval
from vm_dialect.integers import GREATEST, LEAST
from vm_dialect.ops.constants import ConstOp
from vm_dialect.ops.integers import IntKind, IntOp

_WITH_OVERFLOW = llvm.LLVMStructType.from_type_list([i64, i1])

_EXACT: dict[IntKind, type[llvm.ArithmeticBinOpOverflow]] = {
    IntKind.ADD: llvm.AddOp,
    IntKind.ADD_SAT: llvm.AddOp,
    IntKind.SUB: llvm.SubOp,
    IntKind.MUL: llvm.MulOp,
    IntKind.MUL_SAT: llvm.MulOp,
}
"""Where 64 bits certainly hold the result."""

_CHECKED: dict[IntKind, str] = {
    IntKind.ADD: "llvm.sadd.with.overflow.i64",
    IntKind.SUB: "llvm.ssub.with.overflow.i64",
    IntKind.MUL: "llvm.smul.with.overflow.i64",
}

_COMPARISONS: dict[IntKind, str] = {
    IntKind.EQ: "eq",
    IntKind.NE: "ne",
    IntKind.LT: "slt",
    IntKind.LE: "sle",
    IntKind.GT: "sgt",
    IntKind.GE: "sge",
}


class LowerInt(RewritePattern):
    """One function of two integers."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: IntOp, state: FunctionState) -> None:
        kind, lhs, rhs = op.kind.data, state.known_number(op.lhs), state.known_number(op.rhs)
        interval = result_interval(kind, lhs.interval, rhs.interval)
        if kind in _EXACT and interval.fits:
            result = state.emit.value(_EXACT[kind](lhs.ssa, rhs.ssa))
        else:
            result = _compute(state, op, lhs.ssa, rhs.ssa)
        state.values[op.result] = Number(result, interval.held)


def _compute(state: FunctionState, op: IntOp, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    emit, kind = state.emit, op.kind.data
    if kind in _COMPARISONS:
        return emit.compare(_COMPARISONS[kind], lhs, rhs)
    if kind in _CHECKED:
        return _checked(state, _CHECKED[kind], lhs, rhs)
    match kind:
        case IntKind.ADD_SAT:
            return emit.value(llvm.CallIntrinsicOp("llvm.sadd.sat.i64", (lhs, rhs), (i64,)))
        case IntKind.MUL_SAT:
            return _saturated_product(state, lhs, rhs)
        case IntKind.AND:
            return emit.value(llvm.AndOp(lhs, rhs))
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


def _with_overflow(state: FunctionState, intrinsic: str, lhs: SSAValue, rhs: SSAValue) -> tuple[SSAValue, SSAValue]:
    """A sum, difference or product, and whether 64 bits do not hold it."""
    emit = state.emit
    pair = emit.value(llvm.CallIntrinsicOp(intrinsic, (lhs, rhs), (_WITH_OVERFLOW,)))
    result, overflow = (
        emit.value(llvm.ExtractValueOp(DenseArrayBase.from_list(i64, [index]), pair, type_))
        for index, type_ in enumerate((i64, i1))
    )
    return result, overflow


def _checked(state: FunctionState, intrinsic: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    result, overflow = _with_overflow(state, intrinsic, lhs, rhs)
    state.fail_if(overflow, "vmrt_fail_overflow", [])
    return result


def _saturated_product(state: FunctionState, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    emit = state.emit
    result, overflow = _with_overflow(state, _CHECKED[IntKind.MUL], lhs, rhs)
    is_negative = emit.compare("slt", emit.value(llvm.XOrOp(lhs, rhs)), emit.integer(0))
    return emit.select(overflow, emit.select(is_negative, emit.integer(LEAST), emit.integer(GREATEST)), result)


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
        if op.kind.data is IntKind.FLOORDIV:
            is_least = emit.compare("eq", lhs, emit.integer(LEAST))
            state.fail_if(emit.value(llvm.AndOp(minus_one, is_least)), "vmrt_fail_overflow", [])
        lhs = emit.select(minus_one, emit.value(llvm.SubOp(zero, lhs)), lhs)
        rhs = emit.select(minus_one, emit.integer(1), rhs)
    remainder = emit.value(llvm.SRemOp(lhs, rhs))
    signs_differ = emit.compare("slt", emit.value(llvm.XOrOp(remainder, rhs)), zero)
    rounds = emit.value(llvm.AndOp(emit.compare("ne", remainder, zero), signs_differ))
    if op.kind.data is IntKind.MOD:
        return emit.select(rounds, emit.value(llvm.AddOp(remainder, rhs)), remainder)
    quotient = emit.value(llvm.SDivOp(lhs, rhs))
    return emit.select(rounds, emit.value(llvm.SubOp(quotient, emit.integer(1))), quotient)

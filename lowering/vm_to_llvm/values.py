"""Constants, tuples, and `vm.int`: integers are registers, small constants literals of the module, all others
objects that are made once.
"""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, i1, i64
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.rewriting import op_rewrite_pattern
from lowering.vm_to_llvm.abi import DTYPE, F64, I1, I32, I64, NULL
from lowering.vm_to_llvm.plan import Boxed, Interval, Number, result_interval
from lowering.vm_to_llvm.state import FunctionState
from vm_dialect.dtypes import ElementType, element_type
from vm_dialect.integers import GREATEST, LEAST
from vm_dialect.ops.values import (
    ConstantTensorOp,
    ConstOp,
    DtypeOp,
    IntKind,
    IntOp,
    MakeTupleOp,
    NullOp,
    StrOp,
    TupleGetOp,
)


def dtype_word(element: ElementType) -> int:
    """The `DLDataType` of an element type as one integer of 32 bits: code, bits and one lane."""
    return element.code | element.bits << 8 | 1 << 16


class LowerConst(RewritePattern):
    """A number is a register."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ConstOp, state: FunctionState) -> None:
        emit, value = state.emit, op.value
        if isinstance(value, FloatAttr):
            state.values[op.result] = Number(emit.float(value.value.data, F64))
            return
        number = value.value.data
        state.values[op.result] = Number(
            emit.integer(number, I1 if value.type == I1 else I64), Interval(number, number)
        )


class LowerStr(RewritePattern):
    """A string is a literal if it is short."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: StrOp, state: FunctionState) -> None:
        address = state.object_address(state.shared.string(op.value.data.encode()))
        state.values[op.result] = Boxed(address, owned=False)


class LowerDtype(RewritePattern):
    """An element type is a literal."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: DtypeOp, state: FunctionState) -> None:
        literal = state.shared.literal(DTYPE, dtype_word(element_type(str(op.value))))
        state.values[op.result] = Boxed(state.emit.address(literal), owned=False)


class LowerNull(RewritePattern):
    """Null is a literal."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: NullOp, state: FunctionState) -> None:
        literal = state.shared.literal(NULL, 0)
        state.values[op.result] = Boxed(state.emit.address(literal), owned=False)


class LowerConstantTensor(RewritePattern):
    """A constant tensor is an object that the loader hands over."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ConstantTensorOp, state: FunctionState) -> None:
        address = state.object_address(state.shared.constant(op.symbol.root_reference.data))
        state.values[op.result] = state.object_at(address, op.result, owned=False)


class LowerMakeTuple(RewritePattern):
    """A new array object, which holds references to its fields."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MakeTupleOp, state: FunctionState) -> None:
        slot = state.result_slot(op.result)
        fields = state.cell_array(op.fields)
        state.call("vmrt_make_tuple", [slot, fields, state.emit.integer(len(op.fields), I32)])
        state.values[op.result] = Boxed(slot, owned=True)


class LowerTupleGet(RewritePattern):
    """A copy of the field."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: TupleGetOp, state: FunctionState) -> None:
        slot = state.result_slot(op.result)
        index = state.emit.integer(op.index.value.data)
        state.call("vmrt_tuple_get", [slot, state.any_at(op.tuple, 0), index])
        state.values[op.result] = Boxed(slot, owned=True)


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
        result, overflow = _with_overflow(state, _CHECKED[kind], lhs, rhs)
        state.fail_if(overflow, "vmrt_fail_overflow", [])
        return result
    match kind:
        case IntKind.ADD_SAT:
            return emit.value(llvm.CallIntrinsicOp("llvm.sadd.sat.i64", (lhs, rhs), (i64,)))
        case IntKind.MUL_SAT:
            emit = state.emit
            result, overflow = _with_overflow(state, _CHECKED[IntKind.MUL], lhs, rhs)
            is_negative = emit.compare("slt", emit.value(llvm.XOrOp(lhs, rhs)), emit.integer(0))
            return emit.select(overflow, emit.select(is_negative, emit.integer(LEAST), emit.integer(GREATEST)), result)
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

"""One emitter per llvm op: a table from op class to the LLVM instruction it prints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from xdsl.dialects import llvm
from xdsl.ir import Operation

from lowering.llvm.text.attributes import fast_math_flags, integer_flags
from lowering.llvm.text.control_text import CONTROL_EMITTERS, call_to
from lowering.llvm.text.llvm_types import mangled
from lowering.llvm.text.memory_text import MEMORY_EMITTERS
from lowering.llvm.text.module_text import Emit, FunctionText
from lowering.tir_to_llvm import llvm_ext


def _binary(word: str, flags: Callable[[Operation], str], text: FunctionText, op: Operation) -> None:
    lhs, rhs = op.operands
    text.define(op.results[0], f"{word} {flags(op)}{text.typed(lhs)}, {text.names[rhs]}")


def _cast(word: str, text: FunctionText, op: Operation) -> None:
    target = text.types(op.results[0].type)
    text.define(op.results[0], f"{word} {integer_flags(op)}{text.typed(op.operands[0])} to {target}")


def _fneg(text: FunctionText, op: Operation) -> None:
    text.define(op.results[0], f"fneg {fast_math_flags(op)}{text.typed(op.operands[0])}")


def _icmp(text: FunctionText, op: Operation) -> None:
    predicate = llvm.ICmpPredicateFlag.from_int(cast(llvm.ICmpOp, op).predicate.value.data)
    text.define(op.results[0], f"icmp {predicate} {text.typed(op.operands[0])}, {text.names[op.operands[1]]}")


def _fcmp(text: FunctionText, op: Operation) -> None:
    if isinstance(op, llvm.FCmpOp):
        predicate = str(llvm.FCmpPredicateFlag.from_int(op.predicate.value.data))
    else:
        predicate = cast(llvm_ext.FCmpOp, op).predicate.data
    lhs, rhs = op.operands
    text.define(
        op.results[0], f"fcmp {fast_math_flags(op)}{predicate.lstrip('_')} {text.typed(lhs)}, {text.names[rhs]}"
    )


def _select(text: FunctionText, op: Operation) -> None:
    text.define(op.results[0], f"select {fast_math_flags(op)}{', '.join(map(text.typed, op.operands))}")


def _intrinsic(base: str, text: FunctionText, op: Operation) -> None:
    """An intrinsic that is overloaded on the type of its last operand; all results and operands are floats."""
    name = f"llvm.{base}.{mangled(text.types(op.operands[-1].type))}"
    call_to(text, op, name, op.operands, fast_math_flags(op))


def _extract_value(text: FunctionText, op: Operation) -> None:
    position = cast(llvm.ExtractValueOp, op).position.get_values()
    text.define(op.results[0], f"extractvalue {text.typed(op.operands[0])}, {', '.join(map(str, position))}")


def _insert_value(text: FunctionText, op: Operation) -> None:
    insert = cast(llvm.InsertValueOp, op)
    position = ", ".join(map(str, insert.position.get_values()))
    text.define(op.results[0], f"insertvalue {text.typed(insert.container)}, {text.typed(insert.value)}, {position}")


def _insert_element(text: FunctionText, op: Operation) -> None:
    text.define(op.results[0], f"insertelement {', '.join(map(text.typed, op.operands))}")


def _extract_element(text: FunctionText, op: Operation) -> None:
    text.define(op.results[0], f"extractelement {', '.join(map(text.typed, op.operands))}")


def _shuffle(text: FunctionText, op: Operation) -> None:
    mask = cast(llvm.ShuffleVectorOp, op).mask.get_values()
    lanes = ", ".join("i32 poison" if lane == -1 else f"i32 {lane}" for lane in mask)
    operands = ", ".join(map(text.typed, op.operands))
    text.define(op.results[0], f"shufflevector {operands}, <{len(mask)} x i32> <{lanes}>")


def _constant(text: FunctionText, op: Operation) -> None:
    """An operand of others; LLVM lets constants have names only as the result of an instruction."""
    if (spelled := text.long_constants.get(op)) is not None:
        type_name = text.types(op.results[0].type)
        text.define(op.results[0], f"bitcast {type_name} {spelled} to {type_name}")


def _nothing(text: FunctionText, op: Operation) -> None:
    """The op is an operand of others."""


_INTEGER_BINARY: dict[type[Operation], str] = {
    llvm.AddOp: "add",
    llvm.SubOp: "sub",
    llvm.MulOp: "mul",
    llvm.UDivOp: "udiv",
    llvm.SDivOp: "sdiv",
    llvm.URemOp: "urem",
    llvm.SRemOp: "srem",
    llvm.AndOp: "and",
    llvm.OrOp: "or",
    llvm.XOrOp: "xor",
    llvm.ShlOp: "shl",
    llvm.LShrOp: "lshr",
    llvm.AShrOp: "ashr",
}

_FLOAT_BINARY: dict[type[Operation], str] = {
    llvm.FAddOp: "fadd",
    llvm.FSubOp: "fsub",
    llvm.FMulOp: "fmul",
    llvm.FDivOp: "fdiv",
    llvm.FRemOp: "frem",
}

_CASTS: dict[type[Operation], str] = {
    llvm.TruncOp: "trunc",
    llvm.ZExtOp: "zext",
    llvm.SExtOp: "sext",
    llvm.PtrToIntOp: "ptrtoint",
    llvm.IntToPtrOp: "inttoptr",
    llvm.BitcastOp: "bitcast",
    llvm.FPExtOp: "fpext",
    llvm.FPTruncOp: "fptrunc",
    llvm.SIToFPOp: "sitofp",
    llvm_ext.UIToFPOp: "uitofp",
    llvm_ext.FPToSIOp: "fptosi",
    llvm_ext.FPToUIOp: "fptoui",
}

_INTRINSICS: dict[type[Operation], str] = {
    llvm.FAbsOp: "fabs",
    llvm.FCeilOp: "ceil",
    llvm.FCopySignOp: "copysign",
    llvm.FCosOp: "cos",
    llvm.FExpOp: "exp",
    llvm.FExp2Op: "exp2",
    llvm.FFloorOp: "floor",
    llvm.FLogOp: "log",
    llvm.FLog2Op: "log2",
    llvm.FMAOp: "fma",
    llvm.FPowOp: "pow",
    llvm.FSinOp: "sin",
    llvm.FSqrtOp: "sqrt",
    llvm.VectorFMaxOp: "maxnum",
    llvm.VectorFMinOp: "minnum",
    llvm.VectorReduceFAddOp: "vector.reduce.fadd",
    llvm.VectorReduceFMulOp: "vector.reduce.fmul",
}

_OTHERS: dict[type[Operation], Emit] = {
    llvm.AddressOfOp: _nothing,
    llvm.ConstantOp: _constant,
    llvm.ExtractValueOp: _extract_value,
    llvm.FCmpOp: _fcmp,
    llvm.FNegOp: _fneg,
    llvm.ICmpOp: _icmp,
    llvm.InsertElementOp: _insert_element,
    llvm.InsertValueOp: _insert_value,
    llvm.SelectOp: _select,
    llvm.ShuffleVectorOp: _shuffle,
    llvm.UndefOp: _nothing,
    llvm.ZeroOp: _nothing,
    llvm_ext.ExtractElementOp: _extract_element,
    llvm_ext.FCmpOp: _fcmp,
    llvm_ext.SelectOp: _select,
}

EMITTERS: dict[type[Operation], Emit] = {
    **{op: partial(_binary, word, integer_flags) for op, word in _INTEGER_BINARY.items()},
    **{op: partial(_binary, word, fast_math_flags) for op, word in _FLOAT_BINARY.items()},
    **{op: partial(_cast, word) for op, word in _CASTS.items()},
    **{op: partial(_intrinsic, base) for op, base in _INTRINSICS.items()},
    **_OTHERS,
    **MEMORY_EMITTERS,
    **CONTROL_EMITTERS,
}
"""Every op of the llvm and llvm_ext dialects that stands in a block."""

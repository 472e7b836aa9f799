"""Emitters of calls and terminators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Operation, SSAValue

from lowering.llvm.errors import CodegenError
from lowering.llvm.text.attributes import LOOP_HINTS, fast_math_flags
from lowering.llvm.text.llvm_types import quoted
from lowering.llvm.text.module_text import Emit, FunctionText
from lowering.tir_to_llvm import llvm_ext


def call_to(text: FunctionText, op: Operation, name: str, operands: Sequence[SSAValue], flags: str = "") -> None:
    """A call of an intrinsic, which is declared on the way."""
    result = text.types(op.results[0].type) if op.results else "void"
    callee = text.module.declare(name, result, [text.types(operand.type) for operand in operands])
    _call(text, op, f"call {flags}{result} {callee}({', '.join(map(text.typed, operands))})")


def _call(text: FunctionText, op: Operation, line: str) -> None:
    if op.results:
        text.define(op.results[0], line)
    else:
        text.emit(line)


def _call_intrinsic(text: FunctionText, op: Operation) -> None:
    call = cast(llvm.CallIntrinsicOp, op)
    call_to(text, op, call.intrin.data, _arguments(op), fast_math_flags(op))


def _arguments(op: Operation) -> Sequence[SSAValue]:
    """The operands, all of which are arguments where there are no bundles: quicker than to ask for the groups."""
    sizes = op.properties.get("op_bundle_sizes")
    if isinstance(sizes, DenseArrayBase) and sizes.data.data:
        raise CodegenError(f"'{op.name}' op has operand bundles, which have no LLVM text here, expected none")
    return op.operands


def _call_function(text: FunctionText, op: Operation) -> None:
    call = cast(llvm.CallOp, op)
    arguments = _arguments(op)
    result = text.types(op.results[0].type) if op.results else "void"
    if call.callee is None:
        callee, arguments = text.names[arguments[0]], arguments[1:]
    else:
        callee = f"@{quoted(call.callee.string_value())}"
    if call.var_callee_type is not None:
        result = text.types(call.var_callee_type)
    tail = "" if call.TailCallKind.data == "none" else f"{call.TailCallKind.data} "
    convention = "" if call.CConv.cconv_name == "ccc" else f"{call.CConv.cconv_name} "
    flags = fast_math_flags(op)
    _call(text, op, f"{tail}call {flags}{convention}{result} {callee}({', '.join(map(text.typed, arguments))})")


def _inline_asm(text: FunctionText, op: Operation) -> None:
    asm = cast(llvm.InlineAsmOp, op)
    result = text.types(op.results[0].type) if op.results else "void"
    words = ["sideeffect"] * (asm.has_side_effects is not None) + ["alignstack"] * (asm.is_align_stack is not None)
    words += ["inteldialect"] * (asm.asm_dialect is not None and asm.asm_dialect.value.data == 1)
    strings = ", ".join(f'"{string.data.translate(_ASM_ESCAPES)}"' for string in (asm.asm_string, asm.constraints))
    operands = ", ".join(map(text.typed, asm.operands_))
    _call(text, op, f"call {result} {' '.join(['asm', *words])} {strings}({operands})")


def _loop_hints(text: FunctionText, op: Operation) -> str:
    hints = op.attributes.get(LOOP_HINTS)
    return "" if hints is None else f", !llvm.loop {text.module.metadata.loop(hints)}"


def _br(text: FunctionText, op: Operation) -> None:
    (label,) = text.edges([(op.successors[0], op.operands)])
    text.emit(f"br {label}{_loop_hints(text, op)}")


def _cond_br(text: FunctionText, op: Operation) -> None:
    condition, *rest = op.operands
    then, otherwise = op.successors
    count = len(then.args)
    labels = text.edges([(then, rest[:count]), (otherwise, rest[count:])])
    text.emit(f"br {text.typed(condition)}, {', '.join(labels)}{_loop_hints(text, op)}")


def _switch(text: FunctionText, op: Operation) -> None:
    switch = cast(llvm_ext.SwitchOp, op)
    operands, targets = list(switch.case_operands), [(switch.default_block, list(switch.default_operands))]
    for block, count in zip(switch.case_blocks, switch.case_operand_segments.get_values(), strict=True):
        targets.append((block, operands[: int(count)]))
        operands = operands[int(count) :]
    default, *labels = text.edges(targets)
    type_name = text.types(switch.flag.type)
    values = cast(Sequence[int], switch.case_values.get_values())
    cases = " ".join(f"{type_name} {value}, {label}" for value, label in zip(values, labels, strict=True))
    text.emit(f"switch {text.typed(switch.flag)}, {default} [ {cases} ]")


def _return(text: FunctionText, op: Operation) -> None:
    text.emit(f"ret {text.typed(op.operands[0]) if op.operands else 'void'}")


def _unreachable(text: FunctionText, op: Operation) -> None:
    text.emit("unreachable")


def _stack_save(text: FunctionText, op: Operation) -> None:
    call_to(text, op, "llvm.stacksave.p0", ())


def _stack_restore(text: FunctionText, op: Operation) -> None:
    call_to(text, op, "llvm.stackrestore.p0", op.operands)


_ASM_ESCAPES = {ord('"'): "\\22", ord("\\"): "\\5C", ord("\n"): "\\0A", ord("\t"): "\\09"}


CONTROL_EMITTERS: dict[type[Operation], Emit] = {
    llvm.BrOp: _br,
    llvm.CallIntrinsicOp: _call_intrinsic,
    llvm.CallOp: _call_function,
    llvm.CondBrOp: _cond_br,
    llvm.InlineAsmOp: _inline_asm,
    llvm.ReturnOp: _return,
    llvm.StackRestoreOp: _stack_restore,
    llvm.StackSaveOp: _stack_save,
    llvm.UnreachableOp: _unreachable,
    llvm_ext.SwitchOp: _switch,
}

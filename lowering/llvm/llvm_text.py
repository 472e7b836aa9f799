"""A printer of llvm-dialect modules as LLVM IR, in one pass over the ops.

It replaces `xdsl.backend.llvm.convert`, which builds an `llvmlite.ir` module first and knows fewer ops. Every function
is printed separately; constants, addresses and undefined values are operands, not instructions. An edge to a block with
arguments gets a block of its own where a branch names the same successor twice, because LLVM's phi nodes identify edges
by their source block only.

There is one emitter per llvm op, in a table from op class to the LLVM instruction that it prints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from lowering.llvm import llvm_ext
from lowering.llvm.binding import CodegenError
from lowering.llvm.llvm_types import (
    LOOP_HINTS,
    fast_math_flags,
    integer_flags,
    mangled,
    quoted,
    vector_count,
    vector_element,
)
from lowering.llvm.module_text import Emit, FunctionText, ModuleText
from tir_dialect.garbage import release
from tir_dialect.ops.memory import i32_array


def _alloca(text: FunctionText, op: Operation) -> None:
    alloca = cast("llvm.AllocaOp", op)
    align = f", align {alloca.alignment.value.data}" if alloca.alignment is not None else ""
    text.define(op.results[0], f"alloca {text.types(alloca.elem_type)}, {text.typed(alloca.size)}{align}")


def _load(text: FunctionText, op: Operation) -> None:
    result, (pointer,) = op.results[0], op.operands
    atomic, ordering = _ordering(op)
    text.define(result, f"load{atomic} {text.types(result.type)}, {text.typed(pointer)}{ordering}{_align(op)}")


def _store(text: FunctionText, op: Operation) -> None:
    store = cast("llvm.StoreOp", op)
    atomic, ordering = _ordering(op)
    volatile = " volatile" if store.volatile_ is not None else ""
    value, pointer = map(text.typed, op.operands)
    hint = f", !nontemporal {text.module.metadata.shared('!{i32 1}')}" if store.nontemporal is not None else ""
    text.emit(f"store{atomic}{volatile} {value}, {pointer}{ordering}{_align(op)}{hint}")


def _align(op: Operation) -> str:
    alignment = op.properties.get("alignment")
    return f", align {alignment.value.data}" if isinstance(alignment, IntegerAttr) else ""


def _ordering(op: Operation) -> tuple[str, str]:
    ordering = op.properties.get("ordering")
    if not isinstance(ordering, IntegerAttr) or not ordering.value.data:
        return "", ""
    return " atomic", f" {llvm.ATOMIC_ORDERING_KEYWORDS[ordering.value.data]}"


_ONE_VALUE = i32_array(llvm.GEP_USE_SSA_VAL)
"""The constant indices of an address that has one index, which is a value: almost every address."""


def _gep(text: FunctionText, op: Operation) -> None:
    gep = cast("llvm.GEPOp", op)
    pointer, *values = map(text.typed, op.operands)
    constants, ssa = gep.rawConstantIndices, iter(values)
    if constants == _ONE_VALUE:
        indices = values
    else:
        numbers = cast("Sequence[int]", constants.get_values())
        indices = [next(ssa) if number == llvm.GEP_USE_SSA_VAL else f"i32 {number}" for number in numbers]
    wrap = gep.noWrapFlags.value.data
    flags = "inbounds " if gep.inbounds is not None or wrap & 1 else "nusw " if wrap & 2 else ""
    flags += "nuw " if wrap & 4 else ""
    line = f"getelementptr {flags}{text.types(gep.elem_type)}, {pointer}, {', '.join(indices)}"
    text.define(op.results[0], line)


def _masked_load(text: FunctionText, op: Operation) -> None:
    load = cast("llvm_ext.MaskedLoadOp", op)
    type_name = text.types(load.res.type)
    types = [text.types(operand.type) for operand in op.operands]
    callee = text.module.declare(f"llvm.masked.load.{mangled(type_name)}.p0", type_name, types)
    pointer = f"ptr align {load.alignment.value.data} {text.names[load.ptr]}"
    rest = ", ".join(map(text.typed, op.operands[1:]))
    text.define(load.res, f"call {type_name} {callee}({pointer}, {rest})")


def _masked_store(text: FunctionText, op: Operation) -> None:
    value, pointer, mask = op.operands
    alignment = cast("llvm.MaskedStoreOp | llvm_ext.MaskedStoreOp", op).alignment.value.data
    types = [text.types(operand.type) for operand in op.operands]
    callee = text.module.declare(f"llvm.masked.store.{mangled(types[0])}.p0", "void", types)
    operands = f"{text.typed(value)}, ptr align {alignment} {text.names[pointer]}, {text.typed(mask)}"
    text.emit(f"call void {callee}({operands})")


def _lane_pointers(text: FunctionText, pointer: SSAValue, offsets: SSAValue, element: str) -> str:
    """The name of the vector of addresses, computed by an instruction of its own."""
    name = f"%p{text.next_number()}"
    text.emit(f"{name} = getelementptr {element}, {text.typed(pointer)}, {text.typed(offsets)}")
    return name


def _gather(text: FunctionText, op: Operation) -> None:
    gather = cast("llvm_ext.GatherOp", op)
    type_name, mask_name = text.types(gather.res.type), text.types(gather.mask.type)
    pointers = _lane_pointers(text, gather.ptr, gather.offsets, vector_element(type_name))
    vector = f"<{vector_count(type_name)} x ptr>"
    name = f"llvm.masked.gather.{mangled(type_name)}.{mangled(vector)}"
    callee = text.module.declare(name, type_name, [vector, mask_name, type_name])
    first = f"{vector} align {gather.alignment.value.data} {pointers}"
    text.define(
        gather.res, f"call {type_name} {callee}({first}, {text.typed(gather.mask)}, {text.typed(gather.passthru)})"
    )


def _scatter(text: FunctionText, op: Operation) -> None:
    scatter = cast("llvm_ext.ScatterOp", op)
    type_name, mask_name = text.types(scatter.value.type), text.types(scatter.mask.type)
    pointers = _lane_pointers(text, scatter.ptr, scatter.offsets, vector_element(type_name))
    vector = f"<{vector_count(type_name)} x ptr>"
    name = f"llvm.masked.scatter.{mangled(type_name)}.{mangled(vector)}"
    callee = text.module.declare(name, "void", [type_name, vector, mask_name])
    second = f"{vector} align {scatter.alignment.value.data} {pointers}"
    text.emit(f"call void {callee}({text.typed(scatter.value)}, {second}, {text.typed(scatter.mask)})")


def _atomic_rmw(text: FunctionText, op: Operation) -> None:
    word = cast("llvm_ext.AtomicRMWOp", op).operation.data
    text.define(op.results[0], f"atomicrmw {word} {', '.join(map(text.typed, op.operands))} seq_cst")


MEMORY_EMITTERS: dict[type[Operation], Emit] = {
    llvm.AllocaOp: _alloca,
    llvm.GEPOp: _gep,
    llvm.LoadOp: _load,
    llvm.MaskedStoreOp: _masked_store,
    llvm.StoreOp: _store,
    llvm_ext.AtomicRMWOp: _atomic_rmw,
    llvm_ext.GatherOp: _gather,
    llvm_ext.ScatterOp: _scatter,
    llvm_ext.MaskedLoadOp: _masked_load,
    llvm_ext.MaskedStoreOp: _masked_store,
}


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
    call = cast("llvm.CallIntrinsicOp", op)
    call_to(text, op, call.intrin.data, _arguments(op), fast_math_flags(op))


def _arguments(op: Operation) -> Sequence[SSAValue]:
    """The operands, all of which are arguments where there are no bundles: quicker than to ask for the groups."""
    sizes = op.properties.get("op_bundle_sizes")
    if isinstance(sizes, DenseArrayBase) and sizes.data.data:
        raise CodegenError(f"'{op.name}' op has operand bundles, which have no LLVM text here, expected none")
    return op.operands


def _call_function(text: FunctionText, op: Operation) -> None:
    call = cast("llvm.CallOp", op)
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
    asm = cast("llvm.InlineAsmOp", op)
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
    switch = cast("llvm_ext.SwitchOp", op)
    operands, targets = list(switch.case_operands), [(switch.default_block, list(switch.default_operands))]
    for block, count in zip(switch.case_blocks, switch.case_operand_segments.get_values(), strict=True):
        targets.append((block, operands[: int(count)]))
        operands = operands[int(count) :]
    default, *labels = text.edges(targets)
    type_name = text.types(switch.flag.type)
    values = cast("Sequence[int]", switch.case_values.get_values())
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


def _binary(word: str, flags: Callable[[Operation], str], text: FunctionText, op: Operation) -> None:
    lhs, rhs = op.operands
    text.define(op.results[0], f"{word} {flags(op)}{text.typed(lhs)}, {text.names[rhs]}")


def _cast(word: str, text: FunctionText, op: Operation) -> None:
    target = text.types(op.results[0].type)
    text.define(op.results[0], f"{word} {integer_flags(op)}{text.typed(op.operands[0])} to {target}")


def _fneg(text: FunctionText, op: Operation) -> None:
    text.define(op.results[0], f"fneg {fast_math_flags(op)}{text.typed(op.operands[0])}")


def _icmp(text: FunctionText, op: Operation) -> None:
    predicate = llvm.ICmpPredicateFlag.from_int(cast("llvm.ICmpOp", op).predicate.value.data)
    text.define(op.results[0], f"icmp {predicate} {text.typed(op.operands[0])}, {text.names[op.operands[1]]}")


def _fcmp(text: FunctionText, op: Operation) -> None:
    if isinstance(op, llvm.FCmpOp):
        predicate = str(llvm.FCmpPredicateFlag.from_int(op.predicate.value.data))
    else:
        predicate = cast("llvm_ext.FCmpOp", op).predicate.data
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
    position = cast("llvm.ExtractValueOp", op).position.get_values()
    text.define(op.results[0], f"extractvalue {text.typed(op.operands[0])}, {', '.join(map(str, position))}")


def _insert_value(text: FunctionText, op: Operation) -> None:
    insert = cast("llvm.InsertValueOp", op)
    position = ", ".join(map(str, insert.position.get_values()))
    text.define(op.results[0], f"insertvalue {text.typed(insert.container)}, {text.typed(insert.value)}, {position}")


def _insert_element(text: FunctionText, op: Operation) -> None:
    text.define(op.results[0], f"insertelement {', '.join(map(text.typed, op.operands))}")


def _extract_element(text: FunctionText, op: Operation) -> None:
    text.define(op.results[0], f"extractelement {', '.join(map(text.typed, op.operands))}")


def _shuffle(text: FunctionText, op: Operation) -> None:
    mask = cast("llvm.ShuffleVectorOp", op).mask.get_values()
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


def llvm_text(module: ModuleOp) -> str:
    """The LLVM IR text of a module of `llvm.func` and `llvm.mlir.global`; no target is named in it.

    A `vm.constant` is no part of it: the code gets constants when it is loaded.

    Raises `CodegenError` for what LLVM has no text for, naming the op.
    """
    return ModuleText(module, EMITTERS).text()


def spent_text(module: ModuleOp) -> str:
    """The text of a module that nobody looks at afterwards, which is freed; errors as `llvm_text`."""
    text = llvm_text(module)
    release(module)
    return text

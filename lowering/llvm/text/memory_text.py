"""Emitters of instructions that touch memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from lowering.llvm.text.llvm_types import mangled, vector_count, vector_element
from lowering.llvm.text.module_text import Emit, FunctionText
from lowering.tir_to_llvm import llvm_ext_memory
from tir_dialect.ops.memory import i32_array


def _alloca(text: FunctionText, op: Operation) -> None:
    alloca = cast(llvm.AllocaOp, op)
    align = f", align {alloca.alignment.value.data}" if alloca.alignment is not None else ""
    text.define(op.results[0], f"alloca {text.types(alloca.elem_type)}, {text.typed(alloca.size)}{align}")


def _load(text: FunctionText, op: Operation) -> None:
    result, (pointer,) = op.results[0], op.operands
    atomic, ordering = _ordering(op)
    text.define(result, f"load{atomic} {text.types(result.type)}, {text.typed(pointer)}{ordering}{_align(op)}")


def _store(text: FunctionText, op: Operation) -> None:
    store = cast(llvm.StoreOp, op)
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
    gep = cast(llvm.GEPOp, op)
    pointer, *values = map(text.typed, op.operands)
    constants, ssa = gep.rawConstantIndices, iter(values)
    if constants == _ONE_VALUE:
        indices = values
    else:
        numbers = cast(Sequence[int], constants.get_values())
        indices = [next(ssa) if number == llvm.GEP_USE_SSA_VAL else f"i32 {number}" for number in numbers]
    wrap = gep.noWrapFlags.value.data
    flags = "inbounds " if gep.inbounds is not None or wrap & 1 else "nusw " if wrap & 2 else ""
    flags += "nuw " if wrap & 4 else ""
    line = f"getelementptr {flags}{text.types(gep.elem_type)}, {pointer}, {', '.join(indices)}"
    text.define(op.results[0], line)


def _masked_load(text: FunctionText, op: Operation) -> None:
    load = cast(llvm_ext_memory.MaskedLoadOp, op)
    type_name = text.types(load.res.type)
    types = [text.types(operand.type) for operand in op.operands]
    callee = text.module.declare(f"llvm.masked.load.{mangled(type_name)}.p0", type_name, types)
    pointer = f"ptr align {load.alignment.value.data} {text.names[load.ptr]}"
    rest = ", ".join(map(text.typed, op.operands[1:]))
    text.define(load.res, f"call {type_name} {callee}({pointer}, {rest})")


def _masked_store(text: FunctionText, op: Operation) -> None:
    value, pointer, mask = op.operands
    alignment = cast(llvm.MaskedStoreOp | llvm_ext_memory.MaskedStoreOp, op).alignment.value.data
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
    gather = cast(llvm_ext_memory.GatherOp, op)
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
    scatter = cast(llvm_ext_memory.ScatterOp, op)
    type_name, mask_name = text.types(scatter.value.type), text.types(scatter.mask.type)
    pointers = _lane_pointers(text, scatter.ptr, scatter.offsets, vector_element(type_name))
    vector = f"<{vector_count(type_name)} x ptr>"
    name = f"llvm.masked.scatter.{mangled(type_name)}.{mangled(vector)}"
    callee = text.module.declare(name, "void", [type_name, vector, mask_name])
    second = f"{vector} align {scatter.alignment.value.data} {pointers}"
    text.emit(f"call void {callee}({text.typed(scatter.value)}, {second}, {text.typed(scatter.mask)})")


def _atomic_rmw(text: FunctionText, op: Operation) -> None:
    word = cast(llvm_ext_memory.AtomicRMWOp, op).operation.data
    text.define(op.results[0], f"atomicrmw {word} {', '.join(map(text.typed, op.operands))} seq_cst")


MEMORY_EMITTERS: dict[type[Operation], Emit] = {
    llvm.AllocaOp: _alloca,
    llvm.GEPOp: _gep,
    llvm.LoadOp: _load,
    llvm.MaskedStoreOp: _masked_store,
    llvm.StoreOp: _store,
    llvm_ext_memory.AtomicRMWOp: _atomic_rmw,
    llvm_ext_memory.GatherOp: _gather,
    llvm_ext_memory.ScatterOp: _scatter,
    llvm_ext_memory.MaskedLoadOp: _masked_load,
    llvm_ext_memory.MaskedStoreOp: _masked_store,
}

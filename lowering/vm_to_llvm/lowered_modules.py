"""Modules that are LLVM functions already, as `relax-to-llvm` makes them: what builds take from them."""

from __future__ import annotations

import json
from typing import Any

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr

from lowering.cache.cached_compiler import compile_cached
from lowering.cache.code_cache import CodeCache
from lowering.diagnostics import Finding, fail, refuse
from lowering.llvm.compiler import CompileOptions
from lowering.llvm.text.llvm_text import llvm_text
from lowering.vm_to_llvm.convert_vm_to_llvm import ConvertVmToLLVMPass
from lowering.vm_to_llvm.objects import runtime_for
from lowering.vm_to_llvm.symbols import ENTRY_PREFIX, INFO, INIT
from tir_dialect.target import Target
from vm_dialect.ops.constants import ConstantSymbolOp

KERNEL_PREFIX = "kernel."
"""Before the names of functions that nobody else calls: LLVM would take one called `exp` for that of the C library."""


def has_llvm_functions(module: ModuleOp) -> bool:
    """Whether kernels or all functions are LLVM functions."""
    return any(isinstance(op, llvm.FuncOp) for op in module.ops)


def finish_lowering(module: ModuleOp) -> None:
    """Lowers what functions of the machine there are, and renames what is not called from outside.

    Refuses functions of earlier stages beside LLVM functions, and LLVM functions without those that describe them.
    """
    ConvertVmToLLVMPass().apply(Context(), module)
    refuse(
        Finding.at(
            op, "stands beside LLVM functions, of which it can call none", "run 'relax-to-llvm' on all functions"
        )
        for op in module.ops
        if not isinstance(op, llvm.FuncOp | llvm.GlobalOp | ConstantSymbolOp)
    )
    module_info(module)
    renamed: dict[str, str] = {}
    for op in module.ops:
        if isinstance(op, llvm.FuncOp) and op.body.blocks and not _is_entry(op.sym_name.data):
            renamed[op.sym_name.data] = KERNEL_PREFIX + op.sym_name.data
            op.properties |= {
                "sym_name": StringAttr(renamed[op.sym_name.data]),
                "linkage": llvm.LinkageAttr("internal"),
            }
    for op in module.walk():
        for name, attribute in op.properties.items():
            if isinstance(attribute, SymbolRefAttr) and (new := renamed.get(attribute.root_reference.data)) is not None:
                op.properties[name] = SymbolRefAttr(new)


def _is_entry(name: str) -> bool:
    """Whether a symbol is looked up from outside: by tvm-ffi or by the loader."""
    return name.startswith(ENTRY_PREFIX) or name in (INIT, INFO)


def module_info(module: ModuleOp) -> dict[str, Any]:
    """What the module says of itself: its `functions`, their `parameters` and `results`, the `packed` functions."""
    for op in module.ops:
        if isinstance(op, llvm.FuncOp) and op.sym_name.data == INFO:
            texts = {each.sym_name.data: each.value for each in module.ops if isinstance(each, llvm.GlobalOp)}
            for inner in op.body.walk():
                if isinstance(inner, llvm.AddressOfOp):
                    text = texts.get(inner.global_name.string_value())
                    if isinstance(text, StringAttr):
                        return {"parameters": {}, "packed": [], **json.loads(text.data.rstrip("\0"))}
    fail(
        module,
        f"has LLVM functions, but not @{INFO}, which says what can be called",
        "give the PrimFuncs and the functions that call them, before 'convert-tir-to-llvm'",
    )


def module_objects(module: ModuleOp, target: Target, options: CompileOptions, cache: CodeCache) -> list[bytes]:
    """The machine code of a module after `finish_lowering`, and the parts of the run-time support that it calls."""
    text = llvm_text(module)
    return [compile_cached("native", text, target, options, cache), *runtime_for(text, target, cache)]

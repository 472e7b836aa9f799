"""`convert-vm-to-llvm`: VM functions become LLVM functions."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import SymbolTable

from lowering.diagnostics import fail
from lowering.passes import Pass
from lowering.vm_to_llvm.entry import packed_entry
from lowering.vm_to_llvm.function import lower_function
from lowering.vm_to_llvm.globals import ModuleGlobals
from lowering.vm_to_llvm.kernels import Kernel, known_kernels
from lowering.vm_to_llvm.lifecycle import lifecycle_functions
from lowering.vm_to_llvm.module_facts import closure_targets, module_facts
from tir_dialect.ops.function import PrimFuncOp
from vm_dialect.ops.calls import CallKernelOp
from vm_dialect.ops.structure import FuncOp


class ConvertVmToLLVMPass(Pass):
    """Lowers every `vm.func` to an LLVM function, with a tvm-ffi entry if it is public or the target of a closure.

    Before:

    ```mlir
    vm.func @main(%n : !vm.object) -> i64 {
      %m = vm.check_int %n as "main: argument #0 (n)"
      %r = vm.int add %m, %m
      vm.ret %r
    }
    ```

    After, shortened:

    ```mlir
    llvm.func internal @vm.main(%ret : !llvm.ptr, %n : !llvm.ptr) -> i32 { ... }
    llvm.func @__tvm_ffi_main(%self : !llvm.ptr, %args : !llvm.ptr, %count : i32, %ret : !llvm.ptr) -> i32 { ... }
    llvm.func @module.init(...) -> i32 { ... }
    llvm.func @module.info(...) -> i32 { ... }
    ```

    Expects a module that verifies. Kernels in it are `llvm.func`s (`convert-tir-to-llvm`), with or without a body;
    they tell the types of scalars, which otherwise are those of the call. Kernels elsewhere and the run-time support
    (`lowering.vm_to_llvm.runtime_text`) are linked in when the code is loaded. Other ops stay as they are, also
    constants, which the code gets when it is loaded. Idempotent: a module without `vm.func` is left alone.

    Refuses, at the op, a tensor in a storage that leaves its call, and a kernel that is a `tir.prim_func` still.
    """

    name = "convert-vm-to-llvm"
    removes = ("vm.func",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replaces the functions of the module by what they become."""
        if not any(isinstance(func, FuncOp) for func in op.ops):
            return
        for call in op.walk():
            if isinstance(call, CallKernelOp) and isinstance(SymbolTable.lookup_symbol(call, call.callee), PrimFuncOp):
                fail(call, f"{call.callee} is a 'tir.prim_func'", "run 'convert-tir-to-llvm' before")
        lowered = lower_functions(op)
        for old in list(op.ops):
            if isinstance(old, FuncOp):
                old.detach()
                old.erase(safe_erase=False)
        op.body.block.add_ops(lowered)


def lower_functions(
    module: ModuleOp,
    symbols: Mapping[str, str] | None = None,
    *,
    kernels: Mapping[str, Kernel] | None = None,
    is_observed: bool = False,
) -> list[Operation]:
    """The LLVM functions and globals that stand for the functions of a module, which is left as it is.

    `symbols` has the names of kernels in the objects that they are in, where they differ from those in the module;
    `kernels` are those that the module does not hold. Calls tell an observer if the code `is_observed`.
    """
    functions = [func for func in module.ops if isinstance(func, FuncOp)]
    facts = module_facts(module, {**(kernels or {}), **known_kernels(module.ops, symbols or {})})
    shared = ModuleGlobals(is_observed)
    checks = [rest.check for rest in facts.deferred.values() if rest.check is not None]
    bodies = [lower_function(func, shared, facts) for func in (*functions, *checks)]
    targets = closure_targets(functions)
    entries = [
        packed_entry(func, shared, facts, captured)
        for func in functions
        for captured in sorted(targets.get(func.sym_name.data, set()) | ({0} if func.is_public else set()))
    ]
    entries += [packed_entry(func, shared, facts) for func in checks]
    public = [func for func in functions if func.is_public]
    entries += lifecycle_functions(shared, public, bool(facts.guarded))
    here = (op.sym_name.data for op in module.ops if isinstance(op, llvm.FuncOp))
    defined = {*here, *(function.sym_name.data for function in (*bodies, *entries))}
    return [*shared.operations(defined), *bodies, *entries]

"""Translation of modules to LLVM IR, assembly or object files, for `relax-translate`."""

from __future__ import annotations

from typing import Literal, overload

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp

from lowering.codegen.kernels.kernel_lowering import DEFAULT_OPTIONS, KernelOptions, run_tir_passes
from lowering.codegen.llvm.compiler import CompileOptions, compile_object, emit_assembly, emit_llvm_ir
from lowering.diagnostics import Finding, refuse
from lowering.to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.to_llvm.emitter import LoweringOptions
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

TextForm = Literal["llvmir", "asm"]


@overload
def translate(
    module: ModuleOp,
    form: TextForm,
    target: Target | None = None,
    *,
    optimize: bool = True,
    options: KernelOptions = ...,
) -> str: ...


@overload
def translate(
    module: ModuleOp,
    form: Literal["object"],
    target: Target | None = None,
    *,
    optimize: bool = True,
    options: KernelOptions = ...,
) -> bytes: ...


def translate(
    module: ModuleOp,
    form: TextForm | Literal["object"],
    target: Target | None = None,
    *,
    optimize: bool = True,
    options: KernelOptions = DEFAULT_OPTIONS,
) -> str | bytes:
    """LLVM IR text, assembler text or an ELF object of a module of prim_funcs and llvm functions, left as it is.

    The target is the host by default. Without `optimize`, code is what the lowering makes, before LLVM's own passes.

    Raises `PassFailedException` for other ops and for ops without a lowering, and `CodegenError` if LLVM rejects the
    code.
    """
    target = target or Target.host()
    compile_options = CompileOptions(options.opt_level if optimize else 0)
    lowered = to_llvm_module(module, target, options)
    match form:
        case "llvmir":
            return emit_llvm_ir(lowered, target, compile_options if optimize else None)
        case "asm":
            return emit_assembly(lowered, target, compile_options)
        case "object":
            return compile_object(lowered, target, compile_options)


def to_llvm_module(module: ModuleOp, target: Target, options: KernelOptions = DEFAULT_OPTIONS) -> ModuleOp:
    """A copy of a module in which prim_funcs have become llvm functions; `PassFailedException` for any other op."""
    refuse(
        Finding.at(op, "is neither a prim_func nor a part of the llvm dialect", "lower it first")
        for op in module.ops
        if not isinstance(op, PrimFuncOp | llvm.FuncOp | llvm.GlobalOp)
    )
    copy = module.clone()
    functions = [op for op in copy.ops if isinstance(op, PrimFuncOp)]
    if not functions:
        return copy
    run_tir_passes(copy)
    lowered = lower_prim_funcs(functions, LoweringOptions.of(target, options.contract))
    for op in list(copy.ops):
        if not isinstance(op, PrimFuncOp):
            op.detach()
            lowered.body.block.add_op(op)
    return lowered

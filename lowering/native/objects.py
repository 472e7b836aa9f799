"""Objects of an executable beside kernels: VM functions or kernel wrappers, with the runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

from lowering.codegen.cache import CodeCache
from lowering.codegen.cached_compiler import compile_cached
from lowering.codegen.compiler import CompileOptions
from lowering.codegen.llvm_text import spent_text
from lowering.native.convert_vm_to_llvm import lower_functions
from lowering.native.kernel_wrappers import kernel_wrappers
from lowering.native.kernels import known_kernels
from lowering.native.runtime_objects import runtime_for
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

FUNCTION_OPTIONS = CompileOptions(opt_level=1)
"""Functions of the virtual machine are calls and checks: loops are in the kernels."""

Making: TypeAlias = Callable[[], list[bytes]]
"""What lets LLVM make objects, on any thread; raises `CodegenError` if LLVM rejects the code."""


def function_code(
    module: ModuleOp, target: Target, symbols: Mapping[str, str] | None = None, cache: CodeCache | None = None
) -> Making:
    """Lowers the functions of a vm module, which is left as it is, to objects for `load_functions`: the functions, and
    what they need of the run-time support.

    `symbols` has the names of kernels in their objects; the module may hold the prim_funcs, which tell the types of
    scalars. Raises `InvalidModule` as `convert-vm-to-llvm` does.
    """
    text = spent_text(ModuleOp(lower_functions(module, symbols)))
    return lambda: _with_runtime(text, target, FUNCTION_OPTIONS, cache)


def wrapper_code(
    prim_funcs: Iterable[PrimFuncOp],
    target: Target,
    symbols: Mapping[str, str] | None = None,
    cache: CodeCache | None = None,
) -> Making:
    """Objects of functions through which public kernels are called with sizes, tensors and scalars."""
    functions = list(prim_funcs)
    wrappers = kernel_wrappers(functions)
    kernels = known_kernels(functions, symbols or {})
    text = spent_text(ModuleOp(lower_functions(wrappers, kernels=kernels)))
    return lambda: _with_runtime(text, target, CompileOptions(opt_level=1), cache)


def _with_runtime(text: str, target: Target, options: CompileOptions, cache: CodeCache | None) -> list[bytes]:
    """Functions as machine code, and the parts of the run-time support that they call."""
    code = compile_cached("native", text, target, options, cache)
    return [code, *runtime_for(text, target, cache)]

"""Objects that an executable consists of: compiled functions, wrappers of kernels, the run-time support."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

from lowering.codegen.binding import library_version
from lowering.codegen.cache import CodeCache, cache_key, default_cache
from lowering.codegen.compiler import CompileOptions, compile_object
from lowering.codegen.llvm_text import llvm_text
from lowering.native.convert_vm_to_llvm import lower_functions
from lowering.native.kernel_wrappers import kernel_wrappers
from lowering.native.kernels import known_kernels
from lowering.native.runtime_text import runtime_text
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

FUNCTION_OPTIONS = CompileOptions(opt_level=2)
"""Functions of the virtual machine are calls and checks: loops are in the kernels."""


Making: TypeAlias = Callable[[], bytes]
"""What lets LLVM make an object, on any thread; raises `CodegenError` if LLVM rejects the code."""


def function_code(
    module: ModuleOp, target: Target, symbols: Mapping[str, str] | None = None, cache: CodeCache | None = None
) -> Making:
    """Lowers the functions of a vm module, which is left as it is, to an object for `load_functions`.

    `symbols` has the names of kernels in their objects; the module may hold the prim_funcs, which tell the types of
    scalars. Raises `InvalidModule` as `convert-vm-to-llvm` does.
    """
    text = llvm_text(ModuleOp(lower_functions(module, symbols)))
    return lambda: _compiled(text, target, FUNCTION_OPTIONS, cache)


def wrapper_code(
    prim_funcs: Iterable[PrimFuncOp],
    target: Target,
    symbols: Mapping[str, str] | None = None,
    cache: CodeCache | None = None,
) -> Making:
    """An object of functions through which public kernels are called with sizes, tensors and scalars."""
    functions = list(prim_funcs)
    wrappers = kernel_wrappers(functions)
    kernels = known_kernels(functions, symbols or {})
    text = llvm_text(ModuleOp(lower_functions(wrappers, kernels=kernels)))
    return lambda: _compiled(text, target, CompileOptions(opt_level=1), cache)


def runtime_object(target: Target, cache: CodeCache | None = None) -> bytes:
    """The object of the run-time support, which every module needs once."""
    return _compiled(runtime_text(), target, FUNCTION_OPTIONS, cache, _compile_once)


@lru_cache(maxsize=8)
def _compile_once(text: str, target: Target, options: CompileOptions) -> bytes:
    """Remembered in this process too, for those that build without a cache: it takes longer than a kernel."""
    return compile_object(text, target, options)


def _compiled(
    text: str,
    target: Target,
    options: CompileOptions,
    cache: CodeCache | None,
    compile_text: Callable[[str, Target, CompileOptions], bytes] = compile_object,
) -> bytes:
    cache = cache or default_cache()
    key = cache_key(["native", library_version(), target.code_key(), options.key(), text])
    data = cache.get(key)
    if data is None:
        data = compile_text(text, target, options)
        cache.put(key, data)
    return data

"""Objects that an executable consists of: compiled functions, wrappers of kernels, the run-time support."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

from lowering.codegen.cache import CodeCache
from lowering.codegen.cached_compiler import compile_cached
from lowering.codegen.compiler import CompileOptions, compile_object
from lowering.codegen.llvm_text import llvm_text
from lowering.native.convert_vm_to_llvm import lower_functions
from lowering.native.kernel_wrappers import kernel_wrappers
from lowering.native.kernels import known_kernels
from lowering.native.runtime_text import ALWAYS, SELDOM, parts_for, runtime_text
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

FUNCTION_OPTIONS = CompileOptions(opt_level=2)
"""Functions of the virtual machine are calls and checks: loops are in the kernels."""

RUNTIME_OPTIONS = CompileOptions(opt_level=2, as_written=True)
"""The run-time support is written in LLVM's language: its passes would take a third of the time, and find nothing."""

SELDOM_OPTIONS = CompileOptions(opt_level=0)
"""What runs once or not at all is compiled in a fifth of the time."""


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
    text = llvm_text(ModuleOp(lower_functions(module, symbols)))
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
    text = llvm_text(ModuleOp(lower_functions(wrappers, kernels=kernels)))
    return lambda: _with_runtime(text, target, CompileOptions(opt_level=1), cache)


def common_runtime(target: Target, cache: CodeCache | None = None) -> None:
    """Compiles what every program needs, or finds it in the cache."""
    for part in ALWAYS:
        runtime_object(target, cache, part)


def runtime_object(target: Target, cache: CodeCache | None, part: str) -> bytes:
    """The object of a part of the run-time support."""
    options = SELDOM_OPTIONS if part == SELDOM else RUNTIME_OPTIONS
    return compile_cached("native", runtime_text(part), target, options, cache, _compile_once)


def _with_runtime(text: str, target: Target, options: CompileOptions, cache: CodeCache | None) -> list[bytes]:
    """Functions as machine code, and the parts of the run-time support that they call."""
    code = compile_cached("native", text, target, options, cache)
    return [code, *(runtime_object(target, cache, part) for part in parts_for(text))]


@lru_cache(maxsize=16)
def _compile_once(text: str, target: Target, options: CompileOptions) -> bytes:
    """Remembered in this process too, for those that build without a cache: it takes longer than a kernel."""
    return compile_object(text, target, options)

"""Objects of an executable beside kernels: VM functions or kernel wrappers, with the runtime."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from lowering.cache.cached_compiler import compile_cached
from lowering.cache.code_cache import CodeCache
from lowering.llvm.compiler import CompileOptions
from lowering.llvm.text.llvm_text import spent_text
from lowering.vm_to_llvm.convert_vm_to_llvm import lower_functions
from lowering.vm_to_llvm.kernel_wrappers import kernel_wrappers
from lowering.vm_to_llvm.kernels import known_kernels
from lowering.vm_to_llvm.runtime_objects import runtime_for
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from vm_dialect.ops.structure import FuncOp

_RECURSION = re.compile(r"\bmusttail\b|@vmrt_stack_enter\b")
"""What functions have that may be inside themselves."""

Making: TypeAlias = Callable[[], list[bytes]]
"""What lets LLVM make objects, on any thread; raises `CodegenError` if LLVM rejects the code."""


def function_code(
    module: ModuleOp,
    target: Target,
    symbols: Mapping[str, str] | None = None,
    cache: CodeCache | None = None,
    *,
    is_observed: bool = False,
) -> Making:
    """Lowers the functions of a vm module, which is left as it is, to objects for `load_functions`: the functions, and
    what they need of the run-time support.

    `symbols` has the names of kernels in their objects; the module may hold the prim_funcs, which tell the types of
    scalars. Raises `InvalidModule` as `convert-vm-to-llvm` does.
    """
    text = spent_text(ModuleOp(lower_functions(module, symbols, is_observed=is_observed)))
    options = function_options(module, text)
    return lambda: _with_runtime(text, target, options, cache)


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
    options = function_options(wrappers, text)
    return lambda: _with_runtime(text, target, options, cache)


def function_options(module: ModuleOp, text: str) -> CompileOptions:
    """How the functions of a vm module are compiled, of which there is LLVM text.

    Most are calls and checks that run once each time, since loops are in the kernels: LLVM writes them down as they
    are, in an eighth of the time, and a call takes as long. What a function repeats, by a loop or inside itself, is
    optimised.
    """
    repeats = _RECURSION.search(text) is not None or any(_may_loop(op) for op in module.ops if isinstance(op, FuncOp))
    return CompileOptions(opt_level=1 if repeats else 0)


def _may_loop(function: FuncOp) -> bool:
    """Whether a branch goes to a block that does not stand behind it."""
    seen: set[Block] = set()
    for block in function.body.blocks:
        seen.add(block)
        if block.last_op is not None and not seen.isdisjoint(block.last_op.successors):
            return True
    return False


def _with_runtime(text: str, target: Target, options: CompileOptions, cache: CodeCache | None) -> list[bytes]:
    """Functions as machine code, and the parts of the run-time support that they call."""
    code = compile_cached("native", text, target, options, cache)
    return [code, *runtime_for(text, target, cache)]

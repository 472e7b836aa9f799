"""LLVM IR to machine code, through the code cache."""

from __future__ import annotations

from collections.abc import Callable

from lowering.cache.code_cache import CodeCache, cache_key, default_cache
from lowering.compiler.debug import Debug, debug_level
from lowering.llvm.binding import library_version
from lowering.llvm.compiler import CompileOptions, compile_object
from tir_dialect.target import Target


def compile_cached(
    kind: str,
    text: str,
    target: Target,
    options: CompileOptions,
    cache: CodeCache | None = None,
    compile_text: Callable[[str, Target, CompileOptions], bytes] | None = None,
) -> bytes:
    """The object of a text, from the cache if it is there, else by `compile_text` (`compile_object`).

    `kind` names what is compiled in its key. `CodegenError` if LLVM rejects the text.
    """
    known = cache or default_cache()
    key = cache_key([kind, library_version(), target.code_key(), options.key(), text])
    data = None if debug_level() >= Debug.LLVM else known.get(key)
    if data is None:
        data = (compile_text or compile_object)(text, target, options)
        known.put(key, data)
    return data

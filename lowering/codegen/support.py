"""Functions in LLVM text that kernels call: compiled once for a machine, loaded once for a process."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tir_dialect.target import Target

if TYPE_CHECKING:
    from lowering.codegen.loader import LoadedCode


@cache
def load_support(text: str) -> LoadedCode:
    """The functions of a text, in this process."""
    from lowering.codegen.loader import load_objects

    return load_objects([support_object(text)])


@cache
def support_object(text: str) -> bytes:
    """The machine code of a text for this process, from the cache of compiled code if it is there."""
    from lowering.codegen.binding import library_version
    from lowering.codegen.cache import cache_key, default_cache
    from lowering.codegen.compiler import CompileOptions, compile_object

    target, known, options = Target.host(), default_cache(), CompileOptions(as_written=True)
    key = cache_key(["support", library_version(), target.code_key(), options.key(), text])
    data = known.get(key)
    if data is None:
        data = compile_object(text, target, options)
        known.put(key, data)
    return data

"""Objects of the native runtime: those that every program needs, and those that some need."""

from __future__ import annotations

from functools import lru_cache

from lowering.cache.cached_compiler import compile_cached
from lowering.cache.code_cache import CodeCache
from lowering.llvm.compiler import CompileOptions, compile_object
from lowering.vm_to_llvm.runtime_text import ALWAYS, SELDOM, parts_for, runtime_text
from tir_dialect.target import Target

RUNTIME_OPTIONS = CompileOptions(opt_level=2, as_written=True)
"""The run-time support is written in LLVM's language: its passes would take a third of the time, and find nothing."""

SELDOM_OPTIONS = CompileOptions(opt_level=0)
"""What runs once or not at all is compiled in a fifth of the time."""


def common_runtime(target: Target, cache: CodeCache | None = None) -> None:
    """Compiles what every program needs, or finds it in the cache."""
    for part in ALWAYS:
        runtime_object(target, cache, part)


def runtime_object(target: Target, cache: CodeCache | None, part: str) -> bytes:
    """The object of a part of the run-time support."""
    options = SELDOM_OPTIONS if part == SELDOM else RUNTIME_OPTIONS
    return compile_cached("native", runtime_text(part), target, options, cache, _compile_once)


def runtime_for(text: str, target: Target, cache: CodeCache | None) -> list[bytes]:
    """The parts of the run-time support that LLVM text calls."""
    return [runtime_object(target, cache, part) for part in parts_for(text)]


@lru_cache(maxsize=16)
def _compile_once(text: str, target: Target, options: CompileOptions) -> bytes:
    """Remembered in this process too, for those that build without a cache: it takes longer than a kernel."""
    return compile_object(text, target, options)

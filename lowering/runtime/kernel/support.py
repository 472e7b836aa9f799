"""Runtime functions in LLVM IR that kernels call: threads, workspace, and the memory of large results.

Each text is compiled once per machine and loaded once per process; it is never unloaded, since its threads wait in it
and results are released after the program that made them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

from lowering.cache.cached_compiler import compile_cached
from lowering.cache.code_cache import CodeCache
from lowering.llvm.compiler import CompileOptions
from lowering.runtime.kernel.threads import host_text, threads_text
from tir_dialect.target import Target


@dataclass(frozen=True)
class Support:
    """One text and the names of its functions."""

    symbols: frozenset[str]
    """What kernels call it by."""

    text: Callable[[], str]
    """As this process uses it."""

    library_text: Callable[[], str] | None = None
    """As a shared library has it; `None` for what only this process uses."""


def _written(name: str) -> str:
    return files("lowering.runtime.kernel").joinpath(name).read_text()


BLOCKS = Support(frozenset(("relax_block_take", "relax_block_give")), partial(_written, "blocks.ll"))
"""`ptr relax_block_take(i64 bytes)`, null if no such block is kept, and `void relax_block_give(ptr block)`."""

SCRATCH = Support(
    frozenset(("relax_scratch_take", "relax_scratch_give")),
    partial(_written, "scratch.ll"),
    partial(_written, "scratch.ll"),
)
"""`ptr relax_scratch_take(i64 alignment, i64 bytes)` gives a block, or null where there is no memory;
`void relax_scratch_give(ptr)` takes it back."""

THREADS = Support(
    frozenset(("relax_parallel", "relax_max_threads", "relax_set_num_threads", "relax_limit_threads")),
    host_text,
    lambda: threads_text(Target.host()),
)
"""`void relax_parallel(ptr body, ptr context, i64 lower, i64 upper, i32 threads)` calls `body(context, first, last)`
for parts of the range; `i32 relax_max_threads()` and `void relax_set_num_threads(i32)` are about their number, and
`i32 relax_limit_threads(i32)` about that of loops that the calling thread begins; it gives the limit before."""

SUPPORT = (BLOCKS, THREADS, SCRATCH)


def prepare_support(known: CodeCache) -> None:
    """Compiles what most programs call, or finds it in a cache."""
    for support in SUPPORT:
        support_object(support.text(), known)


_MADE: dict[str, bytes] = {}


def support_object(text: str, known: CodeCache | None = None) -> bytes:
    """The machine code of a text for this process, made once; from a cache, else the default one, if it is there."""
    if text not in _MADE:
        _MADE[text] = compile_cached("support", text, Target.host(), CompileOptions(as_written=True), known)
    return _MADE[text]

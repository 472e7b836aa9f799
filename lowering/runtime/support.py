"""Runtime functions in LLVM IR that kernels call: threads of a pool of our own or of OpenMP, workspace, and the memory
of large results.

Each text is compiled once per machine and loaded once per process; it is never unloaded, since its threads wait in it
and results are released after the program that made them.

The pool needs Linux. `RELAX_THREADS=openmp` chooses OpenMP there too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

from lowering.llvm.code_cache import CodeCache, compile_cached
from lowering.llvm.compiler import CompileOptions
from tir_dialect.target import Target
from vm_dialect.process import checked_affinity, checked_waiting

# By the first part of the triple: the number of the system call `futex`, and what a waiting loop calls.
_MACHINES = {"x86_64": (202, "@llvm.x86.sse2.pause", "", ""), "aarch64": (98, "@llvm.aarch64.isb", "i32", "i32 15")}


MOST_THREADS = 256
"""As many as `threads.ll` has positions for."""


def host_text() -> str:
    """The LLVM text of the functions for this process.

    They look up `RELAX_NUM_THREADS`, `RELAX_AFFINITY` and `RELAX_WAIT_POLICY` themselves, and cannot complain:
    `ValueError` if that is no number of threads, no list of processors or no policy, or `RELAX_THREADS` not `openmp`.
    """
    if (kind := os.environ.get("RELAX_THREADS", "")) not in ("", "openmp"):
        raise ValueError(f'RELAX_THREADS expected openmp, or nothing for threads of our own, got "{kind}"')
    number = os.environ.get("RELAX_NUM_THREADS", "")
    if number and not (number.isascii() and number.isdecimal() and 1 <= int(number) <= MOST_THREADS):
        raise ValueError(f'RELAX_NUM_THREADS expected a number from 1 to {MOST_THREADS}, got "{number}"')
    for name, check in (("RELAX_AFFINITY", checked_affinity), ("RELAX_WAIT_POLICY", checked_waiting)):
        if text := os.environ.get(name, ""):
            try:
                check(text)
            except ValueError as error:
                raise ValueError(f"{name} {error}") from error
    return threads_text(Target.host(), kind == "openmp")


def threads_text(target: Target, openmp: bool = False) -> str:
    """The LLVM text of the functions for a machine."""
    known = _MACHINES.get(target.arch)
    folder = files("lowering.runtime") / "kernel"
    if openmp or known is None or not sys.platform.startswith("linux"):
        return folder.joinpath("openmp.ll").read_text()
    text = with_pauses(folder.joinpath("threads.ll").read_text(), target)
    assert text is not None  # the machine is known
    return text.replace("FUTEX", str(known[0]))


def with_pauses(text: str, target: Target) -> str | None:
    """A text for a machine, with what a waiting loop calls there for `@PAUSE`; `None` if that is not known."""
    known = _MACHINES.get(target.arch)
    if known is None:
        return None
    _, pause, parameters, arguments = known
    text = text.replace("declare void @PAUSE", f"declare void {pause}({parameters})")
    return text.replace("@PAUSE", f"{pause}({arguments})")


@dataclass(frozen=True)
class Support:
    """One text and the names of its functions."""

    symbols: frozenset[str]
    """What kernels call it by."""

    text: Callable[[], str]
    """As this process uses it."""

    library_text: Callable[[Target], str] | None = None
    """As a shared library for a machine has it; `None` for what only this process uses."""


def _written(name: str) -> str:
    return (files("lowering.runtime") / "kernel" / name).read_text()


BLOCKS = Support(frozenset(("relax_block_take", "relax_block_give")), partial(_written, "blocks.ll"))
"""`ptr relax_block_take(i64 bytes)`, null if no such block is kept, and `void relax_block_give(ptr block)`."""

SCRATCH = Support(
    frozenset(("relax_scratch_take", "relax_scratch_give")),
    partial(_written, "scratch.ll"),
    lambda target: _written("scratch.ll"),
)
"""`ptr relax_scratch_take(i64 alignment, i64 bytes)` gives a block, or null where there is no memory;
`void relax_scratch_give(ptr)` takes it back."""

THREADS = Support(
    frozenset(("relax_parallel", "relax_max_threads", "relax_set_num_threads", "relax_limit_threads")),
    host_text,
    threads_text,
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

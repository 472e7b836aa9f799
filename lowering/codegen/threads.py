"""The functions that parallel loops call: a pool of threads of our own, or an OpenMP run time.

The pool needs Linux. `RELAX_THREADS=openmp` chooses OpenMP there too. Either is one object of LLVM text, which is
compiled once for a machine and loaded once for a process.
"""

from __future__ import annotations

import os
import sys
from importlib.resources import files

from lowering.codegen.support import load_support
from tir_dialect.target import Target

THREAD_SYMBOLS = frozenset(("relax_parallel", "relax_max_threads", "relax_set_num_threads"))
"""`void relax_parallel(ptr body, ptr context, i64 lower, i64 upper, i32 threads)` calls `body(context, first, last)`
for parts of the range; `i32 relax_max_threads()` and `void relax_set_num_threads(i32)` are about their number."""

# By the first part of the triple: the number of the system call `futex`, and what a waiting loop calls.
_MACHINES = {"x86_64": (202, "@llvm.x86.sse2.pause", "", ""), "aarch64": (98, "@llvm.aarch64.isb", "i32", "i32 15")}


def thread_symbol(name: str) -> int | None:
    """The address of one of `THREAD_SYMBOLS`."""
    return load_support(host_text()).symbols.get(name)


def host_text() -> str:
    """The LLVM text of the functions for this process."""
    return threads_text(Target.host(), os.environ.get("RELAX_THREADS") == "openmp")


def threads_text(target: Target, openmp: bool = False) -> str:
    """The LLVM text of the functions for a machine."""
    known = _MACHINES.get(target.arch)
    folder = files("lowering.codegen")
    if openmp or known is None or not sys.platform.startswith("linux"):
        return folder.joinpath("openmp.ll").read_text()
    futex, pause, parameters, arguments = known
    text = folder.joinpath("threads.ll").read_text()
    text = text.replace("declare void @PAUSE", f"declare void {pause}({parameters})")
    return text.replace("@PAUSE", f"{pause}({arguments})").replace("FUTEX", str(futex))

"""The functions that parallel loops call: a thread pool of our own, or an OpenMP runtime.

The pool needs Linux. `RELAX_THREADS=openmp` chooses OpenMP there too.
"""

from __future__ import annotations

import os
import sys
from importlib.resources import files

from tir_dialect.target import Target

# By the first part of the triple: the number of the system call `futex`, and what a waiting loop calls.
_MACHINES = {"x86_64": (202, "@llvm.x86.sse2.pause", "", ""), "aarch64": (98, "@llvm.aarch64.isb", "i32", "i32 15")}


def host_text() -> str:
    """The LLVM text of the functions for this process."""
    return threads_text(Target.host(), os.environ.get("RELAX_THREADS") == "openmp")


def threads_text(target: Target, openmp: bool = False) -> str:
    """The LLVM text of the functions for a machine."""
    known = _MACHINES.get(target.arch)
    folder = files("lowering.codegen.runtime")
    if openmp or known is None or not sys.platform.startswith("linux"):
        return folder.joinpath("openmp.ll").read_text()
    futex, pause, parameters, arguments = known
    text = folder.joinpath("threads.ll").read_text()
    text = text.replace("declare void @PAUSE", f"declare void {pause}({parameters})")
    return text.replace("@PAUSE", f"{pause}({arguments})").replace("FUTEX", str(futex))

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


MOST_THREADS = 256
"""As many as `threads.ll` has positions for."""


def host_text() -> str:
    """The LLVM text of the functions for this process.

    They look up `RELAX_NUM_THREADS` themselves, and cannot complain: `ValueError` if that is no number of threads, or
    `RELAX_THREADS` not `openmp`.
    """
    if (kind := os.environ.get("RELAX_THREADS", "")) not in ("", "openmp"):
        raise ValueError(f'RELAX_THREADS expected openmp, or nothing for threads of our own, got "{kind}"')
    number = os.environ.get("RELAX_NUM_THREADS", "")
    if number and not (number.isascii() and number.isdecimal() and 1 <= int(number) <= MOST_THREADS):
        raise ValueError(f'RELAX_NUM_THREADS expected a number from 1 to {MOST_THREADS}, got "{number}"')
    return threads_text(Target.host(), kind == "openmp")


def threads_text(target: Target, openmp: bool = False) -> str:
    """The LLVM text of the functions for a machine."""
    known = _MACHINES.get(target.arch)
    folder = files("lowering.runtime.kernel")
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

"""The error of code generation, with what LLVM writes on stderr instead of giving it to who calls."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar


class CodegenError(Exception):
    """An llvm-dialect module that has no LLVM text, text that LLVM rejects, or code that cannot be loaded."""


T = TypeVar("T")

_UNKNOWN, _IGNORED = " is not a recognized ", " (ignoring "
_STREAM = Lock()
"""Held while stderr leads elsewhere: two who change it at a time would not find the way back."""


@contextmanager
def caught_messages() -> Generator[list[str]]:
    """What is written on stderr meanwhile, by any thread: lines, which are there at the end of the `with` statement."""
    lines: list[str] = []
    with _STREAM:
        try:
            stream = os.dup(2)
        except OSError:  # a process without this stream
            yield lines
            return
        with tempfile.TemporaryFile() as messages:
            os.dup2(messages.fileno(), 2)
            try:
                yield lines
            finally:
                os.dup2(stream, 2)
                os.close(stream)
                messages.seek(0)
                lines += messages.read().decode(errors="replace").splitlines(keepends=True)


def refusing_unknown_names(make: Callable[[], T]) -> T:
    """What `make` gives; raises `CodegenError` if LLVM says that it ignores a name. Other messages pass."""
    with caught_messages() as lines:
        made = make()
    unknown = dict.fromkeys(line.partition(_IGNORED)[0] for line in lines if _UNKNOWN in line)
    if others := "".join(line for line in lines if _UNKNOWN not in line):
        os.write(2, others.encode())
    if unknown:
        raise CodegenError(f"{'; '.join(unknown)}: names are those of LLVM's -mcpu=help")
    return made

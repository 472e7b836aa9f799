"""Detection of unknown processors and features, which LLVM ignores with a message on stderr."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import TypeVar

from lowering.llvm.errors import CodegenError

T = TypeVar("T")

_UNKNOWN, _IGNORED = " is not a recognized ", " (ignoring "


def refusing_unknown_names(make: Callable[[], T]) -> T:
    """What `make` gives; raises `CodegenError` if LLVM says that it ignores a name. Other messages pass."""
    try:
        stream = os.dup(2)
    except OSError:  # a process without this stream
        return make()
    with tempfile.TemporaryFile() as messages:
        os.dup2(messages.fileno(), 2)
        try:
            made = make()
        finally:
            os.dup2(stream, 2)
            os.close(stream)
        messages.seek(0)
        lines = messages.read().decode(errors="replace").splitlines(keepends=True)
    unknown = dict.fromkeys(line.partition(_IGNORED)[0] for line in lines if _UNKNOWN in line)
    os.write(2, "".join(line for line in lines if _UNKNOWN not in line).encode())
    if unknown:
        raise CodegenError(f"{'; '.join(unknown)}: names are those of LLVM's -mcpu=help")
    return made

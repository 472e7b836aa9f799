"""What the compiler shows of its work on stderr: `RELAX_DEBUG=1..4`, each level with those below it, and a bar for what
takes long.
"""

from __future__ import annotations

import os
import sys
import time
from enum import IntEnum
from typing import TextIO

_ON, _OFF = ("", "1", "on", "true", "yes"), ("0", "off", "false", "no")


def is_on(name: str) -> bool:
    """Whether a switch is on, as it is unless the variable says otherwise; `ValueError` if that says neither."""
    text = os.environ.get(name, "")
    if text.lower() not in (*_ON, *_OFF):
        raise ValueError(f'{name} expected 0 or 1, got "{text}"')
    return text.lower() in _ON


class Debug(IntEnum):
    """What a level adds."""

    NOTHING = 0
    STAGES = 1
    """The IR after each pass, and Python tracebacks of internal errors."""
    SCHEDULES = 2
    """The loops that each kernel gets, and why. From this level on kernels in the cache are compiled, too."""
    LLVM = 3
    """Optimised LLVM IR of what is compiled: kernels, the functions that call them, the run-time support."""
    MACHINE = 4
    """Assembly."""


def debug_level() -> Debug:
    """The level in the environment; `ValueError` if it is not one of 0 to 4."""
    text = os.environ.get("RELAX_DEBUG", "") or "0"
    if text not in {str(level.value) for level in Debug}:
        raise ValueError(f"RELAX_DEBUG expected a level from 0 to {max(Debug).value}, got {text}")
    return Debug(int(text))


def show(level: Debug, title: str, text: str) -> None:
    """Writes `text` under a title line to stderr if `RELAX_DEBUG` is at least `level`."""
    if debug_level() >= level:
        print(f"// -----// {title} //----- //", text, sep="\n", file=sys.stderr)


WIDTH = 30
PATIENCE = 0.5
"""Seconds of work before the bar appears: what is quick leaves no trace."""


class ProgressBar:
    """Shows how many of some things are done: `[######......] 12/57 kernels  conv2d`."""

    def __init__(self, stream: TextIO | None, what: str):
        """Nothing is shown without a stream."""
        self._stream = stream
        self._what = what
        self._begin = time.monotonic()
        self._shown = False

    def show(self, done: float, total: int, name: str) -> None:
        """`done` of `total` things are done; `name` is the one at hand."""
        if self._stream is None or time.monotonic() - self._begin < PATIENCE:
            return
        filled = int(WIDTH * done / max(total, 1))
        bar = "#" * filled + "." * (WIDTH - filled)
        self._stream.write(f"\r[{bar}] {int(done)}/{total} {self._what}  {name[:40]:<40}")
        self._stream.flush()
        self._shown = True

    def close(self) -> None:
        """Ends the line, if there is one."""
        if self._shown and self._stream is not None:
            self._stream.write("\n")
            self._stream.flush()

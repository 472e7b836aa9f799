"""A bar on a terminal for what takes long."""

from __future__ import annotations

import time
from typing import TextIO

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

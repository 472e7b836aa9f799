"""A function in a process of its own: what it raises, the signal that ends it, or that it takes too long."""

from __future__ import annotations

import os
import select
import signal
import time
import traceback
from collections.abc import Callable

MOST_TEXT = 4000


def outcome(action: Callable[[], object], limit: float) -> str | None:
    """What is wrong, in words; `None` if the action returns within `limit` seconds."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.write(writer, (_said(action) or "ok").encode(errors="replace")[:MOST_TEXT])
        os._exit(0)
    os.close(writer)
    try:
        return _wait(child, reader, limit)
    finally:
        os.close(reader)


def _said(action: Callable[[], object]) -> str | None:
    try:
        action()
    except BaseException as error:
        *_, last = traceback.extract_tb(error.__traceback__) or [None]
        place = f" ({last.filename}:{last.lineno})" if last is not None else ""
        return f"{type(error).__name__}: {error}{place}"
    return None


def _wait(child: int, reader: int, limit: float) -> str | None:
    end = time.monotonic() + limit
    said = b""
    while (left := end - time.monotonic()) > 0:
        if not select.select([reader], [], [], left)[0]:
            break
        if not (part := os.read(reader, MOST_TEXT)):
            break
        said += part
    if not said and time.monotonic() >= end:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return f"takes more than {limit:.0f} seconds"
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
    text = said.decode(errors="replace")
    return None if text == "ok" else text

"""LLVM beside the compiler: while one thread optimises a kernel, the other prepares the next one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from lowering.debug import Debug, debug_level

T = TypeVar("T")

SWITCH_SECONDS = 5e-5
"""How long the interpreter stays with one thread. LLVM is called in some seventy steps for a kernel, each of which
waits this long to come back; by default a hundred times as long."""


class Background:
    """One thread for work that does not hold the interpreter's lock, for the time of a `with` statement.

    llvmlite lets one thread at a time into LLVM, so there is no use for more of them.
    """

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._interval = sys.getswitchinterval()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits for the work; after an error, what has not begun is left undone."""
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=kind is not None)
            sys.setswitchinterval(self._interval)

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """The result of `work`, or the error that it raises, when it is there.

        What shows its work in order (`RELAX_DEBUG`), or has no second processor, is done at once.
        """
        if self._thread is None and _processors() > 1 and debug_level() == Debug.NOTHING:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="relax-codegen")
            sys.setswitchinterval(min(SWITCH_SECONDS, self._interval))
        return _done(work) if self._thread is None else self._thread.submit(work)


def _done(work: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    try:
        future.set_result(work())
    except Exception as error:
        future.set_exception(error)
    return future


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

"""Systems that take turns, each in a process of its own, which is stopped while it is not its turn.

Else threads of one library, awake while they wait for their next task, would take processors from the others.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, cast

import numpy as np
import tvm_ffi

from benchmarks.timing import seconds_of
from vm_dialect.tensors import to_numpy

Call = Callable[[], Any]


class SelfTimed(NamedTuple):
    """What gives the seconds of its part that counts, since it cannot be called alone."""

    seconds: Callable[[], float]

    def __call__(self) -> np.ndarray:
        return np.array(self.seconds())


Prepare = Callable[[int], Call | SelfTimed | None]
"""What a system does for a case, given by its number; `None` if it does not know it."""


class Contestant:
    """A child of this process, which loads its library itself."""

    def __init__(self, prepare: Prepare):
        context = get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(prepare, theirs), daemon=True)
        self._process.start()

    def prepare(self, case: int) -> np.ndarray | None:
        """The result of a case that is timed from now on; `None` if the system does not know it."""
        return cast("np.ndarray | None", self._turn("prepare", case))

    def time(self, repeats: int) -> float:
        """Seconds of one of so many calls, after one that warms up."""
        return cast("float", self._turn("time", repeats))

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.join()

    def _turn(self, request: str, number: int) -> object:
        """Lets the process go on until it has answered."""
        pid = self._process.pid
        assert pid is not None  # it has been started
        os.kill(pid, signal.SIGCONT)
        self._pipe.send((request, number))
        answer = self._pipe.recv()
        os.kill(pid, signal.SIGSTOP)
        return answer


def _serve(prepare: Prepare, pipe: Connection) -> None:
    call: Call | SelfTimed | None = None
    while True:
        request, number = pipe.recv()
        if request == "prepare":
            call = prepare(number)
            pipe.send(None if call is None else as_array(call()))
        else:
            assert call is not None  # only what is known is timed
            call()
            pipe.send(call.seconds() if isinstance(call, SelfTimed) else seconds_of(call, number))


def as_array(result: Any) -> np.ndarray:
    """A result of any of the systems; of several the first one."""
    first = cast("list[Any]", result)[0] if isinstance(result, list | tvm_ffi.Array) else result
    if isinstance(first, tvm_ffi.Tensor):
        return to_numpy(first)
    if str(getattr(first, "dtype", "")) == "torch.bfloat16":  # which NumPy does not take
        first = first.float()
    return np.asarray(first) if isinstance(first, np.ndarray | np.generic) else np.from_dlpack(first)

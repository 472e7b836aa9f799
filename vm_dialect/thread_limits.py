"""How many threads parallel loops of compiled code may have, by call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

LIMIT_THREADS = "relax_limit_threads"
"""The symbol of what limits the threads of loops: `i32(i32)`, which gives the limit before."""

MOST_THREADS = 256
"""No loop has more."""


@dataclass(frozen=True)
class ThreadLimit:
    """How many threads the loops of a call may have, whatever the environment says."""

    number: int
    setters: Sequence[Callable[[int], int]]
    """Limit the loops that the calling thread begins, each those of some code; they give the limit before."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function under the limit."""
        before = [setter(self.number) for setter in self.setters]
        try:
            return function(*arguments)
        finally:
            for setter, number in zip(self.setters, before, strict=True):
                setter(number)


def checked_threads(number: int | None) -> int | None:
    """A number of threads; `ValueError` for one that there cannot be."""
    value = cast("object", number)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_THREADS):
        return number
    raise ValueError(f"num_threads expected a number from 1 to {MOST_THREADS}, got {number!r}")


def thread_setter(address: int) -> Callable[[int], int]:
    """The function of `LIMIT_THREADS` at an address."""
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(address)

"""Settings of a process: what it does without, how many threads its parallel loops have, where and how they wait."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, cast


@contextmanager
def without_torch() -> Generator[None]:
    """A context in which PyTorch cannot be imported, unless it is already.

    tvm-ffi imports it where it is installed, to exchange tensors with old versions of it. That takes seconds and 140 MB
    in a process that may never see a tensor of PyTorch. It can be imported afterwards.
    """
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    if "torch" in modules:
        yield
        return
    modules["torch"] = None
    try:
        yield
    finally:
        del modules["torch"]


class _FFIWithoutTorch:
    """A finder of `sys.meta_path` that loads tvm-ffi `without_torch`. It has no base class, as `importlib.abc` takes
    long to load.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The package, once; `None` for any other module."""
        if fullname != "tvm_ffi":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_without_torch(module: ModuleType) -> None:
                with without_torch():
                    load(module)

            vars(spec.loader)["exec_module"] = load_without_torch
        return spec


def load_ffi_without_torch() -> None:
    """From now on the first import of tvm-ffi does not import PyTorch: for programs of which all is known."""
    if "tvm_ffi" not in sys.modules:
        sys.meta_path.insert(0, _FFIWithoutTorch())


LIMIT_THREADS = "relax_limit_threads"
"""The symbol of what limits the threads of loops: `i32(i32)`, which gives the limit before."""

MOST_THREADS = 256
"""No loop has more."""

PROCESSORS = 1024
"""Threads can be bound to one whose number is less."""

WAITING = ("passive", "active")
"""Threads that wait sleep at once, or stay awake until there is work."""


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


def checked_affinity(text: str) -> str:
    """Processors as `RELAX_AFFINITY` names them, `0,2,4-7`; `ValueError` for other texts."""
    parts = [part.split("-") for part in text.split(",")]
    for part in parts:
        valid = len(part) <= 2 and all(each.isascii() and each.isdecimal() and int(each) < PROCESSORS for each in part)
        if not valid or int(part[0]) > int(part[-1]):
            raise ValueError(f"expected processors from 0 to {PROCESSORS - 1}, as in 0,2,4-7, got {text!r}")
    return text


def checked_waiting(text: str) -> str:
    """How threads wait as `RELAX_WAIT_POLICY` says it; `ValueError` for other texts."""
    if text.lower() not in WAITING:
        raise ValueError(f"expected {' or '.join(WAITING)}, got {text!r}")
    return text


def thread_setter(address: int) -> Callable[[int], int]:
    """The function of `LIMIT_THREADS` at an address."""
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(address)

"""Resources of this process: memory that it does without, gives back, or takes only where it is written; and how many
threads its parallel loops may have, where they run and how they wait.
"""

from __future__ import annotations

import ctypes
import gc
import math
import mmap
import re
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DONT_NEED = 4
"""`MADV_DONTNEED` of Linux."""


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


def zeros_on_demand(shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of zeros of which only those pages take memory that are written: 4 KiB each, never huge ones.

    `numpy.zeros` takes memory that was released before where there is some, and clears it, which takes all of it; of a
    large array it asks for huge pages.
    """
    import numpy as np

    count = math.prod(shape)
    memory = mmap.mmap(-1, max(1, count * dtype.itemsize), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(memory, dtype, count).reshape(shape)


def give_back() -> None:
    """Gives memory back to the system that nothing refers to any more, at the end of work that took much."""
    gc.collect()
    with suppress(OSError, AttributeError):  # of the C library of GNU only
        ctypes.CDLL(None).malloc_trim(0)


def give_back_library(name: str) -> None:
    """Gives back what was read of a shared library, at the end of work that needs it; what is used again is read again.

    Mapped pages that nobody has written count as memory of each process that has read them. Does nothing where the
    system does not say which these are (`/proc/self/smaps`).
    """
    try:
        with open("/proc/self/smaps", encoding="utf-8", errors="replace") as file:
            spans = list(unwritten_mappings(file, name))
    except OSError:
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for first, last in spans:
        advise(first, last - first, _DONT_NEED)


_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) .*? ?(\S*)")


def unwritten_mappings(smaps: Iterable[str], name: str) -> Generator[tuple[int, int]]:
    """The mappings of a library that cannot be written, and never were: not what the dynamic linker has filled in."""
    span: tuple[int, int] | None = None
    for line in smaps:
        if found := _MAPPING.fullmatch(line.rstrip()):
            first, last, access, path = found.groups()
            is_wanted = access[0] == "r" and access[1] == "-" and path.rpartition("/")[2].startswith(name)
            span = (int(first, 16), int(last, 16)) if is_wanted else None
        elif span is not None and line.split() == ["Anonymous:", "0", "kB"]:
            yield span


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

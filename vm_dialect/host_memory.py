"""Memory of this process: as kernels want it, only where it is written, and given back."""

from __future__ import annotations

import ctypes
import gc
import math
import mmap
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

ALIGNMENT = 64
"""Bytes to which new memory is aligned: one cache line, one AVX-512 vector."""

_DONT_NEED = 4
"""`MADV_DONTNEED` of Linux."""


def aligned_bytes(size: int) -> Array:
    """`size` bytes of new memory aligned to `ALIGNMENT`, dtype `uint8`, not initialised."""
    return _aligned(np.empty(size + ALIGNMENT, np.uint8), size)


def aligned_zeros(size: int) -> Array:
    """`aligned_bytes`, all 0; the system gives large memory so when it is used."""
    return _aligned(np.zeros(size + ALIGNMENT, np.uint8), size)


def _aligned(raw: Array, size: int) -> Array:
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


def aligned_copy(array: Array) -> Array:
    """The elements in memory of their own, aligned to `ALIGNMENT`, in row-major and native byte order."""
    dtype = array.dtype.newbyteorder("=")
    copy = aligned_bytes(array.size * dtype.itemsize).view(dtype).reshape(array.shape)
    copy[...] = array
    return copy


def zeros_on_demand(shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array of zeros of which only those pages take memory that are written: 4 KiB each, never huge ones.

    `numpy.zeros` takes memory that was released before where there is some, and clears it, which takes all of it; of a
    large array it asks for huge pages.
    """
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

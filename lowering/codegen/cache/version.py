"""The version of the compiler: part of every cache key, so that entries of another version are never used."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

_KERNEL_PACKAGES = ("lowering/codegen", "lowering/schedule", "lowering/tir", "lowering/to_llvm", "tir_dialect")
_PACKAGES = ("lowering", "relax_dialect", "tir_dialect", "vm_dialect")
_SUFFIXES = (".py", ".ll")


@cache
def compiler_version() -> str:
    """Changes whenever a source file does that decides what code kernels get; takes a few milliseconds, once."""
    return _version(_KERNEL_PACKAGES)


@cache
def program_compiler_version() -> str:
    """Changes whenever a source file of ours does, or xDSL or NumPy: for what the whole compiler makes."""
    import numpy as np
    import xdsl

    return f"{_version(_PACKAGES)} {xdsl.__version__} {np.__version__}"


def _version(packages: Iterable[str]) -> str:
    root = Path(__file__).parents[3]
    digest = hashlib.sha256()
    for package in packages:
        for path, size, changed in sorted(_sources(root / package)):
            digest.update(f"{os.path.relpath(path, root)} {size} {changed}\n".encode())
    return digest.hexdigest()[:16]


def _sources(folder: str | Path) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of the last change of every source file."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIXES):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _sources(entry.path)

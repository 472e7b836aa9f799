"""The version of the compiler: part of every cache key, so that entries of another version are never used."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tir_dialect.extensions import extension_sources

_PACKAGES = ("lowering", "relax_dialect", "tir_dialect", "vm_dialect")
_KERNEL_SOURCES = (
    "lowering/cache/",
    "lowering/compiler/kernels/",
    "lowering/rewriting.py",
    "lowering/kernels/",
    "lowering/llvm/",
    "lowering/locations.py",
    "lowering/passes.py",
    "lowering/pipelines.py",
    "lowering/rewriting.py",
    "lowering/runtime/kernel/",
    "lowering/tir/",
    "lowering/tir_to_llvm/",
    "tir_dialect/",
    "vm_dialect/messages.py",
)
"""How the paths of those begin that decide what code kernels get."""

_SUFFIXES = (".py", ".ll")


@dataclass(frozen=True)
class Source:
    """A source file."""

    path: str
    """Below the folder that has all packages, with slashes."""
    size: int
    changed: int
    """When it was changed last, in nanoseconds."""


def compiler_version() -> str:
    """Changes whenever a source file does that decides what code kernels get; takes a few milliseconds, once."""
    return f"{_kernel_digest()}{_extensions_digest()}"


def program_compiler_version() -> str:
    """Changes whenever a source file of ours or of a loaded extension does, or xDSL or NumPy: for what the whole
    compiler makes.
    """
    import numpy as np
    import xdsl

    return f"{_program_digest()}{_extensions_digest()} {xdsl.__version__} {np.__version__}"


@cache
def _kernel_digest() -> str:
    return sources_digest(_root(), [source for source in _ours() if source.path.startswith(_KERNEL_SOURCES)])


@cache
def _program_digest() -> str:
    return sources_digest(_root(), _ours())


def _extensions_digest() -> str:
    """Nothing without extensions; not kept, as more of them may be loaded."""
    files = [(path, path.stat()) for path in extension_sources() if path.is_file()]
    sources = [Source(str(path), status.st_size, status.st_mtime_ns) for path, status in files]
    return f" {sources_digest(_root(), sources)}" if sources else ""


def sources_digest(root: Path, sources: Sequence[Source]) -> str:
    """Other for other files. Contents are read only where times tell nothing, since all are the same: reproducible
    builds of packages set them so.
    """
    digest = hashlib.sha256()
    by_contents = len({source.changed for source in sources}) < 2
    for source in sources:
        fact = hashlib.sha256((root / source.path).read_bytes()).hexdigest() if by_contents else source.changed
        digest.update(f"{source.path} {source.size} {fact}\n".encode())
    return digest.hexdigest()[:16]


def find_sources(root: Path, packages: Iterable[str]) -> list[Source]:
    """Every source file of packages, in order."""
    found = (source for package in packages for source in _below(str(root / package), package))
    return sorted(found, key=lambda source: source.path)


def _below(folder: str, path: str) -> Iterator[Source]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIXES):
                status = entry.stat()
                yield Source(f"{path}/{entry.name}", status.st_size, status.st_mtime_ns)
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _below(entry.path, f"{path}/{entry.name}")


@cache
def _ours() -> list[Source]:
    return find_sources(_root(), _PACKAGES)


def _root() -> Path:
    return Path(__file__).parents[2]

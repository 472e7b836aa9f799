"""Which compiler makes code: part of every cache key, so that no entry of an older compiler is taken."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_PACKAGES = ("lowering/codegen", "lowering/schedule", "lowering/tir", "lowering/to_llvm", "tir_dialect")


@cache
def compiler_version() -> str:
    """Changes whenever a source file does that decides what code comes out; takes a few milliseconds, once."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            status = path.stat()
            digest.update(f"{path.relative_to(root)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]

"""Everything between two levels: passes, pipelines and `build`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lowering.compiler.build import build

__all__ = ["build"]


def __getattr__(name: str) -> object:
    if name == "build":
        from tir_dialect.garbage import importing

        with importing():
            from lowering.llvm.binding import load_ahead

            import_module("tvm_ffi")  # first, since the libraries that it loads would wait for LLVM
            load_ahead()
            from lowering.compiler.build import build

        return build
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

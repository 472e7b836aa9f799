"""The relax dialect: graph-level programs over tensors whose shapes may be symbolic."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relax_dialect.builder import BlockBuilder
    from relax_dialect.dialect import Relax

__all__ = ["BlockBuilder", "Relax"]

# Loaded on first use: importing the package must stay cheap.
_LAZY = {"BlockBuilder": "relax_dialect.builder", "Relax": "relax_dialect.dialect"}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        from tir_dialect.garbage import importing

        with importing():
            return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

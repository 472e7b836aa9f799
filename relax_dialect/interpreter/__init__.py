"""Reference semantics of the relax dialect on NumPy arrays."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relax_dialect.interpreter.machine import Interpreter, run

__all__ = ["Interpreter", "run"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("relax_dialect.interpreter.machine"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

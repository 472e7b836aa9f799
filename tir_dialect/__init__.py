"""The tir dialect: loop-level programs over buffers, tensor expressions and schedules."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tir_dialect import te
    from tir_dialect.dialect import TIR
    from tir_dialect.schedule import Schedule
    from tir_dialect.specialization import specialize

__all__ = ["TIR", "Schedule", "specialize", "te"]

# Loaded on first use: importing the package must stay cheap.
_LAZY = {"TIR": "tir_dialect.dialect", "Schedule": "tir_dialect.schedule", "specialize": "tir_dialect.specialization"}


def __getattr__(name: str) -> object:
    if name == "te":
        return import_module("tir_dialect.te")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Schedules: step-by-step transformation of prim_funcs, checked, recorded and replayable."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tir_dialect.schedule.errors import ScheduleError
    from tir_dialect.schedule.handles import Block, Loop
    from tir_dialect.schedule.schedule import Schedule
    from tir_dialect.schedule.trace import Trace

__all__ = ["Block", "Loop", "Schedule", "ScheduleError", "Trace"]

# Loaded on first use: a build needs small parts of the package, but not the primitives.
_LAZY = {"Block": "handles", "Loop": "handles", "Schedule": "schedule", "ScheduleError": "errors", "Trace": "trace"}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f"tir_dialect.schedule.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

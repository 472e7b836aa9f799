"""Schedules: step-by-step transformation of prim_funcs, checked, recorded and replayable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm_dialect.lazy_names import LazyNames

if TYPE_CHECKING:
    from tir_dialect.schedule.handles import Block, Loop, ScheduleError
    from tir_dialect.schedule.schedule import Schedule
    from tir_dialect.schedule.trace import Trace

__all__ = ["Block", "Loop", "Schedule", "ScheduleError", "Trace"]

# Loaded on first use: a build needs small parts of the package, but not the primitives.
_NAMES = LazyNames(
    __name__,
    {
        "Block": "tir_dialect.schedule.handles:Block",
        "Loop": "tir_dialect.schedule.handles:Loop",
        "Schedule": "tir_dialect.schedule.schedule:Schedule",
        "ScheduleError": "tir_dialect.schedule.handles:ScheduleError",
        "Trace": "tir_dialect.schedule.trace:Trace",
    },
)

__getattr__ = _NAMES.get
__dir__ = _NAMES.listed

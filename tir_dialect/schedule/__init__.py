"""Schedules: step-by-step transformation of prim_funcs, checked, recorded and replayable."""

from tir_dialect.schedule.errors import ScheduleError
from tir_dialect.schedule.handles import Block, Loop
from tir_dialect.schedule.schedule import Schedule
from tir_dialect.schedule.trace import Trace

__all__ = ["Block", "Loop", "Schedule", "ScheduleError", "Trace"]

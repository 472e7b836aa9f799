"""An alternative schedule of a kernel: a trace, or changed target numbers for the rules of `schedule-cpu`."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from lowering.cache.code_cache import cache_key
from tir_dialect.dtypes import MOST_BYTES
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule.trace import Trace
from tir_dialect.target import NUMERIC_SETTINGS, Target


@dataclass(frozen=True)
class Choice:
    """A trace of schedule primitives, or the default rules for a changed target."""

    trace: Trace | None = None
    facts: tuple[tuple[str, int], ...] = ()
    """The changed target settings, sorted by name."""

    def schedule(self, func: PrimFuncOp, target: Target) -> None:
        """Schedules a function; `ScheduleError` for a trace that is not applicable, or an invalid target."""
        if self.trace is not None:
            from tir_dialect.schedule.schedule import Schedule

            self.trace.replay(Schedule(func))
            return
        from lowering.kernels.schedule_cpu import schedule

        schedule(func, self._machine(target))

    def _machine(self, target: Target) -> Target:
        try:
            return target.with_settings(dict(self.facts))
        except ValueError as error:
            from tir_dialect.schedule.handles import ScheduleError

            raise ScheduleError("schedule-cpu", str(error)) from error

    def code(self, func: PrimFuncOp, target: Target) -> str | None:
        """A fingerprint of the code that the choice generates for a function; `None` if it is not applicable."""
        from lowering.kernels.cpu.emit.kernel import outside_modules
        from tir_dialect.schedule.handles import ScheduleError

        copy = func.clone()
        ModuleOp([copy])  # in which routines have names, which say everything
        try:
            with outside_modules():
                self.schedule(copy, target)
        except (ScheduleError, DiagnosticException):
            return None
        return _code(copy)

    def schedule_as_measured(self, func: PrimFuncOp, target: Target, code: str, name: str) -> None:
        """Schedules a function; by default, with a warning that calls it `name`, if `code` is not what comes out."""
        from tir_dialect.schedule.handles import ScheduleError

        before = func.clone()
        try:
            self.schedule(func, target)
            reason = "the rules of schedule-cpu have changed since" if _code(func) != code else None
        except ScheduleError as error:
            reason = str(error)
        if reason is not None:
            found = f"the schedule that tuning found for @{name} is not used ({reason})"
            warnings.warn(f"{found}; it has the default one, tune again", stacklevel=2)
            func.detach_region(func.body)
            func.add_region(before.detach_region(before.body))
            Choice().schedule(func, target)

    def as_json(self) -> dict[str, object]:
        """The choice as JSON data."""
        return {"facts": dict(self.facts)} if self.trace is None else {"trace": self.trace.as_json()}

    @staticmethod
    def from_json(data: object) -> Choice:
        """The choice that `as_json` gave; `ValueError` for anything else."""
        if not isinstance(data, dict):
            raise ValueError(f"expected a choice, got {data}")
        fields = cast("dict[str, object]", data)
        if "trace" in fields:
            return Choice(Trace.from_json(fields["trace"]))
        facts = fields.get("facts")
        if not isinstance(facts, dict) or not all(
            name in NUMERIC_SETTINGS and is_size(value) for name, value in cast("dict[object, object]", facts).items()
        ):
            raise ValueError(f"expected a trace or facts of a machine, got {data}")
        return Choice(facts=tuple(sorted(cast("dict[str, int]", facts).items())))

    def text(self) -> str:
        """A complete one-line text: equal choices have equal texts."""
        return json.dumps(self.as_json(), sort_keys=True)

    def describe(self) -> str:
        """A text for reports: the changed settings, or the steps of the trace."""
        if self.trace is None:
            return ", ".join(f"{name}={value}" for name, value in self.facts)
        return "; ".join(line for line in self.trace.as_python().splitlines() if "get_" not in line)


def _code(func: PrimFuncOp) -> str:
    from tir_dialect.analysis.fingerprint import Fingerprint

    return cache_key([Fingerprint()(func, ("sym_name",))])


def is_size(value: object) -> bool:
    """Whether a value from a file is a possible extent, or number of bits, bytes, registers or cores."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_BYTES

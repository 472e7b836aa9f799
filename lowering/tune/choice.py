"""How one kernel is scheduled, where that is not what `schedule-cpu` does for this machine."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule.trace import Trace
from tir_dialect.target import Target

FACTS = frozenset(field.name for field in fields(Target)) - {"triple", "cpu", "features"}
"""The fields of a target that decide how a kernel is scheduled."""


@dataclass(frozen=True)
class Choice:
    """A trace of primitives, or the default rules for a machine with other numbers."""

    trace: Trace | None = None
    facts: tuple[tuple[str, int], ...] = ()
    """Fields of the target that the rules see changed, in order of their names."""

    def schedule(self, func: PrimFuncOp, target: Target) -> None:
        """Schedules a function; `ScheduleError` for a trace that does not fit it, or numbers no machine has."""
        if self.trace is not None:
            from tir_dialect.schedule.schedule import Schedule

            self.trace.replay(Schedule(func))
            return
        from lowering.schedule.schedule_cpu import schedule

        schedule(func, self._machine(target))

    def _machine(self, target: Target) -> Target:
        changed: Mapping[str, Any] = dict(self.facts)
        try:
            return replace(target, **changed)
        except ValueError as error:
            from tir_dialect.schedule.errors import ScheduleError

            raise ScheduleError("schedule-cpu", str(error)) from error

    def schedule_if_it_fits(self, func: PrimFuncOp, target: Target) -> None:
        """Schedules a function by default, with a warning, if this does not fit it."""
        from lowering.schedule.schedule_cpu import schedule
        from tir_dialect.schedule.errors import ScheduleError

        before = func.clone()
        try:
            self.schedule(func, target)
        except ScheduleError as error:
            name = func.sym_name.data
            warnings.warn(
                f"the schedule that tuning found for @{name} does not fit it any more ({error}); "
                "it has the default one, tune again",
                stacklevel=2,
            )
            func.detach_region(func.body)
            func.add_region(before.detach_region(before.body))
            schedule(func, target)

    def as_json(self) -> dict[str, object]:
        """Plain data."""
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
            name in FACTS and _is_size(value) for name, value in cast("dict[object, object]", facts).items()
        ):
            raise ValueError(f"expected a trace or facts of a machine, got {data}")
        return Choice(facts=tuple(sorted(cast("dict[str, int]", facts).items())))

    def text(self) -> str:
        """One line that says everything: equal choices have equal texts."""
        return json.dumps(self.as_json(), sort_keys=True)

    def describe(self) -> str:
        """For people: the changed numbers, or the steps."""
        if self.trace is None:
            return ", ".join(f"{name}={value}" for name, value in self.facts)
        return "; ".join(line for line in self.trace.as_python().splitlines() if "get_" not in line)


def _is_size(value: object) -> bool:
    """Whether a value is a number of bits, bytes, registers or cores that some machine could have."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**48

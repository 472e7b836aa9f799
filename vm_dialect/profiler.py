"""Where the time of a run goes: one row for each call in the bytecode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

from vm_dialect.observers import Decision
from vm_dialect.program import Site


@dataclass
class ProfileRow:
    """All calls made by one instruction."""

    site: Site
    calls: int = 0
    nanoseconds: int = 0
    """Time in the callee, without that of calls which the callee makes in bytecode."""


@dataclass(frozen=True, repr=False)
class Profile:
    """The profile of one run."""

    result: Any
    """What the function returned."""
    nanoseconds: int
    """Time of the whole run, the profiler's own included."""
    rows: tuple[ProfileRow, ...]
    """In order of the time they took, most first."""

    def __repr__(self) -> str:
        """Time and number of calls; `as_text` has the table."""
        calls = sum(row.calls for row in self.rows)
        return f"<Profile {self.nanoseconds / 1000:.1f} us, {calls} calls of {len(self.rows)} instructions>"

    def as_text(self) -> str:
        """A table: time, share, number of calls, callee, caller and instruction, and what it was made from."""
        lines = [f"{'time us':>12} {'share':>6} {'calls':>8}  call"]
        total = self.nanoseconds or 1
        for row in self.rows:
            location = f"  # {row.site.location}" if row.site.location else ""
            share = 100 * row.nanoseconds / total
            call = f"{row.site.callee}  in {row.site.caller}:{row.site.index}{location}"
            lines.append(f"{row.nanoseconds / 1000:12.1f} {share:5.1f}% {row.calls:8}  {call}")
        lines.append(f"{self.nanoseconds / 1000:12.1f} {100:5.1f}%           total")
        return "\n".join(lines)


class Profiler:
    """An instrument that adds up times."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], ProfileRow] = {}
        # Of every call that has not returned: its start, and the time of the calls inside it.
        self._open: list[list[int]] = []

    def before(self, site: Site, arguments: Sequence[Any]) -> Decision:
        """Starts the clock of a call."""
        self._open.append([perf_counter_ns(), 0])
        return Decision.RUN

    def after(self, site: Site, arguments: Sequence[Any], result: Any) -> None:
        """Stops the clock of the call that started last."""
        start, inside = self._open.pop()
        elapsed = perf_counter_ns() - start
        if self._open:
            self._open[-1][1] += elapsed
        row = self._rows.setdefault((site.caller, site.index), ProfileRow(site))
        row.calls += 1
        row.nanoseconds += elapsed - inside

    def profile(self, result: Any, nanoseconds: int) -> Profile:
        """What has been seen."""
        rows = sorted(self._rows.values(), key=lambda row: -row.nanoseconds)
        return Profile(result, nanoseconds, tuple(rows))

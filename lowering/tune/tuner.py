"""`tune`: the search."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TextIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from lowering.codegen.errors import CodegenError
from lowering.codegen.kernels import kernel_groups
from lowering.progress import ProgressBar
from lowering.tune.choice import Choice
from lowering.tune.database import Record, TuningDatabase, default_database, kernel_key
from lowering.tune.measure import Bench, agree
from lowering.tune.space import candidates
from lowering.tune.workload import Call, kernels_of, record_calls
from tir_dialect.schedule import ScheduleError
from tir_dialect.target import Target

LEAST_GAIN = 0.03
"""What is not faster by this part is noise: the default stays."""


@dataclass(frozen=True)
class Report:
    """What a search found, by the name of the kernel."""

    records: Mapping[str, Record]
    """Of kernels for which something faster than the default was found."""
    kernels: int
    tried: int

    @property
    def seconds(self) -> float:
        """Of all improved kernels, as they are now."""
        return sum(record.seconds for record in self.records.values())

    @property
    def default_seconds(self) -> float:
        """Of the same kernels, as they were."""
        return sum(record.default_seconds for record in self.records.values())

    def as_text(self) -> str:
        """A line for each improved kernel."""
        lines = [f"tried {self.tried} schedules of {self.kernels} kernels, improved {len(self.records)}"]
        for name, record in self.records.items():
            gain = record.default_seconds / max(record.seconds, 1e-12)
            lines.append(f"  @{name}  {gain:.2f}x  {record.choice.describe()}")
        return "\n".join(lines)


def tune(
    module: ModuleOp,
    arguments: Sequence[Any],
    *,
    entry: str = "main",
    trials: int = 32,
    target: Target | None = None,
    database: TuningDatabase | None = None,
    seed: int = 0,
    progress: TextIO | None = sys.stderr,
) -> Report:
    """Searches a faster schedule for every kernel that `entry` calls with these arguments; remembers what it finds.

    Each kernel is measured on the sizes it was called with, by default, as a search before this one found, and under up
    to `trials` choices; a choice counts if it gives the same values and takes less time. `database` is the user's
    unless one is given; later builds consult it. What is found for a kernel is in it before the next one is searched,
    so that a search may be ended at any time and goes on with another `seed`. `progress` gets a bar.

    Raises what `build` raises for the module, and `OSError` or `ValueError` if the database cannot be used.
    """
    target = target or Target.host()
    database = default_database() if database is None else database
    database.add({})  # one that cannot be read or written is told before the search, not after it
    calls = _by_kernel(record_calls(module, entry, arguments))
    lowered = kernels_of(module)
    groups = {group[0].sym_name.data: group for group in kernel_groups(lowered) if group[0].sym_name.data in calls}
    found: dict[str, Record] = {}
    tried = 0
    bar = ProgressBar(progress, "kernels")
    for number, (name, group) in enumerate(groups.items()):
        key = kernel_key(group, target)
        search = _Search(Bench(group, calls[name], target), target, name, database.lookup(key))
        for count, _ in enumerate(search.run(trials, seed), start=1):
            bar.show(number + count / trials, len(groups), name)
            tried += 1
        if search.record is not None:
            found[name] = search.record
            database.add({key: search.record})
    bar.close()
    return Report(found, len(groups), tried)


def _by_kernel(calls: Mapping[Call, int]) -> dict[str, Counter[Call]]:
    found: dict[str, Counter[Call]] = {}
    for call, count in calls.items():
        found.setdefault(call.kernel, Counter())[call] += count
    return found


class _Search:
    """The best choice for one kernel so far."""

    def __init__(self, bench: Bench, target: Target, name: str, known: Choice | None):
        """`known` is tried before all others."""
        self.bench = bench
        self.target = target
        self.name = name
        self.known = () if known is None else (known,)
        self.record: Record | None = None

    def run(self, trials: int, seed: int) -> Iterable[Choice]:
        """Measures candidates one by one; gives each that was tried."""
        default = self.bench.compile(None)
        expected = self.bench.results(default)
        least = self.bench.seconds(default)
        for choice in chain(self.known, islice(candidates(self.bench.group[0], self.target, seed), trials)):
            try:
                function = self.bench.compile(choice)
            except (ScheduleError, DiagnosticException, CodegenError):
                yield choice
                continue
            if agree(self.bench.results(function), expected):
                # both in turns: the machine may have become slower or faster since
                before, seconds = self.bench.seconds(default), self.bench.seconds(function)
                least = min(least, before)
                best = least if self.record is None else self.record.seconds
                if seconds < best * (1 - LEAST_GAIN):
                    self.record = Record(choice, seconds, least, self.name)
            yield choice

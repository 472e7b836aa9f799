"""The search for the best schedule of one kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

import tvm_ffi
from xdsl.utils.exceptions import DiagnosticException

from lowering.llvm.binding import CodegenError
from lowering.tune.choice import Choice
from lowering.tune.database import Call, Record, nearby
from lowering.tune.measure import Array, Bench, Race, agree
from lowering.tune.space import candidates
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule import ScheduleError
from tir_dialect.target import Target

LEAST_GAIN = 0.03
"""What is not faster by this part is noise: the default stays."""
MOST_LOSS = 0.1
"""What is slower by more than this at sizes nearby is not kept."""
LEAST_WINS = 0.7
"""What is not faster in this part of the rounds is noise."""
GLANCE, LOOK, PROOF = 3, 9, 21
"""Rounds of a race: whether one more measurement is profitable, against the best until then, and at the end,
against the default.
"""
MOST_KNOWN = 8
"""So many calls of earlier searches are measured again."""


class Search:
    """Compares schedules of a kernel: each candidate with the best so far, and the winner with the default."""

    def __init__(self, bench: Bench, target: Target, calls: Mapping[Call, int], known: Choice | None):
        """`known` is tried before all others."""
        self.bench, self.target, self.calls = bench, target, calls
        self.known = () if known is None else (known,)
        self.best: Choice | None = None
        self.default = bench.compile(None)
        self._function = self.default
        self.gain = 1.0
        """How much faster the best is than the default, by the races until now."""

    @staticmethod
    def of(
        group: Sequence[PrimFuncOp], calls: Mapping[Call, int], target: Target, known: Record | None, opt_level: int
    ) -> Search:
        """A search that measures these calls and those of earlier searches, each once."""
        name = group[0].sym_name.data
        earlier = (Call(name, call.arguments) for call in (() if known is None else known.calls[:MOST_KNOWN]))
        every = {**dict.fromkeys((call for call in earlier if call.is_alike(next(iter(calls)))), 1), **calls}
        return Search(Bench(group, every, target, opt_level), target, every, None if known is None else known.choice)

    def run(self, trials: int, seed: int, *, threads: bool = True) -> Iterator[Choice]:
        """Measures candidates one by one, and yields each of them. With `threads`, thread counts are varied, too."""
        expected = self.bench.results(self.default)
        new = candidates(self.bench.group[0], self.target, seed, lambda: self.best, threads=threads)
        for choice in chain(self.known, islice(new, trials)):
            function = self._compiled(choice, expected)
            if function is not None and self._is_faster(function):
                self.best, self._function = choice, function
            yield choice

    def _compiled(self, choice: Choice, expected: list[list[Array]]) -> tvm_ffi.Function | None:
        """The compiled kernel; `None` if the choice is not applicable, or the results differ."""
        try:
            function = self.bench.compile(choice)
        except (ScheduleError, DiagnosticException, CodegenError):
            return None
        return function if agree(self.bench.results(function), expected) else None

    def _is_faster(self, function: tvm_ffi.Function) -> bool:
        for rounds in (GLANCE, LOOK):
            race = self.bench.race(self._function, function, rounds)
            if not is_gain(race):
                return False
        before, seconds = race.seconds
        self.gain *= before / seconds
        return True

    def describe(self, name: str) -> str:
        """A text for the progress bar: the kernel and the speedup of the best schedule so far."""
        return name if self.gain == 1 else f"{name}  {self.gain:.2f}x"

    def record(self, name: str) -> Record | None:
        """The record of the best schedule, if it beats the default in a final comparison."""
        if self.best is None:
            return None
        race = self.bench.race(self.default, self._function, PROOF)
        before, seconds = race.seconds
        if not is_gain(race) or not self._is_safe_nearby():
            return None
        code = self.best.code(self.bench.group[0], self.bench.target)
        return Record(self.best, seconds, before, name, tuple(self.calls), code or "")

    def _is_safe_nearby(self) -> bool:
        """Whether the best schedule is not much slower at half and twice the sizes, which the kernel serves, too."""
        for call in nearby(self.bench.group[0], self.calls):
            bench = Bench(self.bench.group, {call: 1}, self.bench.target, self.bench.opt_level)
            try:
                expected = bench.results(self.default)
            except (ValueError, IndexError):  # the kernel is not for these sizes
                continue
            if not agree(bench.results(self._function), expected):
                return False
            if max(bench.race(self.default, self._function, LOOK).ratios) > 1 + MOST_LOSS:
                return False
        return True


def is_gain(race: Race) -> bool:
    """Whether the second is significantly faster in total, and not significantly slower in any single call."""
    before, seconds = race.seconds
    none_slower = all(ratio < 1 + LEAST_GAIN for ratio in race.ratios)
    return seconds < before * (1 - LEAST_GAIN) and race.wins >= LEAST_WINS and none_slower

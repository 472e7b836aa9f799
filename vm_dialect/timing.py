"""How long calls take."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any


@dataclass(frozen=True)
class Timings:
    """The times of a function, in seconds for a call."""

    results: tuple[float, ...]
    """The mean of each repetition."""

    @property
    def mean(self) -> float:
        """The mean of all repetitions."""
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        """The median of the repetitions."""
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        """The shortest."""
        return min(self.results)

    @property
    def max(self) -> float:
        """The longest."""
        return max(self.results)

    @property
    def std(self) -> float:
        """The standard deviation of the repetitions."""
        return statistics.pstdev(self.results)

    def __str__(self) -> str:
        named = ("min", self.min), ("median", self.median), ("mean", self.mean), ("max", self.max)
        return ", ".join(f"{name} {1e6 * seconds:.1f} us" for name, seconds in named)


def evaluator(
    function: Callable[..., Any], number: int, repeat: int, min_repeat_ms: float = 0.0
) -> Callable[..., Timings]:
    """A function that takes the arguments of `function`, and calls it `repeat` times `number` times.

    One call before is not counted. `number` grows until a repetition takes `min_repeat_ms` milliseconds. `ValueError`
    for numbers below 1.
    """
    if number < 1 or repeat < 1:
        raise ValueError(f"expected number and repeat of at least 1, got {number} and {repeat}")

    def elapsed(count: int, arguments: tuple[Any, ...]) -> int:
        begin = perf_counter_ns()
        for _ in range(count):
            function(*arguments)
        return perf_counter_ns() - begin

    def evaluate(*arguments: Any) -> Timings:
        function(*arguments)
        count = number
        while min_repeat_ms > 0 and elapsed(count, arguments) < 1e6 * min_repeat_ms:
            count *= 2
        return Timings(tuple(1e-9 * elapsed(count, arguments) / count for _ in range(repeat)))

    return evaluate

"""Times of small and large calls, taken in turns so that a ratio holds when the machine's speed drifts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

ROUNDS = 15
ROUND_SECONDS = 0.02


def time_in_turns(
    calls: Mapping[str, Callable[[], object]],
    rounds: int = ROUNDS,
    pick: Callable[[Sequence[float]], float] = median,
    seconds: float = ROUND_SECONDS,
) -> dict[str, float]:
    """Seconds of one call of each function: the median over rounds, in each of which every function has its turn.

    `pick=min` takes the best round instead, for what is short and disturbed by others on the machine; a turn takes
    about `seconds`.
    """
    timers = {name: partial(seconds_of, call) for name, call in calls.items()}
    for call in calls.values():
        call()
    return measure_in_turns(timers, rounds, pick, seconds)


def measure_in_turns(
    timers: Mapping[str, Callable[[int], float]],
    rounds: int,
    pick: Callable[[Sequence[float]], float],
    seconds: float,
) -> dict[str, float]:
    """The same for what measures itself: given a number of calls, the seconds of one of them."""
    repeats = {name: max(1, min(100_000, int(seconds / max(timer(1), 1e-8)))) for name, timer in timers.items()}
    samples: dict[str, list[float]] = {name: [] for name in timers}
    for _ in range(rounds):
        for name, timer in timers.items():
            samples[name].append(timer(repeats[name]))
    return {name: pick(values) for name, values in samples.items()}


def seconds_of(call: Callable[[], object], repeats: int) -> float:
    """Seconds of one of so many calls."""
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) / repeats


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    name: str
    ours: float
    """Seconds."""
    peers: Mapping[str, float]
    """Seconds, by peer."""


def print_table(title: str, rows: Sequence[Row]) -> None:
    """Prints times, and how many times faster than each peer we are."""
    peers = list(dict.fromkeys(peer for row in rows for peer in row.peers))
    print(f"\n## {title}\n")
    print("| | ours | " + "".join(f"{peer} | ratio | " for peer in peers))
    print("|---|---|" + "---|---|" * len(peers))
    for row in rows:
        cells = [row.name, _seconds(row.ours)]
        for peer in peers:
            known = row.peers.get(peer)
            cells += ["", ""] if known is None else [_seconds(known), f"{known / row.ours:.2f}x"]
        print(f"| {' | '.join(cells)} |")


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def in_processes(module: str) -> None:
    """Runs `benchmarks.<module>.table` once for each number of threads: the libraries read it when they start."""
    for threads in (1, 2):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
        code = f"from benchmarks.{module} import table; table({threads})"
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)

"""Looks for faults with random inputs: `python -m tests.fuzz [--budget SECONDS] [--only NAME] [--first SEED]`.

Every module of this folder that has a `NAME` and a `run(seed: int) -> None` is a fuzzer: `run` makes an input of the
seed and raises if it finds a fault. Each input runs in a process of its own, which also may not take too long or crash.
What is found is written to `seeds/<NAME>.txt`; the seeds there are run first each time. Fails if there is a find.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.fuzz.isolation import outcome
from tests.fuzz.registry import Fuzzer, fuzzers

SEEDS = Path(__file__).parent / "seeds"


def known_seeds(name: str) -> list[int]:
    """The seeds that once found something."""
    file = SEEDS / f"{name}.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return [int(line.split()[0]) for line in lines if line.strip() and not line.startswith("#")]


def record(name: str, seed: int, found: str) -> None:
    """Adds a find to the record, once."""
    if seed not in known_seeds(name):
        with (SEEDS / f"{name}.txt").open("a") as file:
            file.write(f"{seed}  {found.splitlines()[0][:160]}\n")


def search(chosen: list[Fuzzer], budget: float, first: int, limit: float) -> int:
    """Runs the fuzzers in turn until the time is over; the number of finds."""
    finds, counts = 0, dict.fromkeys((each.name for each in chosen), 0)
    end = time.monotonic() + budget
    todo = [(each, seed) for each in chosen for seed in known_seeds(each.name)]
    seed = first
    while time.monotonic() < end:
        if not todo:
            todo, seed = [(each, seed) for each in chosen], seed + 1
        fuzzer, number = todo.pop(0)
        counts[fuzzer.name] += 1
        if (found := outcome(lambda fuzzer=fuzzer, number=number: fuzzer.run(number), limit)) is not None:
            finds += 1
            print(f"{fuzzer.name} {number}: {found}", flush=True)
            record(fuzzer.name, number, found)
    print(", ".join(f"{name}: {count} inputs" for name, count in counts.items()) + f"; {finds} finds")
    return finds


def main() -> int:
    """The exit status: 0 if nothing is found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--budget", type=float, default=600, metavar="SECONDS")
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--first", type=int, default=int(time.time()), metavar="SEED", help="default: the time")
    parser.add_argument("--limit", type=float, default=60, metavar="SECONDS", help="for each input")
    args = parser.parse_args()
    chosen = [each for each in fuzzers() if args.only in ("", each.name)]
    if not chosen:
        parser.error(f"no fuzzer is called {args.only}; there are {', '.join(each.name for each in fuzzers())}")
    return min(1, search(chosen, args.budget, args.first, args.limit))


if __name__ == "__main__":
    sys.exit(main())

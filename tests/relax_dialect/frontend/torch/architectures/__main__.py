"""Tries architectures, each in a process of its own; prints what became of them, and notes it on the page.

`python -m tests.relax_dialect.frontend.torch.architectures [NAME ...]`, of names or their beginnings.
"""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.connection import Connection

from tests.relax_dialect.frontend.torch.architectures.attempt import attempt, find, names
from tests.relax_dialect.frontend.torch.architectures.page import PAGE, recorded

SECONDS = 400
"""After this an architecture is given up."""


def _report(name: str, results: Connection) -> None:
    results.send(attempt(find(name)))


def tried(name: str) -> str:
    """What became of an architecture: `right`, or what went wrong."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_report, args=(name, theirs))
    process.start()
    theirs.close()
    try:
        outcome = ours.recv() if ours.poll(SECONDS) else f"no result after {SECONDS} s"
    except EOFError:
        process.join()
        outcome = f"the process ended with {process.exitcode}"
    process.kill()
    process.join()
    return outcome


def main(patterns: list[str]) -> int:
    """Tries the architectures whose names begin with one of the patterns; gives how many are not right."""
    chosen = [name for name in names() if not patterns or name.startswith(tuple(patterns))]
    outcomes = dict[str, str]()
    for name in chosen:
        outcomes[name] = tried(name)
        print(f"{name}: {outcomes[name]}", flush=True)
        PAGE.write_text(recorded(PAGE.read_text(encoding="utf-8"), outcomes), encoding="utf-8")
    wrong = sum(outcome != "right" for outcome in outcomes.values())
    print(f"{len(chosen) - wrong} of {len(chosen)} architectures are right")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))

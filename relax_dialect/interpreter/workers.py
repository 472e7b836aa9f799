"""Many workers in one process: every rank interprets the same program, and what they exchange passes through here.

Ranks take turns: one runs until it has something to exchange, then the next one does, so that a run is the same each
time. Ranks that exchange different things, or wait for one that has ended, are told so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from threading import Condition, Thread
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from relax_dialect.interpreter.machine import Interpreter
from relax_dialect.interpreter.program import FRAMES_OF_A_CALL, MAX_DEPTH
from relax_dialect.interpreter.runtime_values import Value
from relax_dialect.struct_info.sharding import group_of


class WorkerError(RuntimeError):
    """A rank failed, and with it the run."""


@dataclass
class _Meeting:
    """An exchange in progress: what the ranks of a group have brought."""

    members: Sequence[int]
    brought: dict[int, tuple[str, Value]] = field(default_factory=dict[int, "tuple[str, Value]"])
    taken: int = 0


class _Run:
    """The ranks of one run, of which one at a time has the turn."""

    def __init__(self, mesh: Mapping[str, int]):
        self.mesh = mesh
        self.count = prod(mesh.values())
        self.condition = Condition()
        self.meetings: dict[tuple[int, ...], _Meeting] = {}
        self.waiting: dict[int, str] = {}
        self.ended = 0
        self.failure: WorkerError | None = None

    def exchange(self, rank: int, group: str, what: str, value: Value) -> Sequence[Value]:
        members = group_of(self.mesh, rank, group)
        meeting = self.meetings.setdefault(tuple(members), _Meeting(members))
        meeting.brought[rank] = (what, value)
        if len(meeting.brought) == len(members):
            del self.meetings[tuple(members)]  # the group's next exchange is another one
            self._compare(meeting)
            for member in members:
                self.waiting.pop(member, None)
            self.condition.notify_all()
        else:
            self.waiting[rank] = what
            self._find_deadlock()
            self.condition.wait_for(lambda: self.failure is not None or rank not in self.waiting)
        if self.failure is not None:
            raise self.failure
        return [meeting.brought[member][1] for member in members]

    def _compare(self, meeting: _Meeting) -> None:
        first, *others = meeting.members
        for other in others:
            ours, theirs = meeting.brought[first][0], meeting.brought[other][0]
            if ours != theirs:
                self.fail(WorkerError(f"workers disagree: rank {first} is at {ours}, rank {other} at {theirs}"))

    def _find_deadlock(self) -> None:
        if self.waiting and len(self.waiting) + self.ended == self.count:
            where = "; ".join(f"rank {rank} waits at {what}" for rank, what in sorted(self.waiting.items()))
            others = f"; {self.ended} have ended" if self.ended else ""
            self.fail(WorkerError(f"workers wait for each other: {where}{others}"))

    def fail(self, error: WorkerError) -> None:
        self.failure = self.failure or error
        self.condition.notify_all()

    def end(self) -> None:
        self.ended += 1
        self._find_deadlock()


@dataclass
class _Rank:
    """One of the workers of a run."""

    run: _Run
    rank: int

    @property
    def mesh(self) -> Mapping[str, int]:
        return self.run.mesh

    def exchange(self, group: str, what: str, value: Value) -> Sequence[Value]:
        return self.run.exchange(self.rank, group, what, value)


def run_workers(
    module: ModuleOp,
    entry: str,
    mesh: Mapping[str, int],
    arguments: Sequence[Sequence[Any]],
    packed_functions: Mapping[str, Callable[..., Any]] | None = None,
    weights: Mapping[str, Any] | None = None,
) -> list[Value]:
    """What each rank of a mesh gets from `entry`, for the arguments of each. The module has `relax.ccl` ops.

    Raises `WorkerError`, which names the rank, if one fails; if ranks exchange different things; or if they wait for
    each other.
    """
    run = _Run(mesh)
    if len(arguments) != run.count:
        raise ValueError(f"expected arguments for {run.count} workers, got those of {len(arguments)}")
    results: list[Value] = [None] * run.count

    def work(rank: int) -> None:
        with run.condition:  # it is released while a rank waits
            try:
                interpreter = Interpreter(module, packed_functions, weights, _Rank(run, rank))
                results[rank] = interpreter.run(entry, arguments[rank])
            except WorkerError as error:
                run.fail(error)
            except Exception as error:
                found = WorkerError(f"rank {rank}: {type(error).__name__}: {error}")
                found.__cause__ = error
                run.fail(found)
            run.end()

    threads = [Thread(target=work, args=(rank,), name=f"rank {rank}") for rank in range(run.count)]
    # The limit is that of the process: it holds until the last rank has ended.
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, FRAMES_OF_A_CALL * MAX_DEPTH))
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setrecursionlimit(limit)
    if run.failure is not None:
        raise run.failure
    return results

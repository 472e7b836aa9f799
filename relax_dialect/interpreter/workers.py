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

from relax_dialect.interpreter.frame import FRAMES_OF_A_CALL, MAX_DEPTH
from relax_dialect.interpreter.machine import Interpreter
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
        self.mail: dict[tuple[int, int, int], list[tuple[str, Value]]] = {}
        """What has been sent and not received, by sender, receiver and tag."""
        self.waiting: dict[int, str] = {}
        self.ended = 0
        self.failure: WorkerError | None = None

    def exchange(self, rank: int, group: str, what: str, value: Value) -> Sequence[Value]:
        members = group_of(self.mesh, rank, group)
        meeting = self.meetings.setdefault(tuple(members), _Meeting(members))
        meeting.brought[rank] = (what, value)
        if len(meeting.brought) == len(members):
            del self.meetings[tuple(members)]  # the group's next exchange is another one
            first, *others = meeting.members
            for other in others:
                ours, theirs = meeting.brought[first][0], meeting.brought[other][0]
                if ours != theirs:
                    self.fail(WorkerError(f"workers disagree: rank {first} is at {ours}, rank {other} at {theirs}"))
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

    def member(self, rank: int, group: str, index: int) -> int:
        """The rank of another worker of a group; `ValueError` if it is none."""
        members = group_of(self.mesh, rank, group)
        if not 0 <= index < len(members) or members[index] == rank:
            raise ValueError(f"expected another one of the {len(members)} workers of the group, got {index}")
        return members[index]

    def send(self, sender: int, receiver: int, tag: int, what: str, value: Value) -> None:
        self.mail.setdefault((sender, receiver, tag), []).append((what, value))
        if self.waiting.get(receiver, "").endswith(_sender(sender, tag)):
            del self.waiting[receiver]
        self.condition.notify_all()

    def receive(self, sender: int, receiver: int, tag: int, what: str) -> Value:
        letters = self.mail.setdefault((sender, receiver, tag), [])
        if not letters:
            self.waiting[receiver] = what + _sender(sender, tag)
            self._find_deadlock()
            self.condition.wait_for(lambda: self.failure is not None or letters)
            self.waiting.pop(receiver, None)
        if self.failure is not None:
            raise self.failure
        sent, value = letters.pop(0)
        if sent != what:
            self.fail(WorkerError(f"workers disagree: rank {sender} sends {sent}, rank {receiver} receives {what}"))
        if self.failure is not None:
            raise self.failure
        return value

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
    begun: dict[str, str] = field(default_factory=dict[str, str])
    """The exchanges of groups that have begun and not ended."""

    @property
    def mesh(self) -> Mapping[str, int]:
        return self.run.mesh

    def exchange(self, group: str, what: str, value: Value) -> Sequence[Value]:
        return self.run.exchange(self.rank, group, what, value)

    def send(self, group: str, to: int, tag: int, what: str, value: Value) -> None:
        self.run.send(self.rank, self.run.member(self.rank, group, to), tag, what, value)

    def receive(self, group: str, source: int, tag: int, what: str) -> Value:
        return self.run.receive(self.run.member(self.rank, group, source), self.rank, tag, what)


def _sender(sender: int, tag: int) -> str:
    """How it is told for what a rank waits that receives."""
    return f" from rank {sender} with tag {tag}"


def run_workers(
    module: ModuleOp,
    entry: str | Sequence[str],
    mesh: Mapping[str, int],
    arguments: Sequence[Sequence[Any]],
    packed_functions: Mapping[str, Callable[..., Any]] | None = None,
    weights: Mapping[str, Any] | None = None,
) -> list[Value]:
    """What each rank of a mesh gets from `entry`, for the arguments of each. The module has `relax.ccl` ops.

    Ranks may have entries of their own.

    Raises `WorkerError`, which names the rank, if one fails; if ranks exchange different things; or if they wait for
    each other.
    """
    run = _Run(mesh)
    if len(arguments) != run.count:
        raise ValueError(f"expected arguments for {run.count} workers, got those of {len(arguments)}")
    results: list[Value] = [None] * run.count
    entries = [entry] * run.count if isinstance(entry, str) else entry

    def work(rank: int) -> None:
        with run.condition:  # it is released while a rank waits
            try:
                interpreter = Interpreter(module, packed_functions, weights, _Rank(run, rank))
                results[rank] = interpreter.run(entries[rank], arguments[rank])
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

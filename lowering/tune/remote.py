"""Searches on the workers of a pool: each is for one kernel, and all of its races are on one machine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import getloadavg
from socket import gethostname

from xdsl.dialects.builtin import ModuleOp

from lowering.parsing import parse_module
from lowering.tune.call import Call
from lowering.tune.database import Record
from lowering.tune.search import Search
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

BUSY = 0.5
"""Where there are more processes than processors by this, threads wait for each other, and fewer seem to be faster."""


@dataclass(frozen=True)
class Task:
    """A search for one kernel, as it is sent to a worker."""

    text: str
    """The module of the kernel and of what belongs to it."""
    calls: Mapping[Call, int]
    target: Target
    known: str | None
    """The record of an earlier search as JSON."""
    trials: int
    seed: int
    opt_level: int

    @staticmethod
    def of(
        group: Sequence[PrimFuncOp],
        calls: Mapping[Call, int],
        target: Target,
        known: Record | None,
        trials: int,
        seed: int,
        opt_level: int,
    ) -> Task:
        """The task for a group of functions that is one kernel."""
        text = str(ModuleOp([func.clone() for func in group]))
        return Task(text, calls, target, _json(known), trials, seed, opt_level)


@dataclass(frozen=True)
class Found:
    """What a worker has found."""

    record: str | None
    """The record of a faster schedule as JSON."""
    tried: int
    load: float
    """The largest number of runnable processes observed."""


def _json(record: Record | None) -> str | None:
    return None if record is None else json.dumps(record.as_json())


def run(task: Task) -> Found:
    """The search, on a worker; `ValueError` if its machine is not the one that schedules are searched for."""
    here = Target.host()
    if here != task.target:
        raise ValueError(f"expected workers on machines like {task.target}, but {gethostname()} is {here}")
    group = [op for op in parse_module(task.text).ops if isinstance(op, PrimFuncOp)]
    known = None if task.known is None else Record.from_json(json.loads(task.known))
    search, name = Search.of(group, task.calls, task.target, known, task.opt_level), group[0].sym_name.data
    load = getloadavg()[0]
    tried = sum(1 for _ in search.run(task.trials, task.seed, threads=load <= here.cores + BUSY))
    record = search.record(name)
    return Found(_json(record), tried, max(load, getloadavg()[0]))

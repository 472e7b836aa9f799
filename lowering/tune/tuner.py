"""`tune`: a search for better schedules of all kernels of a program, by the sizes and numbers of calls that were
recorded, here or on the workers of a pool; and `schedule-tuned`, which gives kernels the schedules that it found.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import getloadavg
from socket import gethostname
from typing import Any, TextIO

import tvm_ffi
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowering.compiler.kernels import kernel_groups
from lowering.compiler.tuning_database import Call, Record, TuningDatabase, default_database, kernel_key
from lowering.debug import ProgressBar
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import CodeCache
from lowering.parsing import parse_module, require_module
from lowering.pipelines import RelaxToVMPass, RelaxToVMPlainPass
from lowering.registry import pass_target
from lowering.relax.functions.expose_prim_funcs import ExposePrimFuncsPass
from lowering.tune.search import Search
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from vm_dialect import VirtualMachine
from vm_dialect.program import Site
from vm_dialect.thread import Decision


@dataclass(frozen=True)
class ScheduleTunedPass(ModulePass):
    """Schedules PrimFuncs as `build` does: with what tuning has found for a kernel, the others as `schedule-cpu` does.

    ```mlir
    tir.for (%i) in (%n) { tir.block "exp" (...) { ... } }   // for which one thread was the fastest
    // becomes
    tir.for (%i) in (%blocks) { ... }                        // where `schedule-cpu` makes `tir.for parallel`
    ```

    Expects what `relax-to-vm` leaves, since kernels are found by what they compute then. The user's database is
    consulted: `$RELAX_TUNING_FILE`, nothing with `RELAX_TUNING=0`. A record for which the rules make other code today
    is not used, with a warning. What was measured is a kernel: private functions, which kernels call, are scheduled as
    always, as they were when it was measured.
    """

    name = "schedule-tuned"

    target: str = ""
    """The machine; this one if it is not named."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Looks all kernels up, then schedules each function by itself."""
        target = pass_target(self.target)
        records = default_database().records_or_warn()
        keys = {group[0]: kernel_key(group, target) for group in kernel_groups(op)} if records else {}
        for func in [inner for inner in op.ops if isinstance(inner, PrimFuncOp)]:
            record = records.get(keys.get(func, ""))
            if record is None:
                schedule(func, target)
            else:
                record.choice.schedule_as_measured(func, target, record.code, record.kernel)


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


class _Recorder:
    """A VM instrument that counts kernel calls by their arguments."""

    def __init__(self, kernels: frozenset[str]):
        self.kernels = kernels
        self.calls: Counter[Call] = Counter()

    def before(self, site: Site, arguments: Sequence[Any]) -> Decision:
        if site.callee in self.kernels:
            self.calls[Call(site.callee, tuple(map(_argument, arguments)))] += 1
        return Decision.RUN

    def after(self, site: Site, arguments: Sequence[Any], result: Any) -> None:
        """Does nothing."""


def _argument(value: Any) -> tuple[str, tuple[int, ...]] | float:
    return (str(value.dtype), tuple(value.shape)) if isinstance(value, tvm_ffi.Tensor) else value


def kernels_of(module: ModuleOp, target: Target | None = None, opt_level: int = 3) -> ModuleOp:
    """The module as `build` lowers it, in which every PrimFunc is a kernel."""
    lowered = module.clone()
    ExposePrimFuncsPass().apply(Context(), lowered)
    pipeline = RelaxToVMPass if opt_level else RelaxToVMPlainPass
    pipeline.run(Context(), lowered, target or Target.host())
    return lowered


def record_calls(
    module: ModuleOp,
    entry: str,
    arguments: Sequence[Any],
    target: Target | None = None,
    opt_level: int = 3,
    cache: CodeCache | bool = True,
) -> Counter[Call]:
    """How often each kernel is called with which sizes when `entry` is called; `ValueError` if there is none.

    `cache` as in `build`.
    """
    from lowering.compiler.build import build

    kernels = kernels_of(module, target, opt_level)
    executable = build(module, mode="bytecode", target=target, opt_level=opt_level, cache=cache)
    if entry not in executable.entries:
        raise ValueError(f"expected entry to be one of {', '.join(executable.entries)}, got {entry}")
    machine = VirtualMachine(executable)
    recorder = _Recorder(frozenset(op.sym_name.data for op in kernels.ops if isinstance(op, PrimFuncOp)))
    with machine.instrumented(recorder):
        machine[entry](*arguments)
    return recorder.calls


@dataclass
class Report:
    """The results of a search."""

    records: dict[str, Record] = field(default_factory=dict[str, Record])
    """The records of kernels for which a faster schedule was found, by name."""
    others: list[str] = field(default_factory=list[str])
    """The names of kernels that keep the default schedule."""
    tried: int = 0
    load: float = 0.0
    """The largest number of runnable processes observed, the search included."""
    cores: int = 1

    def is_busy(self) -> bool:
        """Whether other processes compete for the processors, which distorts comparisons of thread counts."""
        load = os.getloadavg()[0]
        self.load = max(self.load, load)
        return load > self.cores + BUSY

    @property
    def kernels(self) -> int:
        """The number of kernels searched."""
        return len(self.records) + len(self.others)

    @property
    def seconds(self) -> float:
        """The total time of the improved kernels."""
        return sum(record.seconds for record in self.records.values())

    @property
    def default_seconds(self) -> float:
        """The total time of the same kernels with the default schedule."""
        return sum(record.default_seconds for record in self.records.values())

    def as_text(self) -> str:
        """A line for each kernel."""
        if not self.kernels:
            return "nothing was measured: no kernel is called with tensors that have elements"
        noun = "kernel" if self.kernels == 1 else "kernels"
        lines = [f"tried {self.tried} schedules of {self.kernels} {noun}, improved {len(self.records)}"]
        for name, record in self.records.items():
            gain = record.default_seconds / max(record.seconds, 1e-12)
            times = f"{1e6 * record.default_seconds:.1f} -> {1e6 * record.seconds:.1f} us"
            lines.append(f"  @{name}  {times}, {gain:.2f}x  {record.choice.describe()}")
        if self.load > self.cores + BUSY:
            lines.append(
                f"  the machine was busy ({self.load:.1f} processes on {self.cores} cores), so that numbers of threads "
                "were not compared: tune again when it is not"
            )
        lines += [f"  @{name}  nothing is faster than the default" for name in self.others]
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
    opt_level: int = 3,
    cache: CodeCache | bool = True,
    progress: TextIO | None = sys.stderr,
    pool: Executor | None = None,
) -> Report:
    """Searches a faster schedule for every kernel that `entry` calls with these arguments; remembers what it finds.

    Each kernel is measured on the sizes it was called with, and on those of earlier searches, none of which may become
    slower: one kernel is for all sizes. It is raced by default, as a search before this one found, and under up to
    `trials` choices; a choice counts if it gives the same values and takes less time, again when all is done.
    `database` is the user's unless one is given; later builds consult it. What is found for a kernel is in it before
    the next one is searched, and if the search is interrupted; it goes on with another `seed`. While others use the
    processors, numbers of threads are not compared. `cache`, as in `build`, is for the build that runs once;
    candidates are always compiled. `progress` gets a bar. The workers of a `pool`, such as `MPIPoolExecutor` of
    `mpi4py.futures` has on machines of one kind, search for one kernel each.

    Raises what `build` raises for the module, `ValueError` for less than one trial or a worker on another kind of
    machine, and `OSError` or `ValueError` if the database cannot be used.
    """
    require_module("tune", module)
    if trials < 1:
        raise ValueError(f"trials expected a positive number, got {trials}")
    target = target or Target.host()
    database = default_database() if database is None else database
    database.add({})  # one that cannot be read or written is told before the search, not after it
    calls = _by_kernel(record_calls(module, entry, arguments, target, opt_level, cache))
    kernels = kernel_groups(kernels_of(module, target, opt_level))
    groups = [group for group in kernels if group[0].sym_name.data in calls]
    report, bar = Report(cores=target.cores), ProgressBar(progress, "kernels")
    try:
        if pool is not None:
            _search_on(pool, groups, calls, target, trials, seed, opt_level, database, report, bar)
            return report
        for number, group in enumerate(groups):
            name, key = group[0].sym_name.data, kernel_key(group, target)
            bar.show(number, len(groups), name)
            search = Search.of(group, calls[name], target, database.records().get(key), opt_level)
            with _kept(search, name, key, database, report):
                for count, _ in enumerate(search.run(trials, seed, threads=not report.is_busy()), start=1):
                    bar.show(number + min(count / trials, 1), len(groups), search.describe(name))
                    report.tried += 1
    finally:
        bar.close()
    report.is_busy()
    return report


def _search_on(
    pool: Executor,
    groups: Sequence[Sequence[PrimFuncOp]],
    calls: Mapping[str, Mapping[Call, int]],
    target: Target,
    trials: int,
    seed: int,
    opt_level: int,
    database: TuningDatabase,
    report: Report,
    bar: ProgressBar,
) -> None:
    """Searches for all kernels on the workers of a pool; keeps what each of them finds when it is there."""
    known, waiting = database.records(), dict[Future[Found], tuple[str, str]]()
    for group in groups:
        name, key = group[0].sym_name.data, kernel_key(group, target)
        task = Task.of(group, calls[name], target, known.get(key), trials, seed, opt_level)
        waiting[pool.submit(run, task)] = name, key
    bar.show(0, len(groups), "")
    for number, future in enumerate(as_completed(waiting), start=1):
        (name, key), found = waiting[future], future.result()
        record = None if found.record is None else Record.from_json(json.loads(found.record))
        _keep(record, name, key, database, report)
        report.tried += found.tried
        report.load = max(report.load, found.load)
        bar.show(number, len(groups), name)


@contextmanager
def _kept(search: Search, name: str, key: str, database: TuningDatabase, report: Report) -> Generator[None]:
    """Keeps what a search has found at its end; of one that is interrupted, if it has found anything."""
    try:
        yield
    except KeyboardInterrupt:
        if search.best is not None:
            _keep(search.record(name), name, key, database, report)
        raise
    _keep(search.record(name), name, key, database, report)


def _keep(record: Record | None, name: str, key: str, database: TuningDatabase, report: Report) -> None:
    if record is None:
        report.others.append(name)
        database.remove(key)
    else:
        report.records[name] = record
        database.add({key: record})


def _by_kernel(calls: Mapping[Call, int]) -> dict[str, Counter[Call]]:
    found: dict[str, Counter[Call]] = {}
    for call, count in calls.items():
        if not call.is_empty:
            found.setdefault(call.kernel, Counter())[call] += count
    return found

"""The search space of a kernel: the default rules for changed targets, and traces of primitives."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from lowering.cache.code_cache import cache_key
from tir_dialect.dtypes import MOST_BYTES
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule import Block, Loop, Schedule, ScheduleError
from tir_dialect.schedule.trace import Trace
from tir_dialect.target import NUMERIC_SETTINGS, Target
from tir_dialect.types import IteratorKind


@dataclass(frozen=True)
class Choice:
    """A trace of schedule primitives, or the default rules for a changed target."""

    trace: Trace | None = None
    facts: tuple[tuple[str, int], ...] = ()
    """The changed target settings, sorted by name."""

    def schedule(self, func: PrimFuncOp, target: Target) -> None:
        """Schedules a function; `ScheduleError` for a trace that is not applicable, or an invalid target."""
        if self.trace is not None:
            from tir_dialect.schedule.schedule import Schedule

            self.trace.replay(Schedule(func))
            return
        from lowering.kernels.schedule_cpu import schedule

        schedule(func, self._machine(target))

    def _machine(self, target: Target) -> Target:
        try:
            return target.with_settings(dict(self.facts))
        except ValueError as error:
            from tir_dialect.schedule.handles import ScheduleError

            raise ScheduleError("schedule-cpu", str(error)) from error

    def code(self, func: PrimFuncOp, target: Target) -> str | None:
        """A fingerprint of the code that the choice generates for a function; `None` if it is not applicable."""
        from lowering.kernels.cpu.emit.kernel import outside_modules
        from tir_dialect.schedule.handles import ScheduleError

        copy = func.clone()
        ModuleOp([copy])  # in which routines have names, which say everything
        try:
            with outside_modules():
                self.schedule(copy, target)
        except (ScheduleError, DiagnosticException):
            return None
        return _code(copy)

    def schedule_as_measured(self, func: PrimFuncOp, target: Target, code: str, name: str) -> None:
        """Schedules a function; by default, with a warning that calls it `name`, if `code` is not what comes out."""
        from tir_dialect.schedule.handles import ScheduleError

        before = func.clone()
        try:
            self.schedule(func, target)
            reason = "the rules of schedule-cpu have changed since" if _code(func) != code else None
        except ScheduleError as error:
            reason = str(error)
        if reason is not None:
            found = f"the schedule that tuning found for @{name} is not used ({reason})"
            warnings.warn(f"{found}; it has the default one, tune again", stacklevel=2)
            func.detach_region(func.body)
            func.add_region(before.detach_region(before.body))
            Choice().schedule(func, target)

    def as_json(self) -> dict[str, object]:
        """The choice as JSON data."""
        return {"facts": dict(self.facts)} if self.trace is None else {"trace": self.trace.as_json()}

    @staticmethod
    def from_json(data: object) -> Choice:
        """The choice that `as_json` gave; `ValueError` for anything else."""
        if not isinstance(data, dict):
            raise ValueError(f"expected a choice, got {data}")
        fields = cast("dict[str, object]", data)
        if "trace" in fields:
            return Choice(Trace.from_json(fields["trace"]))
        facts = fields.get("facts")
        if not isinstance(facts, dict) or not all(
            name in NUMERIC_SETTINGS and is_size(value) for name, value in cast("dict[object, object]", facts).items()
        ):
            raise ValueError(f"expected a trace or facts of a machine, got {data}")
        return Choice(facts=tuple(sorted(cast("dict[str, int]", facts).items())))

    def text(self) -> str:
        """A complete one-line text: equal choices have equal texts."""
        return json.dumps(self.as_json(), sort_keys=True)

    def describe(self) -> str:
        """A text for reports: the changed settings, or the steps of the trace."""
        if self.trace is None:
            return ", ".join(f"{name}={value}" for name, value in self.facts)
        return "; ".join(line for line in self.trace.as_python().splitlines() if "get_" not in line)


def _code(func: PrimFuncOp) -> str:
    from tir_dialect.analysis.fingerprint import Fingerprint

    return cache_key([Fingerprint()(func, ("sym_name",))])


def is_size(value: object) -> bool:
    """Whether a value from a file is a possible extent, or number of bits, bytes, registers or cores."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_BYTES


_T = TypeVar("_T")
Move: TypeAlias = Mapping[str, int]
"""Numbers of the target that the rules see changed together."""

TILE_ROWS, TILE_VECTORS, TILE_STEPS = (2, 3, 4, 5, 6, 8, 10, 12, 14), (1, 2, 3, 4), (1, 2, 4, 8)
UNPACKED_ROWS = (1, 64, 1 << 20)
TASK_PERCENT = (25, 400)
THREADS = frozenset(["cores", "task_percent"])
"""Moves that say how many threads there are."""
MAP_VECTORS = (1, 2, 4)
COLUMNS, ROWS = (1, 2, 4), (1, 4, 8)
"""Of the tiles of traces: vectors of a row, and rows."""
PATIENCE = 100
"""So many mixtures in a row that make nothing new, and there is nothing new."""


def candidates(
    func: PrimFuncOp,
    target: Target,
    seed: int = 0,
    best: Callable[[], Choice | None] = lambda: None,
    *,
    threads: bool = True,
) -> Iterator[Choice]:
    """Choices that generate distinct code, different from the default; without `threads` none changes thread counts.

    First come the single changes, and after them mixtures of those that change something with the best choice until
    then and with each other. The order depends on `seed`, and on what is best, only.
    """
    space = _Space(func, target)
    order = random.Random(seed)
    moves = [move for move in _shuffled(order, _moves(target)) if threads or THREADS.isdisjoint(move)]
    useful: list[Move] = []
    for move in moves:
        choice = Choice(facts=tuple(sorted(move.items())))
        if space.is_new(choice):
            useful.append(move)
            yield choice
    rest = [*_shuffled(order, _traces(func, target, threads=threads))]
    fruitless = 0
    while rest or (useful and fruitless < PATIENCE):
        if rest and (fruitless >= PATIENCE or not useful or order.random() < 0.25):
            choice = rest.pop()
        else:
            found = best()
            choice = _mixture({} if found is None else dict(found.facts), order.choice(useful), order, useful)
        if space.is_new(choice):
            fruitless = 0
            yield choice
        else:
            fruitless += 1


def _mixture(facts: dict[str, int], move: Move, order: random.Random, others: Sequence[Move]) -> Choice:
    if not facts:
        facts = dict(order.choice(others))
    return Choice(facts=tuple(sorted({**facts, **move}.items())))


def _shuffled(order: random.Random, every: Iterator[_T]) -> list[_T]:
    found = list(every)
    order.shuffle(found)
    return found


class _Space:
    """The set of codes tried so far."""

    def __init__(self, func: PrimFuncOp, target: Target):
        self.func, self.target = func, target
        self.texts: set[str] = set()
        self.made = {Choice().code(func, target)}

    def is_new(self, choice: Choice) -> bool:
        """Whether a choice is applicable and its code has not been tried."""
        if choice.text() in self.texts:
            return False
        self.texts.add(choice.text())
        made = choice.code(self.func, self.target)
        if made is None or made in self.made:
            return False
        self.made.add(made)
        return True


def _moves(target: Target) -> Iterator[Move]:
    """Single changes: register tile, packing, threads, vectors per iteration, cache sizes and vector width."""
    for rows, vectors in product(TILE_ROWS, TILE_VECTORS):
        needed = rows * vectors + vectors
        if target.vector_registers // 2 <= needed < target.vector_registers:
            yield {"tile_rows": rows, "tile_vectors": vectors}
    yield from ({"tile_steps": steps} for steps in TILE_STEPS)
    yield from ({"unpacked_rows": rows} for rows in UNPACKED_ROWS)
    if target.cores > 1:
        yield {"cores": 1}
        yield from ({"task_percent": percent} for percent in TASK_PERCENT)
    yield from ({"map_vectors": vectors} for vectors in MAP_VECTORS)
    for name in ("l1_bytes", "l2_bytes"):
        yield from ({name: size} for size in (getattr(target, name) // 2, getattr(target, name) * 2))
    yield {"vector_registers": target.vector_registers * 3 // 4}
    if target.vector_bits > 128:
        yield {"vector_bits": target.vector_bits // 2}


def _traces(func: PrimFuncOp, target: Target, *, threads: bool) -> Iterator[Choice]:
    """Traces for functions with a single block; for others there are only changes of the target."""
    if len(Schedule(func.clone()).get_blocks()) != 1:
        return
    several = target.cores > 1
    for rows, vectors, parallel in product(ROWS, COLUMNS, (False, True) if several and threads else (several,)):
        schedule = Schedule(func.clone())
        try:
            _tile(schedule, schedule.get_blocks()[0], rows, vectors * target.lanes(32), parallel)
        except ScheduleError:
            continue
        yield Choice(schedule.trace)


def _tile(schedule: Schedule, block: Block, rows: int, columns: int, parallel: bool) -> None:
    """The two innermost spatial loops in tiles, sums in between, the innermost as vectors, the outermost in threads."""
    loops = schedule.get_loops(block)
    kinds = {iterator.binding: iterator.kind for iterator in block.op.iterators}
    spatial = [loop for loop in loops if kinds.get(loop.op.induction_var) is IteratorKind.SPATIAL]
    reduced = [loop for loop in loops if loop not in spatial]
    if not spatial:
        raise ScheduleError("tile", "expected a spatial loop")
    if len(spatial) == 1 and not reduced:
        outer, inner = schedule.split(spatial[0], [None, columns])
        order: list[Loop] = [outer, inner]
    else:
        order = _tile_rows(schedule, spatial, reduced, rows, columns)
    schedule.vectorize(order[-1])
    if parallel:
        schedule.parallel(order[0])


def _tile_rows(schedule: Schedule, spatial: list[Loop], reduced: list[Loop], rows: int, columns: int) -> list[Loop]:
    *outer, last = spatial
    column, lane = schedule.split(last, [None, columns])
    order = [*outer, column, *reduced, lane]
    if outer and rows > 1:
        row, unrolled = schedule.split(outer[-1], [None, rows])
        order = [*outer[:-1], row, column, *reduced, unrolled, lane]
    schedule.reorder(*order)
    return order

"""The search space of a kernel: the default rules for changed targets, and traces of primitives."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias, TypeVar

from lowering.tune.choice import Choice
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule import Block, Loop, Schedule, ScheduleError
from tir_dialect.target import Target
from tir_dialect.types import IteratorKind

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

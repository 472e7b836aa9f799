"""What is tried for a kernel: the default rules under other assumptions, and traces of tiles, vectors and threads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

from xdsl.utils.exceptions import DiagnosticException

from lowering.tune.choice import Choice
from tir_dialect.analysis.fingerprint import Fingerprint
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule import Block, Loop, Schedule, ScheduleError
from tir_dialect.target import Target
from tir_dialect.types import IteratorKind

TILES = (4, 8, 16, 32, 64)
ROWS = (1, 2, 4, 8)


def candidates(func: PrimFuncOp, target: Target, seed: int = 0) -> Iterator[Choice]:
    """Choices in an order that depends on `seed` only, no two of which make the same code, none the default code."""
    every = [*_assumptions(target), *_traces(func, target)]
    random.Random(seed).shuffle(every)
    seen = {_result(func, target, Choice())}
    for choice in every:
        made = _result(func, target, choice)
        if made is not None and made not in seen:
            seen.add(made)
            yield choice


def _result(func: PrimFuncOp, target: Target, choice: Choice) -> str | None:
    copy = func.clone()
    try:
        choice.schedule(copy, target)
    except (ScheduleError, DiagnosticException):
        return None
    return Fingerprint()(copy)


def _assumptions(target: Target) -> Iterator[Choice]:
    """Caches that are smaller or larger than they are, and narrower vectors."""
    widths = [bits for bits in (128, 256, 512) if bits <= target.vector_bits]
    scales = (0.5, 1, 2)
    for bits, first, second in product(widths, scales, scales):
        facts = {
            "vector_bits": bits,
            "l1_bytes": int(target.l1_bytes * first),
            "l2_bytes": int(target.l2_bytes * second),
        }
        changed = {name: value for name, value in facts.items() if value != getattr(target, name)}
        if changed:
            yield Choice(facts=tuple(sorted(changed.items())))


def _traces(func: PrimFuncOp, target: Target) -> Iterator[Choice]:
    """Traces for functions of one block; others are left to the rules."""
    names = Schedule(func.clone()).get_blocks()
    if len(names) != 1:
        return
    for rows, columns, parallel in product(ROWS, TILES, (False, True)):
        schedule = Schedule(func.clone())
        try:
            _tile(schedule, schedule.get_blocks()[0], rows, columns, parallel)
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

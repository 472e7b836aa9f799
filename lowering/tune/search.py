"""The search for the best schedule of one kernel: its search space (the default rules for changed targets, and traces
of primitives), benchmarks of a kernel under two schedules, and comparison of their results.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import tvm_ffi
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from lowering.compiler.kernel_maker import KernelOptions
from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.compiler.tuning_database import Call, Choice, Record, nearby
from lowering.llvm.binding import CodegenError
from lowering.llvm.code_cache import CodeCache
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule import Block, Loop, Schedule, ScheduleError
from tir_dialect.target import Target
from tir_dialect.types import IteratorKind
from vm_dialect.dtypes import element_type
from vm_dialect.tensors import from_numpy, numpy_dtype, to_numpy

ROUND_SECONDS = 0.005
"""A round of a race repeats each call for so long."""

Array = NDArray[Any]


class Bench:
    """A kernel with the arguments of its recorded calls."""

    def __init__(self, group: Sequence[PrimFuncOp], calls: Mapping[Call, int], target: Target, opt_level: int = 3):
        self.group = group
        self.target = target
        self.opt_level = opt_level
        rng = np.random.default_rng(0)
        self.calls = [([_value(each, rng) for each in call.arguments], count) for call, count in calls.items()]

    def compile(self, choice: Choice | None) -> tvm_ffi.Function:
        """Compiles the kernel with a choice, bypassing the cache on disk."""
        module = ModuleOp([func.clone() for func in self.group])
        options = KernelOptions(opt_level=self.opt_level, choice=choice)
        kernels: Kernels = compile_prim_funcs(module, self.target, cache=CodeCache(None), options=options)
        return kernels.packed(self.group[0].sym_name.data)

    def results(self, function: tvm_ffi.Function) -> list[list[Array]]:
        """The contents of the kernel's tensors after each call; the arguments are the same every time."""
        found: list[list[Array]] = []
        for arguments, _ in self.calls:
            copies = [_copy(each) for each in arguments]
            function(*copies)
            found.append([to_numpy(each).copy() for each in copies if isinstance(each, tvm_ffi.Tensor)])
        return found

    def race(self, first: tvm_ffi.Function, second: tvm_ffi.Function, rounds: int) -> Race:
        """Measures both functions alternately, since the speed of the machine varies; so does which one is first."""
        calls = [_race(first, second, [_copy(each) for each in arguments], rounds) for arguments, _ in self.calls]
        return Race([count for _, count in self.calls], calls)


@dataclass(frozen=True)
class Race:
    """The measured times of two functions, in seconds."""

    counts: Sequence[int]
    """The number of repetitions of each call."""
    calls: Sequence[Sequence[tuple[float, float]]]
    """For each call, the times of both functions by round."""

    @property
    def seconds(self) -> tuple[float, float]:
        """The total times of both functions: the sum over the calls of the median of the rounds."""
        middles = [(_middle([a for a, _ in call]), _middle([b for _, b in call])) for call in self.calls]
        first, second = zip(*middles, strict=True)
        return (
            sum(count * each for count, each in zip(self.counts, first, strict=True)),
            sum(count * each for count, each in zip(self.counts, second, strict=True)),
        )

    @property
    def ratios(self) -> list[float]:
        """The time of the second relative to the first, by call: the median of the rounds."""
        return [_middle([second / first for first, second in call]) for call in self.calls]

    @property
    def wins(self) -> float:
        """The fraction of all rounds in which the second was faster."""
        rounds = [second < first for call in self.calls for first, second in call]
        return sum(rounds) / len(rounds)


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _race(
    first: tvm_ffi.Function, second: tvm_ffi.Function, arguments: Sequence[Any], rounds: int
) -> list[tuple[float, float]]:
    once = max(_time(second, arguments, 1), _time(first, arguments, 1), 1e-7)
    repeats = max(1, min(10_000, int(ROUND_SECONDS / once)))
    found: list[tuple[float, float]] = []
    for number in range(rounds):
        if number % 2:
            later = _time(second, arguments, repeats)
            found.append((_time(first, arguments, repeats), later))
        else:
            found.append((_time(first, arguments, repeats), _time(second, arguments, repeats)))
    return found


def _copy(argument: Any) -> Any:
    return from_numpy(cast("Array", argument).copy()) if isinstance(argument, np.ndarray) else argument


def _time(function: tvm_ffi.Function, arguments: Sequence[Any], repeats: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeats):
        function(*arguments)
    return (time.perf_counter() - begin) / repeats


def _value(argument: tuple[str, tuple[int, ...]] | float, rng: np.random.Generator) -> Any:
    """A random argument; integers are small, since they may be indices into another tensor."""
    if not isinstance(argument, tuple):
        return argument
    dtype, shape = numpy_dtype(element_type(argument[0])), argument[1]
    if dtype.kind in "iub":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def agree(results: Sequence[Sequence[Array]], expected: Sequence[Sequence[Array]]) -> bool:
    """Whether all arrays are equal up to rounding by another order of summation."""
    pairs = [pair for one, other in zip(results, expected, strict=True) for pair in zip(one, other, strict=True)]
    return all(_close(got, want) for got, want in pairs)


def _close(got: Array, want: Array) -> bool:
    if want.dtype.kind in "iub":
        return bool(np.array_equal(got, want))
    small = want.dtype.itemsize < 4
    got, want = got.astype(np.float64), want.astype(np.float64)
    scale = float(np.max(np.abs(want), initial=0, where=np.isfinite(want)))
    tolerance = 1e-2 if small else 1e-4
    return bool(np.allclose(got, want, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


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
            facts = {} if found is None else dict(found.facts)
            move = order.choice(useful)
            if not facts:
                facts = dict(order.choice(useful))
            choice = Choice(facts=tuple(sorted({**facts, **move}.items())))
        if space.is_new(choice):
            fruitless = 0
            yield choice
        else:
            fruitless += 1


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
        *outer, last = spatial
        column, lane = schedule.split(last, [None, columns])
        order = [*outer, column, *reduced, lane]
        if outer and rows > 1:
            row, unrolled = schedule.split(outer[-1], [None, rows])
            order = [*outer[:-1], row, column, *reduced, unrolled, lane]
        schedule.reorder(*order)
    schedule.vectorize(order[-1])
    if parallel:
        schedule.parallel(order[0])


LEAST_GAIN = 0.03
"""What is not faster by this part is noise: the default stays."""
MOST_LOSS = 0.1
"""What is slower by more than this at sizes nearby is not kept."""
LEAST_WINS = 0.7
"""What is not faster in this part of the rounds is noise."""
GLANCE, LOOK, PROOF = 3, 9, 21
"""Rounds of a race: whether one more measurement is profitable, against the best until then, and at the end,
against the default.
"""
MOST_KNOWN = 8
"""So many calls of earlier searches are measured again."""


class Search:
    """Compares schedules of a kernel: each candidate with the best so far, and the winner with the default."""

    def __init__(self, bench: Bench, target: Target, calls: Mapping[Call, int], known: Choice | None):
        """`known` is tried before all others."""
        self.bench, self.target, self.calls = bench, target, calls
        self.known = () if known is None else (known,)
        self.best: Choice | None = None
        self.default = bench.compile(None)
        self._function = self.default
        self.gain = 1.0
        """How much faster the best is than the default, by the races until now."""

    @staticmethod
    def of(
        group: Sequence[PrimFuncOp], calls: Mapping[Call, int], target: Target, known: Record | None, opt_level: int
    ) -> Search:
        """A search that measures these calls and those of earlier searches, each once."""
        name = group[0].sym_name.data
        earlier = (Call(name, call.arguments) for call in (() if known is None else known.calls[:MOST_KNOWN]))
        every = {**dict.fromkeys((call for call in earlier if call.is_alike(next(iter(calls)))), 1), **calls}
        return Search(Bench(group, every, target, opt_level), target, every, None if known is None else known.choice)

    def run(self, trials: int, seed: int, *, threads: bool = True) -> Iterator[Choice]:
        """Measures candidates one by one, and yields each of them. With `threads`, thread counts are varied, too."""
        expected = self.bench.results(self.default)
        new = candidates(self.bench.group[0], self.target, seed, lambda: self.best, threads=threads)
        for choice in chain(self.known, islice(new, trials)):
            function = self._compiled(choice, expected)
            if function is not None and self._is_faster(function):
                self.best, self._function = choice, function
            yield choice

    def _compiled(self, choice: Choice, expected: list[list[Array]]) -> tvm_ffi.Function | None:
        """The compiled kernel; `None` if the choice is not applicable, or the results differ."""
        try:
            function = self.bench.compile(choice)
        except (ScheduleError, DiagnosticException, CodegenError):
            return None
        return function if agree(self.bench.results(function), expected) else None

    def _is_faster(self, function: tvm_ffi.Function) -> bool:
        for rounds in (GLANCE, LOOK):
            race = self.bench.race(self._function, function, rounds)
            if not is_gain(race):
                return False
        before, seconds = race.seconds
        self.gain *= before / seconds
        return True

    def describe(self, name: str) -> str:
        """A text for the progress bar: the kernel and the speedup of the best schedule so far."""
        return name if self.gain == 1 else f"{name}  {self.gain:.2f}x"

    def record(self, name: str) -> Record | None:
        """The record of the best schedule, if it beats the default in a final comparison."""
        if self.best is None:
            return None
        race = self.bench.race(self.default, self._function, PROOF)
        before, seconds = race.seconds
        if not is_gain(race) or not self._is_safe_nearby():
            return None
        code = self.best.code(self.bench.group[0], self.bench.target)
        return Record(self.best, seconds, before, name, tuple(self.calls), code or "")

    def _is_safe_nearby(self) -> bool:
        """Whether the best schedule is not much slower at half and twice the sizes, which the kernel serves, too."""
        for call in nearby(self.bench.group[0], self.calls):
            bench = Bench(self.bench.group, {call: 1}, self.bench.target, self.bench.opt_level)
            try:
                expected = bench.results(self.default)
            except (ValueError, IndexError):  # the kernel is not for these sizes
                continue
            if not agree(bench.results(self._function), expected):
                return False
            if max(bench.race(self.default, self._function, LOOK).ratios) > 1 + MOST_LOSS:
                return False
        return True


def is_gain(race: Race) -> bool:
    """Whether the second is significantly faster in total, and not significantly slower in any single call."""
    before, seconds = race.seconds
    none_slower = all(ratio < 1 + LEAST_GAIN for ratio in race.ratios)
    return seconds < before * (1 - LEAST_GAIN) and race.wins >= LEAST_WINS and none_slower

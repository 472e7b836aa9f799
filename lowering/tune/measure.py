"""Benchmarks of a kernel under two schedules, and comparison of their results."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import tvm_ffi
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from lowering.cache.code_cache import CodeCache
from lowering.compiler.kernels.kernel_lowering import KernelOptions
from lowering.compiler.kernels.kernels import Kernels, compile_prim_funcs
from lowering.tune.choice import Choice
from lowering.tune.database import Call
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
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

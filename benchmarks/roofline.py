"""What limits a call: arithmetic, memory or the call itself, each as measured on this machine.

Memory is measured by copies of as many bytes as the call reads and writes: where these stay in a cache between calls,
so do those of the call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from threading import Thread

import numpy as np

from benchmarks.timing import seconds_of, time_in_turns
from lowering import build
from lowering.compiler.peaks import compute_peak
from lowering.parsing import parse_module
from vm_dialect import VirtualMachine
from vm_dialect.tensors import from_numpy

ROUNDS, SECONDS = 15, 0.002
LEAST, LARGEST, SHARED = 1 << 16, 1 << 27, 1 << 20
"""Bytes: copies of less are calls rather than copies, and of more as fast; from so many each, threads share memory."""
ENOUGH = 0.8
"""The share of a call's time that a limit has to explain where nothing is known about its arithmetic."""
NOTHING = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.negative %x
  relax.return %0
}"""

_peaks: list[float] = []
"""GFLOP/s each time that they were measured."""


def peak() -> float:
    """Floating-point operations in f32 per second on one thread, two for a multiply-add: the most found so far.

    Other programs disturb the processor for seconds at a time, so each call measures anew.
    """
    _peaks.append(compute_peak(1))
    return max(_peaks) * 1e9


def bound(seconds: float, operations: float, moved: int, threads: int) -> str:
    """The limit that allows least for a call of so many operations on so many bytes, and how much of it is reached."""
    least = {
        "compute": operations / (peak() * threads),
        "memory": moved / copy_speed(moved, threads),
        "overhead": overhead(),
    }
    name = max(least, key=lambda each: least[each])
    return f"{name} {100 * least[name] / seconds:.0f} %"


def bound_without_arithmetic(seconds: float, copied: float) -> str:
    """The same for a call of unknown arithmetic, given the seconds of a copy of as many bytes.

    What neither the call nor memory explains is spent on instructions and on waiting for their results. The call comes
    first, since copies of few bytes are calls as well.
    """
    for name, least in (("overhead", overhead()), ("memory", copied)):
        if least >= ENOUGH * seconds:
            return f"{name} {100 * least / seconds:.0f} %"
    return "compute"


def copy_speed(moved: int, threads: int) -> float:
    """Bytes per second that so many threads read and write together when they copy; the nearest power of two counts."""
    size = min(LARGEST, max(LEAST, 1 << round(math.log2(max(1, moved)))))
    if size // threads < SHARED:  # caches of their own, between whose copies threads would wait for the interpreter
        return threads * _copy_speed(max(LEAST, size // threads), 1)
    return _copy_speed(size, threads)


@cache
def _copy_speed(moved: int, threads: int) -> float:
    each = moved // 2 // threads
    arrays = [(np.ones(each, np.uint8), np.ones(each, np.uint8)) for _ in range(threads)]
    calls = [partial(np.copyto, target, source) for target, source in arrays]
    repeats = max(1, int(SECONDS / max(seconds_of(calls[0], 1), 1e-7)))
    return moved / min(_together(calls, repeats) for _ in range(ROUNDS))


def _together(calls: Sequence[Callable[[], object]], repeats: int) -> float:
    """Seconds of one of so many calls of each function, each in a thread of its own; the slowest counts."""
    found: list[float] = []

    def run(call: Callable[[], object]) -> None:
        found.append(seconds_of(call, repeats))

    threads = [Thread(target=partial(run, call)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(found)


@cache
def overhead() -> float:
    """Seconds of a call that computes one number."""
    function, tensor = VirtualMachine(build(parse_module(NOTHING)))["main"], from_numpy(np.ones(1, np.float32))
    return time_in_turns({"call": lambda: function(tensor)}, ROUNDS, min, SECONDS)["call"]

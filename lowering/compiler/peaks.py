"""What this machine can do at best, measured in about a tenth of a second: the roof that profiles compare with."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from time import perf_counter

import numpy as np

from lowering.llvm.compiler import CompileOptions, compile_object
from lowering.runtime.loading import LoadedCode, library_symbol, load_objects
from tir_dialect.target import Target
from vm_dialect.host_memory import aligned_zeros
from vm_dialect.profiler import Peaks

_CHAINS = 12
"""Sums that do not depend on each other: more than a processor has in flight, fewer than it has registers."""
_TURNS = 400_000
_BYTES = 1 << 26
"""That a thread reads."""
_ATTEMPTS = 8


@cache
def machine_peaks(threads: int | None = None) -> Peaks:
    """What all threads of kernels, or so many, do together: multiplications with additions of `f32` in registers, and
    reads of memory that is in no cache. Measured once in a process.
    """
    count = threads or _kernel_threads()
    return Peaks(compute_peak(count), _read_peak(count))


def compute_peak(threads: int) -> float:
    """GFLOP/s in `f32` that so many threads reach together, two for a multiply-add. Measured anew by each call."""
    memory = [aligned_zeros(_lanes() * 4) for _ in range(threads)]
    for each in memory:
        each.view(np.float32)[...] = 1
    seconds = _seconds("relax_peak", memory, _TURNS)
    return threads * _TURNS * _CHAINS * _lanes() * 2 / seconds / 1e9


def _read_peak(threads: int) -> float:
    """GB/s that so many threads read together."""
    memory = [aligned_zeros(_BYTES) for _ in range(threads)]
    for each in memory:
        each.view(np.float32)[...] = 1
    return threads * _BYTES / _seconds("relax_read", memory, _BYTES) / 1e9


@cache
def _code() -> LoadedCode:
    return load_objects([compile_object(_text(_lanes()), Target.host(), CompileOptions(2, as_written=True))])


def _lanes() -> int:
    return Target.host().vector_bits // 32


def _seconds(function: str, memory: Sequence[np.ndarray], count: int) -> float:
    """Of the best attempt, in which every thread calls the function on its memory."""
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(_code().address(function))
    addresses = [int(each.ctypes.data) for each in memory]
    with ThreadPoolExecutor(len(memory)) as pool:
        return _best(lambda: list(pool.map(call, addresses, [count] * len(memory))))


def _kernel_threads() -> int:
    """How many threads kernels use."""
    address = library_symbol("relax_max_threads")
    return 1 if address is None else ctypes.CFUNCTYPE(ctypes.c_int32)(address)()


def _best(run: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(_ATTEMPTS):
        begin = perf_counter()
        run()
        times.append(perf_counter() - begin)
    return min(times)


def _text(lanes: int) -> str:
    vector = f"<{lanes} x float>"
    numbers = range(_CHAINS)
    sums = "\n".join(f"  %a{i} = phi {vector} [ %start, %entry ], [ %b{i}, %turn ]" for i in numbers)
    steps = "\n".join(
        f"  %b{i} = call {vector} @llvm.fmuladd.v{lanes}f32({vector} %a{i}, {vector} %start, {vector} %start)"
        for i in numbers
    )
    stores = "\n".join(f"  store volatile {vector} %b{i}, ptr %to" for i in numbers)
    size = lanes * 4
    reads = "\n".join(
        f"  %p{i} = getelementptr i8, ptr %from, i64 {i * size}\n  %v{i} = load {vector}, ptr %p{i}\n"
        f"  %d{i} = fadd {vector} %c{i}, %v{i}"
        for i in range(4)
    )
    partial = "\n".join(f"  %c{i} = phi {vector} [ zeroinitializer, %entry ], [ %d{i}, %turn ]" for i in range(4))
    kept = "\n".join(f"  store volatile {vector} %d{i}, ptr %at" for i in range(4))
    return f"""
declare {vector} @llvm.fmuladd.v{lanes}f32({vector}, {vector}, {vector})

define void @relax_peak(ptr %to, i64 %turns) {{
entry:
  %start = load volatile {vector}, ptr %to
  br label %turn

turn:
  %i = phi i64 [ 0, %entry ], [ %next, %turn ]
{sums}
{steps}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %turn, label %done

done:
{stores}
  ret void
}}

define void @relax_read(ptr %at, i64 %bytes) {{
entry:
  br label %turn

turn:
  %offset = phi i64 [ 0, %entry ], [ %next, %turn ]
{partial}
  %from = getelementptr i8, ptr %at, i64 %offset
{reads}
  %next = add i64 %offset, {4 * size}
  %more = icmp ult i64 %next, %bytes
  br i1 %more, label %turn, label %done

done:
{kept}
  ret void
}}
"""
